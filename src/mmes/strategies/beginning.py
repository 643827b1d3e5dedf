"""Before a search begins: its plan of memory, its box, and sizes of a state that are plausible."""

from __future__ import annotations

from typing import Any

import numpy as np

from mmes import memory
from mmes.boxes import BOXES, Box, Start
from mmes.kernels import Kernel
from mmes.manifolds import Manifold
from mmes.manifolds.kernel import planned_bytes
from mmes.start import checked_bounds, checked_inside
from mmes.strategies.protocol import Search
from mmes.strategies.recombination import default_population_size
from mmes.strategies.record import LARGEST_COUNT, checked_scalar

COUNTS = ("generation", "evaluations", "failed_evaluations")
# On a plateau the mutation strength does not grow beyond so many sigma0.
PLATEAU_LIMIT = 1e4


def planned_search(
    search_type: type[Search],
    kernel: Kernel,
    options: dict[str, Any],
    n: int,
    bounds_handling: str | None,
    manifold: Manifold | None,
) -> tuple[dict[str, Any], int]:
    """Return the algorithm's own options, reduced to the memory there is, and the bytes."""
    usable = int(kernel.available_bytes() * memory.USABLE_SHARE)
    own = {option.name: options[option.name] for option in search_type.options}
    images, size = 0, own["population_size"] or default_population_size(n)
    if bounds_handling is not None and BOXES[bounds_handling].apart:
        images = kernel.entry_bytes * n * size
    elif manifold is not None:
        images = planned_bytes(size, n)
    # Searches that know the host alone need not say how large an entry is.
    entry = () if kernel.entry_bytes == 8 else (kernel.entry_bytes,)
    planned, needed = search_type.planned(n, own, usable - images, *entry)
    return planned, needed + images


def made_box(bounds: Any, start: Start, handling: str) -> Box | None:
    """Return the box of the bounds, checked, and whether the start lies inside; None without."""
    sides = checked_bounds(bounds, start.point.size)
    if sides is None:
        return None
    checked_inside(start.point, *sides)
    return BOXES[handling].around(*sides, start)


def widest_sigma(box: Box | None, sigma0: float) -> float:
    """Return the mutation strength that a plateau may lead to: no wider than the box."""
    widest = PLATEAU_LIMIT * sigma0
    if box is None:
        return widest
    width = box.upper - box.lower
    finite = width[np.isfinite(width)]
    return min(widest, float(finite.max())) if finite.size else widest


def check_sizes(search_type: type[Search], state: dict[str, Any]) -> None:
    """Refuse sizes that the rest of a state does not bear out, before memory is taken for them.

    Candidates per generation show in the number of evaluations, stored directions in arrays.
    """
    generation, evaluations, _ = (checked_scalar(name, state[name], 0) for name in COUNTS)
    shown = max((max(a.shape, default=0) for a in state["arrays"].values()), default=0)
    for option in search_type.options:
        value, most = state["options"].get(option.name), shown
        if option.name == "population_size":
            # A search that has just grown asks for twice what it was told in a generation.
            most = 2 * evaluations if generation else LARGEST_COUNT
        elif option.name not in ("archive_size", "directions"):
            continue
        if isinstance(value, int) and value > most:
            raise ValueError(f"{option.name} is {value}, but the arrays are those of {most}")
