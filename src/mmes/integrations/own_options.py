"""The error about an option that an adapter sets itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def refuse_own_options(options: Mapping[str, Any], adapter: str, own: Mapping[str, str]) -> None:
    """Refuse the options that an adapter sets itself.

    Parameters
    ----------
    options : mapping
        What the user gave.
    adapter : str
        The name of the adapter.
    own : mapping of str to str
        What to use instead, by the name of the option.

    Raises
    ------
    TypeError
        If one of them is given.
    """
    for name, instead in own.items():
        if name in options:
            raise TypeError(f"{adapter} takes no option {name}: {instead}")
