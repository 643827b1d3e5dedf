"""Before a search begins: what it is made from, its plan of memory, its box; all of it checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mmes.base import memory
from mmes.base.randomness import fresh_seed
from mmes.kernels import Kernel, kernel_for
from mmes.kernels.devices import check_able
from mmes.kernels.manifold import ManifoldKernel, planned_bytes
from mmes.spaces.bounds import checked_bounds, checked_inside
from mmes.spaces.boxes import BOXES, Box, IntegerBounds, Rounded, Start
from mmes.spaces.manifolds import Manifold, checked_manifold
from mmes.spaces.start import checked_point, checked_sigma, checked_steps, claimed_size
from mmes.strategies.parts.recombination import default_population_size
from mmes.strategies.shell.protocol import Search, Setup, Vector

# On a plateau the mutation strength does not grow beyond so many sigma0.
PLATEAU_LIMIT = 1e4


@dataclass(frozen=True)
class Beginning:
    """What an optimizer is made from.

    Attributes
    ----------
    options : dict
        All options, filled in, and reduced to the memory there is.
    own_options : dict
        Those of the algorithm alone.
    setup : Setup
        What the algorithm begins with.
    box : Box or None
        The bounds; also a box of which the search knows nothing.
    start : ndarray
        The start point, entry by entry.
    reach : ndarray or float
        The steps at the start, sigma times the scales.
    shape : tuple of int
        The shape of a point.
    planned_bytes : int
        The memory that all this will take.
    """

    options: dict[str, Any]
    own_options: dict[str, Any]
    setup: Setup
    box: Box | None
    start: Vector
    reach: Vector | float
    shape: tuple[int, ...]
    planned_bytes: int

    @classmethod
    def checked(
        cls,
        strategy: Any,
        x0: Any,
        sigma0: Any,
        space: tuple[Any, Any, Manifold | None],
        options: dict[str, Any],
    ) -> Self:
        """Return what a strategy, an `AskTell`, begins with.

        `space` is (bounds, scale, manifold), and the options are valid ones.
        """
        bounds, scale, manifold = space
        check_declared(strategy)
        checked_sigma(sigma0)
        n = claimed_size(x0)
        checked_manifold(manifold, strategy.name, strategy.on_manifolds, bounds, scale)
        kernel = kernel_for(options)
        if kernel.device is not None:
            check_able(strategy.search_type.on_host, strategy.name, manifold, kernel.device)
            if isinstance(bounds, IntegerBounds):
                raise ValueError(f"integers cannot be combined with device={kernel.device!r}")
        if manifold is not None:
            kernel = ManifoldKernel(kernel, manifold)
        boxed = None if bounds is None else options["bounds_handling"]
        own, needed = planned_search(strategy.search_type, kernel, options, n, boxed, manifold)
        point = checked_point(x0) if manifold is None else manifold.point(x0, "x0")
        start = point.ravel()
        sigma, scales = checked_steps(sigma0, scale, start.size)
        reach = sigma if scales is None else sigma * scales
        box = made_box(bounds, Start(start, reach), options["bounds_handling"])
        seed = fresh_seed() if options["seed"] is None else options["seed"]
        # Where the search keeps points of its own, it knows nothing of the box.
        mapped = apart(box)
        mean = start if mapped is None else mapped.map_back(start)
        setup = Setup(
            n=start.size,
            mean=kernel.from_host(mean),
            sigma=sigma,
            scale=None if scales is None else kernel.from_host(scales),
            box=box if mapped is None else None,
            kernel=kernel,
            seed=seed,
            manifold=manifold,
        )
        filled = options | own | {"seed": seed}
        return cls(filled, own, setup, box, start, reach, point.shape, needed)


def check_declared(strategy: Any) -> None:
    """Refuse a strategy of somebody's own whose population cannot be planned, nor doubled."""
    if all(option.name != "population_size" for option in strategy.search_type.options):
        raise TypeError(
            f"the strategy {strategy.name!r} has no option population_size: the options of its "
            f"search must list one, such as mmes.strategies.parts.population.POPULATION_SIZE"
        )


def apart(box: Box | None) -> Box | None:
    """Return a box of which the search knows nothing; None for others."""
    return box if box is not None and box.apart else None


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
    if isinstance(bounds, IntegerBounds):
        if handling != "smooth":
            raise ValueError(f"bounds_handling={handling!r} cannot be combined with integers")
        return Rounded.of_integers(bounds, start)
    return BOXES[handling].around(*sides, start)


def patience(n: int, box: Box | None) -> int:
    """Return the generations that values may stand still.

    About one integer per generation changes by 1: in that time each has done so some five times,
    up and down.
    """
    integers = 10 * box.count if isinstance(box, Rounded) else 0
    return max(n, 200, integers)


def widest_sigma(box: Box | None, sigma0: float) -> float:
    """Return the mutation strength that a plateau may lead to: no wider than the box."""
    widest = PLATEAU_LIMIT * sigma0
    if box is None:
        return widest
    width = box.upper - box.lower
    finite = width[np.isfinite(width)]
    return min(widest, float(finite.max())) if finite.size else widest
