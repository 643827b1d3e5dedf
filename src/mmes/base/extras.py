"""Optional packages, imported when they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(module: str, extra: str = "bench") -> Any:
    """Import an optional package such as ``"matplotlib.pyplot"``.

    If it is missing, the error names the extra of mmes that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        raise missing(package, extra) from None


def missing(package: str, extra: str) -> ModuleNotFoundError:
    """Return the error that names the extra of mmes that installs a package."""
    return ModuleNotFoundError(
        f"{package} is needed for this; install it with: pip install 'mmes[{extra}]'", name=package
    )
