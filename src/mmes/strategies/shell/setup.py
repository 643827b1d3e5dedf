"""Before a search begins: what it is made from, its plan of memory, its box; all of it checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mmes.base import memory
from mmes.base.randomness import fresh_seed
from mmes.kernels import Kernel, Place
from mmes.kernels.devices import check_able
from mmes.kernels.manifold import ManifoldKernel, planned_bytes
from mmes.spaces.boxes import BOXES, Box, Rounded, Start
from mmes.spaces.manifolds import Manifold
from mmes.spaces.space import Extent, Space
from mmes.strategies.parts.recombination import default_population_size
from mmes.strategies.shell.protocol import Search, Setup

# On a plateau the mutation strength does not grow beyond so many sigma0.
PLATEAU_LIMIT = 1e4


@dataclass(frozen=True)
class StrategySetup:
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
    planned_bytes : int
        The memory that all this will take.
    """

    options: dict[str, Any]
    own_options: dict[str, Any]
    setup: Setup
    box: Box | None
    planned_bytes: int

    @classmethod
    def made(cls, strategy: Any, space: Space, options: dict[str, Any], kernel: Kernel) -> Self:
        """Return what a strategy, an `AskTell`, begins with in a space that was checked."""
        if space.x0 is None:
            raise ValueError("x0 is needed: an optimizer begins at a point")
        own, needed = planned_search(strategy.search_type, kernel, options, space.extent)
        start = space.x0.ravel()
        box = None
        if space.box is not None:
            begin = Start(start, space.reach)
            box = (
                BOXES[options["bounds_handling"]].around(*space.box, begin)
                if space.integers is None
                else Rounded.of_integers(space.box, space.integers, begin)
            )
            check_integers(space, options, kernel)
        seed = fresh_seed() if options["seed"] is None else options["seed"]
        # Where the search keeps points of its own, it knows nothing of the box.
        mapping = mapping_of(box)
        setup = Setup(
            n=start.size,
            mean=kernel.from_host(start if mapping is None else mapping.map_back(start)),
            sigma=space.sigma0,
            scale=None if space.scale is None else kernel.from_host(space.scale),
            box=box if mapping is None else None,
            kernel=kernel,
            seed=seed,
            manifold=space.manifold,
        )
        return cls(options | own | {"seed": seed}, own, setup, box, needed)


def opened_kernel(strategy: Any, manifold: Manifold | None, options: dict[str, Any]) -> Kernel:
    """Return the kernel of a strategy, once it is clear that it can work there."""
    if all(option.name != "population_size" for option in strategy.search_type.options):
        raise TypeError(
            f"the strategy {strategy.name!r} has no option population_size: the options of its "
            f"search must list one, such as mmes.extend.POPULATION_SIZE"
        )
    kernel = Place.of(options).open()
    if kernel.device is not None:
        check_able(strategy.search_type.on_host, strategy.name, manifold, kernel.device)
    return kernel if manifold is None else ManifoldKernel(kernel, manifold)


def mapping_of(box: Box | None) -> Box | None:
    """Return a box that maps points of the search, which knows nothing of it; None for others."""
    return box if box is not None and box.maps_points else None


def planned_search(
    search_type: type[Search],
    kernel: Kernel,
    options: dict[str, Any],
    extent: Extent,
    held: int = 0,
) -> tuple[dict[str, Any], int]:
    """Return the algorithm's own options, reduced to the memory there is, and the bytes.

    `held` is memory that is in use now and will be given back, or handed over.
    """
    n, boxed, manifold = extent
    usable = int((kernel.available_bytes() + held) * memory.USABLE_SHARE)
    own = {option.name: options[option.name] for option in search_type.options}
    images, size = 0, own["population_size"] or default_population_size(n)
    if boxed and BOXES[options["bounds_handling"]].maps_points:
        images = kernel.entry_bytes * n * size
    elif manifold is not None:
        images = planned_bytes(size, n)
    # Searches that know the host alone need not say how large an entry is.
    entry = () if kernel.entry_bytes == 8 else (kernel.entry_bytes,)
    planned, needed = search_type.planned(n, own, usable - images, *entry)
    return planned, needed + images


def check_integers(space: Space, options: dict[str, Any], kernel: Kernel) -> None:
    """Refuse what does not go with integers."""
    handling = options["bounds_handling"]
    if space.integers is not None and handling != "smooth":
        raise ValueError(f"bounds_handling={handling!r} cannot be combined with integers")
    if space.integers is not None and kernel.device is not None:
        raise ValueError(f"integers cannot be combined with device={kernel.device!r}")


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
