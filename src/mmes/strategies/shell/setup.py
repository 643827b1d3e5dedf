"""Before a search begins: what it is made from, its plan of memory, its box; all of it checked."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from mmes.base import memory
from mmes.base.randomness import fresh_seed
from mmes.kernels import Kernel, Place
from mmes.kernels.devices import check_able
from mmes.kernels.manifold import ManifoldKernel, planned_bytes
from mmes.spaces.boxes import BOXES, Box, BoxCode, Rounded, Start
from mmes.spaces.manifolds import Manifold
from mmes.spaces.space import Extent, Space
from mmes.strategies.parts.recombination import default_population_size
from mmes.strategies.shell.protocol import Search, Setup

# Candidates that are made a few at a time take this share of the memory.
_SHARE_FOR_ROWS = 1 / 8
# On a plateau the mutation strength does not grow beyond so many sigma0.
PLATEAU_LIMIT = 1e4


class Plan(NamedTuple):
    """What a search may take.

    Attributes
    ----------
    options : dict
        The algorithm's own options, reduced to the memory there is.
    bytes : int
        The memory that all this will take.
    rows_at_once : int or None
        Candidates that are made at a time where there is no population; None: there is one.
    """

    options: dict[str, Any]
    bytes: int
    rows_at_once: int | None


@dataclass(frozen=True)
class StrategySetup:
    """What an optimizer is made from.

    Attributes
    ----------
    options : dict
        All options, filled in, and reduced to the memory there is.
    setup : Setup
        What the algorithm begins with.
    box : Box or None
        The bounds; also a box of which the search knows nothing.
    plan : Plan
        The algorithm's own options, and the memory that all this will take.
    """

    options: dict[str, Any]
    setup: Setup
    box: Box | None
    plan: Plan

    @classmethod
    def made(cls, strategy: Any, space: Space, options: dict[str, Any], kernel: Kernel) -> Self:
        """Return what a strategy, an `AskTell`, begins with in a space that was checked."""
        if space.x0 is None:
            raise ValueError("x0 is needed: an optimizer starts at a point")
        plan = planned_search(strategy.search_type, kernel, options, space.extent)
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
        return cls(options | plan.options | {"seed": seed}, setup, box, plan)


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
) -> Plan:
    """Return the algorithm's own options, reduced to the memory there is, and what it takes.

    `held` is memory that is in use now and will be given back, or handed over. Where the population
    does not fit, a search that can do without has none.
    """
    n, boxed, manifold = extent
    usable = int((kernel.available_bytes() + held) * memory.USABLE_SHARE)
    own = {option.name: options[option.name] for option in search_type.options}
    kind = BOXES[options["bounds_handling"]] if boxed else None
    images, size = 0, own["population_size"] or default_population_size(n)
    if kind is not None and kind.maps_points:
        images = kernel.entry_bytes * n * size
    elif manifold is not None:
        images = planned_bytes(size, n)
    if kernel.device is not None:
        # A plain loop holds the last generation, X = es.ask(), while it asks for the next.
        images += kernel.entry_bytes * n * size
    given = own.get("rows_at_once", "all")
    own_treatment = kind is not None and kind.code is BoxCode.OWN and not kind.maps_points
    whole = options["bounds_handling"] if own_treatment else manifold
    if whole is not None and given not in (None, "all"):
        raise ValueError(
            f"rows_at_once={given} cannot be combined with {whole}, which needs the population"
        )

    # With clipping, the path of the forces looks at all candidates (`Generation.needs_all`).
    kept = kind is not None and kind.onto_walls and own.get("step_size") == "forces"

    def plan(rows: int | str) -> Plan:
        few = None if isinstance(rows, str) or rows >= size else rows
        taken = images if few is None or kept else 0  # a few at a time are mapped in place
        made = "all" if kept else rows
        asked = own | {name: made for name in own if name == "rows_at_once"}
        # Searches that know the host alone need not say how large an entry is.
        entry = () if kernel.entry_bytes == 8 else (kernel.entry_bytes,)
        planned, needed = search_type.planned(n, asked, usable - taken, *entry)
        # What was asked for is kept: on another machine something else may fit.
        own_again = {name: given for name in own if name == "rows_at_once"}
        return Plan(planned | own_again, needed + taken, few)

    if given is not None:
        return plan(given)
    # Not for a population that is absurd, rather than variables that are many.
    alone = whole is None and not kept and size <= n
    if alone:
        fitting = int(usable * _SHARE_FOR_ROWS) // (kernel.entry_bytes * n)
        for rows in ("all", max(fitting, 1)):
            with contextlib.suppress(MemoryError):
                return plan(rows)
    return plan(1 if alone else "all")


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
