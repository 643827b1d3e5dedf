"""Points that satisfy linear constraints to rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.arrays import Vector
from mmes.evaluate.constrained import Part

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
