"""What is said when the package of an adapter is not installed."""

from __future__ import annotations


def missing(package: str, extra: str) -> ImportError:
    """Return the error that names the extra of mmes that brings a package.

    Parameters
    ----------
    package : str
        The package that could not be imported.
    extra : str
        The extra that installs it.
    """
    return ImportError(
        f"{package} is needed for this; install it with: pip install 'mmes[{extra}]'", name=package
    )
