"""The error about an option that an adapter sets itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def refuse_own_options(options: Mapping[str, Any], adapter: str, own: Mapping[str, str]) -> None:
    """Raise TypeError if an option is given that an adapter sets itself.

    `own` says what to use instead, by the name of the option.
    """
    for name, instead in own.items():
        if name in options:
            raise TypeError(f"{adapter} takes no option {name}: {instead}")
