"""The doubling of a population."""

from __future__ import annotations

from typing import Any


def grown_options(options: dict[str, Any], population_size: int, doublings: int) -> dict[str, Any]:
    """Return options with lambda and the damping, where there is one, doubled so many times.

    `population_size` is what is doubled: by default an option does not say it.
    """
    if doublings == 0:
        return options
    grown = options | {"population_size": population_size * 2**doublings}
    if "damping" in options:
        grown["damping"] = options["damping"] * 2**doublings
    return grown
