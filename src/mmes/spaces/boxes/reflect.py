"""Reflection: a coordinate outside the box is mirrored at the bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mmes.spaces.boxes.box import Box, BoxCode, Vector


@dataclass(frozen=True)
class Reflect(Box):
    """The mirror image in the box; if only one bound is finite, at that bound."""

    name = "reflect"
    code = BoxCode.REFLECT

    def map_points(self, points: Vector) -> Vector:
        inside = (points >= self.lower) & (points <= self.upper)
        folded = np.where(inside, points, fold(points, self.lower, self.upper))
        return np.clip(folded, self.lower, self.upper)


def fold(points: Any, lower: Any, upper: Any, arrays: Any = np) -> Any:
    """Return the points folded onto [lower, upper], up to rounding at the walls.

    `arrays` is the module of the arrays: numpy or torch.
    """
    where = arrays.where
    with np.errstate(invalid="ignore", over="ignore"):
        period = 2.0 * (upper - lower)
        two_sided = arrays.isfinite(period) & (period > 0)
        span = where(two_sided, period, 1.0)
        start = where(two_sided, lower, 0.0)
        t = arrays.fmod(points - start, span)
        t = where(t < 0, t + span, t)
        between = start + where(2.0 * t <= span, t, span - t)
        above = where(points > upper, 2.0 * upper - points, points)
        once = where(points < lower, 2.0 * lower - points, above)
        return where(two_sided, between, where(period == 0, lower, once))
