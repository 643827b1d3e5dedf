"""Linear constraints: whether any point satisfies them, and points that do to rounding."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.arrays import Vector
from mmes.evaluate.constrained import Part
from mmes.spaces.space import Space

# Entries of the matrices up to which a linear program is solved before a run.
_SMALL = 1_000_000
# Each round corrects all rows that are violated; later ones only rounding and new ones.
_ROUNDS = 50
# How far inside its limit an inequality is put, in units of rounding.
_ULPS = 8.0
_EPSILON = float(np.finfo(np.float64).eps)


def exact_point(
    x: Vector,
    parts: Sequence[Part],
    box: tuple[Vector, Vector] | None = None,
    fixed: NDArray[np.bool_] | None = None,
) -> Vector | None:
    """Return a point near x that satisfies the linear constraints among `parts` to rounding.

    Rows that are violated are solved for, with the shortest step; variables that reach a bound stay
    there, and those that are `fixed`, such as integers, keep their values. x lies within the box.
    None if x satisfies them, there are none, or no such point was found.
    """
    rows, lower, upper = _stacked(parts)
    low, high = (np.full(x.size, -np.inf), np.full(x.size, np.inf)) if box is None else box
    free = np.ones(x.size, dtype=bool) if fixed is None else ~fixed
    found = x.copy()
    for _ in range(_ROUNDS):
        value = rows @ found
        error = _EPSILON * (np.abs(rows) @ np.abs(found) + np.abs(value))
        equal = lower == upper
        lacks, exceeds = value < lower - error * equal, value > upper + error * equal
        if not (lacks | exceeds).any():
            return None if np.array_equal(found, x) else found
        inside = np.where(equal, 0.0, _ULPS * error)
        goal = np.where(lacks, lower + inside, upper - inside)
        wrong = lacks | exceeds | equal
        step = np.zeros(x.size)
        matrix = rows[np.ix_(wrong, free)]
        step[free] = np.linalg.lstsq(matrix, (goal - value)[wrong], rcond=None)[0]
        moved = found + step
        if not np.isfinite(moved).all():
            return None
        found = np.clip(moved, low, high)
        free &= found == moved
    return None


def check_feasible(parts: Sequence[Part], space: Space) -> None:
    """Refuse linear constraints that no point satisfies, by a linear program (needs SciPy)."""
    linear = [part for part in parts if part.matrix is not None]
    for part in linear:
        if part.matrix.shape[1] != space.n:
            raise ValueError(
                f"the matrix of a linear constraint must have {space.n} columns, one per variable, "
                f"not {part.matrix.shape[1]}"
            )
    entries = sum(part.matrix.shape[0] * part.matrix.shape[1] for part in linear)
    if not linear or entries > _SMALL or importlib.util.find_spec("scipy") is None:
        return
    optimize: Any = importlib.import_module("scipy.optimize")
    rows, lower, upper = _stacked(linear)
    equal = lower == upper
    above, below = np.isfinite(upper) & ~equal, np.isfinite(lower) & ~equal
    found = optimize.linprog(
        np.zeros(space.n),
        np.concatenate((rows[above], -rows[below])),
        np.concatenate((upper[above], -lower[below])),
        rows[equal],
        lower[equal],
        bounds=(None, None) if space.box is None else np.column_stack(space.box),
    )
    if found.status == 2:
        where = "" if space.box is None else " within the bounds"
        raise ValueError(
            f"the linear constraints contradict each other: no point satisfies all of them{where}"
        )


def _stacked(parts: Sequence[Part]) -> tuple[Vector, Vector, Vector]:
    """Return the rows of all linear constraints, and their limits."""
    tables, lowers, uppers = [], [], []
    for part in parts:
        if part.matrix is not None:
            matrix: Any = part.matrix
            table = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
            tables.append(table)
            lowers.append(np.broadcast_to(part.lower, len(table)))
            uppers.append(np.broadcast_to(part.upper, len(table)))
    return np.concatenate(tables), np.concatenate(lowers), np.concatenate(uppers)
