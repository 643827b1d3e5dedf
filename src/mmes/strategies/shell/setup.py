"""The setup of a search: its arguments, its memory, its box; all checked."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import numpy as np

from mmes.base import memory
from mmes.base.randomness import fresh_seed
from mmes.kernels import Kernel, Place
from mmes.kernels.devices import check_able
from mmes.spaces.boxes import BOXES, Box, BoxCode, Rounded, Start
from mmes.spaces.manifolds import Manifold
from mmes.spaces.space import Extent, Space
from mmes.strategies.parts.population import default_population_size
from mmes.strategies.shell.protocol import Search, Setup

# Candidates that are made a few at a time take this share of the memory.
_SHARE_FOR_ROWS = 1 / 8
# On a plateau the mutation strength does not grow beyond this many sigma0.
PLATEAU_LIMIT = 1e4


class Plan(NamedTuple):
    """The memory plan of a search."""

    options: dict[str, Any]  # Those of the algorithm, reduced to the available memory.
    bytes: int
    rows_at_once: int | None  # Candidates made at a time without a population; None with one.


def setup_in(space: Space, options: dict[str, Any], kernel: Kernel) -> tuple[Setup, Box | None]:
    """Return the start of an algorithm in a checked space, and the box, also if it is not seen."""
    if space.x0 is None:
        raise ValueError("x0 is needed: an optimizer starts at a point")
    for name, side, sign in (("sigma_min", -1, "<"), ("sigma_max", 1, ">")):
        limit = options[name]
        if limit is not None and side * limit <= side * space.sigma0:
            raise ValueError(f"{name} must be {sign} sigma0 = {space.sigma0:g}, not {limit!r}")
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
    # If the box maps points, the search itself is unbounded.
    mapping = mapping_of(box)
    setup = Setup(
        n=start.size,
        mean=kernel.from_host(start if mapping is None else mapping.map_back(start)),
        sigma=space.sigma0,
        scale=None if space.scale is None else kernel.from_host(space.scale),
        box=box if mapping is None else None,
        kernel=kernel,
        seed=fresh_seed() if options["seed"] is None else options["seed"],
        manifold=space.manifold,
    )
    return setup, box


def opened_kernel(strategy: Any, manifold: Manifold | None, options: dict[str, Any]) -> Kernel:
    """Return the kernel of a strategy after checking that it supports it."""
    if all(option.name != "population_size" for option in strategy.search_type.options):
        raise TypeError(
            f"the strategy {strategy.name!r} has no option population_size: the options of its "
            f"search must list one, such as mmes.extend.POPULATION_SIZE"
        )
    kernel = Place.of(options).open()
    if kernel.device is not None:
        check_able(strategy.search_type.on_host, strategy.name, manifold, kernel.device)
    if manifold is None:
        return kernel
    from mmes.kernels.manifold import ManifoldKernel  # here: few runs search a manifold

    return ManifoldKernel(kernel, manifold)


def mapping_of(box: Box | None) -> Box | None:
    """Return a box that maps points of the search, which does not see it; None for others."""
    return box if box is not None and box.maps_points else None


def planned_search(
    search_type: type[Search],
    kernel: Kernel,
    options: dict[str, Any],
    extent: Extent,
    held: int = 0,
) -> Plan:
    """Return the options of the algorithm, reduced to the available memory, and its bytes.

    `held` is memory that is in use now and will be released or reused. If the population does not
    fit, a search that can work without one has none.
    """
    n, boxed, manifold = extent
    usable = int((kernel.available_bytes() + held) * memory.USABLE_SHARE)
    own = {option.name: options[option.name] for option in search_type.options}
    kind = BOXES[options["bounds_handling"]] if boxed else None
    images, size = 0, own["population_size"] or default_population_size(n)
    if kind is not None and kind.maps_points:
        images = kernel.entry_bytes * n * size
    elif manifold is not None:
        from mmes.kernels.manifold import planned_bytes

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
    kept = kind is not None and kind.onto_walls and own.get("step_size") in ("auto", "forces")

    def plan(rows: int | str) -> Plan:
        few = None if isinstance(rows, str) or rows >= size else rows
        taken = images if few is None or kept else 0  # a few at a time are mapped in place
        made = "all" if kept else rows
        asked = own | {name: made for name in own if name == "rows_at_once"}
        # A search that works only on the host need not know the size of an entry.
        sizes = kernel.entry_bytes, kernel.vector_bytes
        planned, needed = search_type.planned(
            n, asked, usable - taken, *(() if sizes == (8, 8) else sizes)
        )
        # The option is kept as given: on another machine something else may fit.
        own_again = {name: given for name in own if name == "rows_at_once"}
        return Plan(planned | own_again, needed + taken, few)

    if given is not None:
        return plan(given)
    # Only if the number of variables is the reason, not an absurd population size.
    alone = whole is None and not kept and size <= n
    if alone:
        fitting = int(usable * _SHARE_FOR_ROWS) // (kernel.entry_bytes * n)
        for rows in ("all", max(fitting, 1)):
            with contextlib.suppress(MemoryError):
                return plan(rows)
    return plan(1 if alone else "all")


def check_integers(space: Space, options: dict[str, Any], kernel: Kernel) -> None:
    """Refuse what cannot be combined with integers."""
    handling = options["bounds_handling"]
    if space.integers is not None and handling != "smooth":
        raise ValueError(f"bounds_handling={handling!r} cannot be combined with integers")
    if space.integers is not None and kernel.device is not None:
        raise ValueError(f"integers cannot be combined with device={kernel.device!r}")


def patience(n: int, box: Box | None) -> int:
    """Return the number of generations without progress that are allowed.

    About one integer per generation changes by 1, so in that time each has changed about five times
    up and down.
    """
    integers = 10 * box.count if isinstance(box, Rounded) else 0
    return max(n, 200, integers)


def widest_sigma(box: Box | None, sigma0: float) -> float:
    """Return the largest mutation strength on a plateau: no wider than the box."""
    widest = PLATEAU_LIMIT * sigma0
    if box is None:
        return widest
    width = box.upper - box.lower
    finite = width[np.isfinite(width)]
    return min(widest, float(finite.max())) if finite.size else widest
