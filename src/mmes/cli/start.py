"""The start of a run from the command line: the flags, completed by the problem's box."""

from __future__ import annotations

from typing import Any

import numpy as np

from mmes import checkpoint as files
from mmes.base.randomness import fresh_seed
from mmes.cli.arguments import vector
from mmes.cli.status import Mistake
from mmes.problems import Problem
from mmes.run.restarts import uniform_start
from mmes.spaces.bounds import checked_bounds
from mmes.spaces.start import size_of_box


def where_to_start(
    arguments: Any, problem: Problem | None, options: dict[str, Any], needs_box: bool
) -> dict[str, Any]:
    """Return x0, sigma0, bounds with their handling and scale, and the seed of a drawn start.

    `problem` is the built-in problem, if it is one; `needs_box` says whether the search stays in
    its box. The options are needed for the seed.
    """
    x0, bounds = arguments.x0, arguments.bounds
    n = _dimension(arguments.dim if problem is None else problem.dimension, x0, bounds)
    if x0 is not None and np.ndim(x0) == 0:
        x0 = np.full(n, x0)
    if bounds is not None:
        bounds = tuple(np.full(n, side) if np.ndim(side) == 0 else side for side in bounds)
    if problem is None and bounds is None and (x0 is None or arguments.sigma0 is None):
        raise Mistake("a start is needed: give --x0 and --sigma0, or --bounds LOW,HIGH")
    found: dict[str, Any] = {"x0": x0, "sigma0": arguments.sigma0, "bounds": bounds}
    if arguments.scale is not None:
        found["scale"] = arguments.scale
    if problem is not None and bounds is None and needs_box:
        found["bounds"] = problem.bounds
    elif problem is not None and bounds is None and problem.treatment != "none":
        found["bounds"] = problem.bounds
        found["bounds_handling"] = options.get("bounds_handling", problem.treatment)
    elif problem is not None and bounds is None:
        # The box says where to start; the search may leave it, as in the paper's experiments.
        if x0 is None:
            seed = options.get("seed", _seed_so_far(arguments))
            found["seed"] = fresh_seed() if seed is None else seed
            found["x0"] = uniform_start(problem.lower, problem.upper, found["seed"])
        if arguments.sigma0 is None:
            if arguments.scale is not None:
                raise Mistake("--scale needs --sigma0, which multiplies it")
            found["sigma0"], found["scale"] = size_of_box(problem.lower, problem.upper)
    return found


def _dimension(given: Any, x0: Any, bounds: tuple[Any, Any] | None) -> int:
    if given is not None and (not isinstance(given, int) or given < 1):
        raise Mistake(f"--dim must be an integer >= 1, not {given!r}")
    listed = {"--x0": x0} | ({} if bounds is None else {"--bounds": bounds[0]})
    sizes = {flag: np.size(a) for flag, a in listed.items() if a is not None and np.ndim(a)}
    for flag, size in sizes.items():
        if given is not None and size != given:
            raise Mistake(f"{flag} has {size} entries, but there are {given} variables")
    if given is None and not sizes:
        raise Mistake(
            "the number of variables is needed: give --dim N, or --x0 or --bounds with one "
            "entry per variable"
        )
    return given or next(iter(sizes.values()))


def _seed_so_far(arguments: Any) -> int | None:
    """Return the seed of the run to resume, if there is one: its start point depends on it."""
    path = arguments.home_of(arguments.checkpoint)
    if path is None or getattr(arguments, "resume", None) != "auto" or not files.exists(path):
        return None
    seed = files.read(path)[0]["seed"]
    return seed if isinstance(seed, int) else None


def bounds_of(text: str) -> tuple[Any, Any]:
    """Return the bounds given as a text."""
    found = np.asarray(vector(text, "--bounds"))
    if found.shape == (2,):
        return found[0], found[1]
    if found.ndim != 2 or 2 not in found.shape:
        raise Mistake(f"--bounds must be LOW,HIGH or a file with two rows or columns, not {text!r}")
    sides: Any = tuple(found if len(found) == 2 else found.T)
    if found.shape == (2, 2):
        # Rows or columns? `checked_bounds` decides, as it does for `minimize`.
        sides = tuple(map(tuple, found.tolist()))
    try:
        box = checked_bounds(sides, None)
    except (TypeError, ValueError) as error:
        raise Mistake(str(error)) from error
    assert box is not None
    return box
