"""The doubling of a population."""

from __future__ import annotations

from typing import Any


def grown_options(options: dict[str, Any], population_size: int, doublings: int) -> dict[str, Any]:
    """Return options with lambda and the damping, if there is one, doubled `doublings` times.

    `population_size` is the value to double, because the option may be None.
    """
    if doublings == 0:
        return options
    grown = options | {"population_size": population_size * 2**doublings}
    if "damping" in options:
        grown["damping"] = options["damping"] * 2**doublings
    return grown
