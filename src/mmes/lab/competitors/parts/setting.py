"""Common data of every competitor: the box, its random numbers, the best point so far."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from mmes.base.randomness import Stream
from mmes.lab.competitors.parts.draws import Draws, Vector

Result = TypeVar("Result")
Asking = Generator[Vector, Vector, Result]
"""A search, or a part of one: yields points (k, n), is sent their k values, returns a result.

The values are finite: the shell has put `WORST` in the place of NaN and +inf. An array that was
yielded is not changed afterwards.
"""

WORST = 1e300
"""Stands for a failed evaluation: ranks last, and differences with it are finite."""


@dataclass(frozen=True)
class Setting:
    """The problem as an algorithm sees it."""

    # lower, upper: the box, finite on all sides.
    lower: Vector
    upper: Vector
    start: Vector  # The start point, one member of the first population.
    draws: Draws  # The random numbers.

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.lower.size

    @property
    def width(self) -> Vector:
        """The width of the box, one entry per variable."""
        return self.upper - self.lower

    def clip(self, points: Vector) -> Vector:
        """Return the points with every coordinate moved to the nearest one in the box."""
        return np.minimum(np.maximum(points, self.lower), self.upper)

    def uniform_points(self, count: int, step: int = 0) -> Vector:
        """Return points that are uniform in the box."""
        shares = self.draws.uniforms(count * self.n, Stream.FIRST_POPULATION, step)
        return self.clip(self.lower + shares.reshape(count, self.n) * self.width)

    def first_population(self, count: int) -> Vector:
        """Return uniform points, the first replaced by the start point."""
        points = self.uniform_points(count)
        points[0] = self.start
        return points


@dataclass
class Incumbent:
    """The best point so far, and its value."""

    x: Vector
    value: float

    @classmethod
    def of(cls, points: Vector, values: Vector) -> Incumbent:
        """Return the best of some points."""
        best = int(values.argmin())
        return cls(points[best].copy(), float(values[best]))

    def offer(self, points: Vector, values: Vector) -> bool:
        """Keep the best of some points if it is better; return whether it was."""
        best = int(values.argmin())
        if not values[best] < self.value:
            return False
        self.x, self.value = points[best].copy(), float(values[best])
        return True


def reflect(points: Vector, lower: Vector, upper: Vector) -> None:
    """Reflect, in place, coordinates at the bounds they exceed, wrapping what is farther out.

    A coordinate u above the upper bound becomes upper - (u - upper) mod (upper - lower), one below
    the lower bound correspondingly.
    """
    for beyond, wall, towards in ((points > upper, upper, -1.0), (points < lower, lower, 1.0)):
        if beyond.any():
            rows, columns = beyond.nonzero()
            width = (upper - lower)[columns]
            at = wall[columns]
            past = np.abs(points[rows, columns] - at)
            inside = np.fmod(past, np.where(width > 0.0, width, 1.0))
            points[rows, columns] = np.where(width > 0.0, at + towards * inside, at)


def told(asking: Generator[Vector, Vector, Any], function: Any) -> Any:
    """Run a search with a function of (k, n) points and return its result."""
    try:
        points = next(asking)
        while True:
            points = asking.send(function(points))
    except StopIteration as end:
        return end.value
