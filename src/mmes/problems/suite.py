"""Common code of the two CEC suites: reads the official arrays and builds problems from parts."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.problems.composition import Composition, Part
from mmes.problems.problem import Problem, Vector, box

Arrays = dict[str, NDArray[Any]]

CHECKPOINTS = (120_000, 600_000, 3_000_000)
"""Evaluations after which the competitions record the best value; the last one is the budget."""

TREATMENT = "clip"
"""How candidates are kept in the box: so the published results come out."""


def official_arrays(suite: str, number: int) -> Arrays:
    """Return the official arrays of one function, by their names without the ``fNN_`` prefix."""
    file = resources.files("mmes.problems") / "data" / suite / f"{suite}.npz"
    prefix = f"f{number:02d}_"
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        return {
            name.removeprefix(prefix): arrays[name]
            for name in arrays.files
            if name.startswith(prefix)
        }


def make_problem(
    name: str,
    description: str,
    parts: Sequence[Part],
    *,
    dimension: int,
    bound: float,
    minimizer: Vector | None,
    strict: bool,
) -> Problem:
    """Return the problem that is the sum of the parts, in the box [-bound, bound]^dimension.

    Its details contain the structure that a solver should not know: ``groups`` (the variables of
    each non-separable part), ``group_sizes``, ``weights``, ``separable`` (the variables of the
    separable part) and ``checkpoints`` (when the competitions record the best value).
    """
    if not isinstance(strict, bool):
        raise TypeError(f"strict must be True or False, not {strict!r}")
    lower, upper = box(dimension, -bound, bound)
    if minimizer is not None:
        minimizer.setflags(write=False)
    groups = [part for part in parts if not part.separable]
    details = {
        "groups": tuple(part.index for part in groups),
        "group_sizes": tuple(len(part.index) for part in groups),
        "weights": tuple(part.weight for part in groups),
        "separable": np.concatenate(
            [part.index for part in parts if part.separable] or [np.empty(0, np.int32)]
        ),
        "checkpoints": CHECKPOINTS,
        "strict": strict,
    }
    function = Composition(tuple(parts), (lower, upper) if strict else None)
    minimum = None if minimizer is None else 0.0
    return Problem(
        name, dimension, function, lower, upper, minimizer, minimum, description, details, TREATMENT
    )


def positions(values: NDArray[Any]) -> NDArray[np.int32]:
    """Return a stored permutation as the index type of `Part`."""
    return values.astype(np.int32)
