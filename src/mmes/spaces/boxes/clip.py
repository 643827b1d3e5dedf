"""Clipping: a coordinate outside the box is moved to the bound, as in the tables of the CEC suites.

An optimum on a bound is hard for it: most candidates lie on the bound, and steps along it are cut.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmes.spaces.boxes.box import Box, BoxCode, Vector


@dataclass(frozen=True)
class Clip(Box):
    """The nearest point of the box."""

    name = "clip"
    code = BoxCode.CLIP
    onto_walls = True

    def map_points(self, points: Vector) -> Vector:
        return np.clip(points, self.lower, self.upper)
