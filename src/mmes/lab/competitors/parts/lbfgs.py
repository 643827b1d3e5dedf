"""L-BFGS in a box, with gradients by forward differences.

A limited-memory quasi-Newton method with gradient projection, instead of L-BFGS-B (Zhu, Byrd, Lu,
Nocedal 1997), written as a generator of points: a gradient is n points, a trial of the line search
one. It differs from L-BFGS-B in how it deals with bounds and in its line search;
docs/competitors.md says how.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmes.lab.competitors.parts.draws import Vector
from mmes.lab.competitors.parts.setting import WORST, Asking, Incumbent, Setting
from mmes.lab.competitors.parts.solis_wets import Gains

PAIRS = 10
"""Corrections kept, the m of the method."""
DIFFERENCE = 1e-8
"""Step of the differences, for coordinates up to 1; relative beyond."""
SUFFICIENT = 1e-4
"""Share of the decrease that the gradient promises which a step must bring."""
TRIALS = 20
"""Trials of a line search at most, each way."""
FLATTEST = 1e-5
"""The search ends when no component of the projected gradient is larger."""
SLOWEST = 1e7 * 2.0**-52
"""The search ends when an iteration gains less than this, relative to the value or to 1."""
ROWS = 256
"""Points asked at a time."""


def dot(one: Vector, other: Vector) -> float:
    """Return the scalar product, with an order of additions that does not depend on a library."""
    return float((one * other).sum())


class Corrections:
    """The last steps, and the changes of the gradient along them: an inverse Hessian in brief."""

    def __init__(self) -> None:
        self._pairs: deque[tuple[Vector, Vector, float]] = deque(maxlen=PAIRS)

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, step: Vector, change: Vector) -> None:
        """Keep a pair, unless the curvature along it is not positive."""
        curvature = dot(step, change)
        if curvature > 2.2e-16 * dot(change, change):
            self._pairs.append((step, change, curvature))

    def clear(self) -> None:
        """Forget all pairs."""
        self._pairs.clear()

    def times(self, vector: Vector) -> Vector:
        """Return the inverse Hessian times a vector, by the two-loop recursion."""
        result = vector.copy()
        shares: list[float] = []
        for step, change, curvature in reversed(self._pairs):
            share = dot(step, result) / curvature
            result -= share * change
            shares.append(share)
        if self._pairs:
            _, change, curvature = self._pairs[-1]
            result *= curvature / dot(change, change)
        for (step, change, curvature), share in zip(self._pairs, reversed(shares), strict=True):
            result += (share - dot(change, result) / curvature) * step
        return result


@dataclass
class _Budget:
    left: int
    gains: Gains

    def note(self, old: float, new: float) -> None:
        self.left -= 1
        self.gains.note(old, new)


def lbfgs(setting: Setting, point: Incumbent, evaluations: int) -> Asking[Gains]:
    """Improve a point in place with at most this many evaluations.

    It ends earlier if the point is stationary, an iteration gains nothing, or too few evaluations
    are left for another gradient.
    """
    budget = _Budget(evaluations, Gains())
    corrections = Corrections()
    previous: tuple[Vector, Vector] | None = None
    while budget.left > setting.n:
        gradient = yield from _gradient(setting, point, budget)
        if previous is not None:
            corrections.add(point.x - previous[0], gradient - previous[1])
        previous = point.x, gradient
        # A coordinate at a wall that pushes against it is held there.
        held = ((point.x <= setting.lower) & (gradient > 0.0)) | (
            (point.x >= setting.upper) & (gradient < 0.0)
        )
        if not np.abs(np.where(held, 0.0, gradient)).max() > FLATTEST:
            break
        before = point.value
        yield from _descend(setting, point, gradient, held, corrections, budget)
        largest = max(abs(before), abs(point.value), 1.0)
        if not before - point.value > SLOWEST * largest:
            break
    return budget.gains


def _gradient(setting: Setting, point: Incumbent, budget: _Budget) -> Asking[Vector]:
    x, n = point.x, setting.n
    steps = DIFFERENCE * np.maximum(1.0, np.abs(x))
    steps = np.minimum(steps, np.where(setting.width > 0.0, 0.5 * setting.width, 1.0))
    steps = np.where(x + steps > setting.upper, -steps, steps)
    moved = setting.clip(x + steps)
    gradient = np.zeros(n)
    for begin in range(0, n, ROWS):
        columns = np.arange(begin, min(begin + ROWS, n))
        points = np.repeat(x[None, :], columns.size, axis=0)
        points[np.arange(columns.size), columns] = moved[columns]
        values = yield points
        budget.left -= columns.size
        budget.gains.evaluations += columns.size
        lengths = moved[columns] - x[columns]
        usable = (lengths != 0.0) & (values < WORST)
        slopes = (values - point.value) / np.where(usable, lengths, 1.0)
        gradient[columns] = np.where(usable, slopes, 0.0)
    return gradient


def _descend(
    setting: Setting,
    point: Incumbent,
    gradient: Vector,
    held: NDArray[np.bool_],
    corrections: Corrections,
    budget: _Budget,
) -> Asking[None]:
    """Move the point along a quasi-Newton direction bent at the bounds; leave it if none helps."""
    downhill = np.where(held, 0.0, -gradient)
    direction = np.where(held, 0.0, corrections.times(downhill))
    if not dot(direction, downhill) > 0.0:
        corrections.clear()
        direction = downhill
    length = 1.0
    if not len(corrections):
        length = 1.0 / float(np.sqrt(dot(direction, direction)))
    start, before = point.x, point.value
    grow = None  # whether steps get longer; the first trial tells
    for _ in range(TRIALS):
        if budget.left == 0:
            return
        trial = setting.clip(start + length * direction)
        value = float((yield trial[None, :])[0])
        promised = dot(gradient, trial - start)
        enough = value < point.value and value <= before + SUFFICIENT * promised
        budget.note(point.value, value)
        if enough:
            point.x, point.value = trial, value
        if grow is None:
            grow = enough
        if grow != enough:
            return
        length *= 2.0 if grow else _shrinkage(before, value, promised)


def _shrinkage(before: float, value: float, promised: float) -> float:
    """Return by how much a step that failed is shortened: to the vertex of the parabola."""
    excess = value - before - promised
    return min(max(-0.5 * promised / excess, 0.1), 0.5) if excess > 0.0 else 0.5
