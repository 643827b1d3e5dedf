"""Checks of what constraints can be combined with, before a run starts."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np

from mmes.constraints.given import Constraints
from mmes.evaluate.adapter import is_evaluator
from mmes.spaces.space import Space
from mmes.strategies import AskTell

# Entries of the matrices up to which a linear program is solved before a run.
_SMALL = 1_000_000


def check_usable(given: Constraints, settings: Any, workers: Any) -> None:
    """Refuse unsupported combinations, and linear constraints that contradict each other."""
    strategy, space = settings.strategy, settings.space
    if space.integers is not None and any(
        part.tol is None and (part.lower == part.upper).any() for part in given.parts
    ):
        raise ValueError(
            "with integer variables an equality needs a tolerance: mmes.Equality(h, tol)"
        )
    if not issubclass(strategy, AskTell):
        raise ValueError(
            f"constraints cannot be combined with the strategy {strategy.name!r}, which "
            "compares new candidates with the values of old ones: use 'auto' or an evolution "
            "strategy"
        )
    if is_evaluator(workers) and (not given.returned or len(given.parts) > 1):
        raise ValueError(
            "a custom evaluator must return the constraints itself, one row per point: set "
            "returns_constraints=True and omit constraints="
        )
    _check_linear(given, space)


def _check_linear(given: Constraints, space: Space) -> None:
    """Check by a linear program (needs SciPy) whether the linear constraints are feasible."""
    linear = [part for part in given.parts if part.matrix is not None]
    if not linear:
        return
    sides = space.box
    for part in linear:
        if part.matrix.shape[1] != space.n:
            raise ValueError(
                f"the matrix of a linear constraint must have {space.n} columns, one per variable, "
                f"not {part.matrix.shape[1]}"
            )
    entries = sum(part.matrix.shape[0] * part.matrix.shape[1] for part in linear)
    if entries > _SMALL or importlib.util.find_spec("scipy") is None:
        return
    optimize: Any = importlib.import_module("scipy.optimize")
    rows, limits, equal_rows, equal_limits = [], [], [], []
    for part in linear:
        matrix = part.matrix if isinstance(part.matrix, np.ndarray) else part.matrix.toarray()
        equal, above, below = part.sides(matrix.shape[0])
        lower, upper = (np.broadcast_to(side, matrix.shape[0]) for side in (part.lower, part.upper))
        rows += [matrix[above], -matrix[below]]
        limits += [upper[above], -lower[below]]
        equal_rows.append(matrix[equal])
        equal_limits.append(lower[equal])
    found = optimize.linprog(
        np.zeros(space.n),
        np.concatenate(rows),
        np.concatenate(limits),
        np.concatenate(equal_rows),
        np.concatenate(equal_limits),
        bounds=(None, None) if sides is None else np.column_stack(sides),
    )
    if found.status == 2:
        where = "" if sides is None else " within the bounds"
        raise ValueError(
            f"the linear constraints contradict each other: no point satisfies all of them{where}"
        )
