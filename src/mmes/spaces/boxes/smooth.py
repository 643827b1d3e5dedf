"""Smooth bounds: the search runs without bounds in y, and f is evaluated at x = T(y) in the box.

With a transition zone (knee) of half-width a at a bound, for each variable:

    fold y onto [lower - a, upper + a], as between mirrors;
    y < lower + a:  x = lower + (y - (lower - a))^2 / (4 a)
    y > upper - a:  x = upper - (y - (upper + a))^2 / (4 a)
    else            x = y

T is the identity inside and has a continuous derivative, so that an optimum at a bound becomes a
smooth minimum instead of a corner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from mmes.spaces.boxes.box import Box, BoxCode, Start, Vector
from mmes.spaces.boxes.reflect import fold

# The knee as a share of the width. Larger ones are a little faster on walls and bad where optima
# lie near a wall; smaller ones are slower on walls (docs/bounds.md).
KNEE = 0.03


@dataclass(frozen=True)
class Smooth(Box):
    """The map T."""

    name = "smooth"
    code = BoxCode.SMOOTH
    maps_points = True

    # The half-width a of the knees of each variable; 0 for a fixed or unbounded variable.
    knee: Vector

    @classmethod
    def around(cls, lower: Vector, upper: Vector, start: Start) -> Self:
        """See `Box.around`: with only one bound, its distance from the start determines a."""
        with np.errstate(invalid="ignore"):
            width = upper - lower
            wall = np.where(np.isfinite(lower), lower, upper)
            distance = np.maximum(np.abs(start.point - wall), start.reach)
        free = np.isinf(lower) & np.isinf(upper)
        size = np.where(np.isfinite(width), width, np.where(free, 0.0, distance))
        return cls(lower, upper, np.ascontiguousarray(KNEE * size))

    def map_points(self, points: Vector) -> Vector:
        a = self.knee
        y = fold(points, self.lower - a, self.upper + a)
        quarter = np.where(a > 0, 0.25 / np.where(a > 0, a, 1.0), 0.0)
        with np.errstate(invalid="ignore", over="ignore"):
            from_lower, from_upper = y - (self.lower - a), (self.upper + a) - y
            x = np.where(from_lower < 2.0 * a, self.lower + quarter * from_lower**2, y)
            x = np.where(from_upper < 2.0 * a, self.upper - quarter * from_upper**2, x)
        return np.clip(x, self.lower, self.upper)

    def map_back(self, point: Vector) -> Vector:
        """See `Box.map_back`: the point of the search in the fold where T is the identity."""
        a = self.knee
        with np.errstate(invalid="ignore"):
            above, below = point - self.lower, self.upper - point
            low = self.lower - a + np.sqrt(4.0 * a * np.maximum(above, 0.0))
            high = self.upper + a - np.sqrt(4.0 * a * np.maximum(below, 0.0))
        return np.where(above < a, low, np.where(below < a, high, point))
