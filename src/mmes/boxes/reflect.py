"""Reflection: a coordinate outside the box is folded back, as a ray between two mirrors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmes.boxes.box import Box, BoxCode, Vector


@dataclass(frozen=True)
class Reflect(Box):
    """The mirror image in the box; where only one bound is finite, in that mirror."""

    name = "reflect"
    code = BoxCode.REFLECT

    def map_points(self, points: Vector) -> Vector:
        """See `Box.map_points`."""
        inside = (points >= self.lower) & (points <= self.upper)
        folded = np.where(inside, points, fold(points, self.lower, self.upper))
        return np.clip(folded, self.lower, self.upper)


def fold(points: Vector, lower: Vector, upper: Vector) -> Vector:
    """Return the points folded onto [lower, upper], up to rounding at the walls."""
    with np.errstate(invalid="ignore", over="ignore"):
        period = 2.0 * (upper - lower)
        two_sided = np.isfinite(period) & (period > 0)
        span = np.where(two_sided, period, 1.0)
        start = np.where(two_sided, lower, 0.0)
        t = np.fmod(points - start, span)
        t = np.where(t < 0, t + span, t)
        between = start + np.where(2.0 * t <= span, t, span - t)
        once = np.where(
            points < lower,
            2.0 * lower - points,
            np.where(points > upper, 2.0 * upper - points, points),
        )
        return np.where(two_sided, between, np.where(period == 0, lower, once))
