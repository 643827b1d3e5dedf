"""The interface of a treatment of bounds: the bounds, and a map of points into them and back."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import ClassVar, NamedTuple, Self

import numpy as np

from mmes.base.arrays import Arrays, Vector


class BoxCode(IntEnum):
    """The treatments built into the compiled kernels; the values are those of the native kernel.

    Other treatments work too: kernels on the host call their `map_points`.
    """

    NONE = 0
    CLIP = 1
    REFLECT = 2
    SMOOTH = 3
    OWN = -1


class Start(NamedTuple):
    """The start of a search, for treatments that depend on it."""

    point: Vector
    reach: Vector | float
    """Standard deviation of the first steps: sigma0 times the scale."""


@dataclass(frozen=True)
class Box:
    """The box of feasible points, and how the points of a search are brought into it.

    Attributes
    ----------
    lower, upper : ndarray
        The bounds, one entry per variable; infinite entries mean no bound.
    """

    name: ClassVar[str]
    """The word for `bounds_handling`."""
    code: ClassVar[BoxCode] = BoxCode.OWN
    maps_points: ClassVar[bool] = False
    """Whether the search keeps its own points. If not, the treated point is the candidate: it is
    evaluated, recombined and remembered. If so, a second population is needed for the images."""
    onto_walls: ClassVar[bool] = False
    """Whether all that lies outside goes onto the wall, so that a mean outside does no harm."""

    lower: Vector
    upper: Vector

    @classmethod
    def around(cls, lower: Vector, upper: Vector, start: Start) -> Self:
        """Return the treatment for a search with this start."""
        del start
        return cls(lower, upper)

    def map_points(self, points: Vector) -> Vector:
        """Return the points of the box for points of the search, one per row."""
        raise NotImplementedError(f"{type(self).__name__} must define map_points")

    def map_back(self, point: Vector) -> Vector:
        """Return a point of the search that is mapped to this point of the box."""
        return np.array(point)

    def walls(self) -> Box | None:
        """Return the map of points that are not candidates; None if they are clipped."""
        return None

    def arrays(self) -> Arrays:
        """Return its arrays for a state; `from_arrays` restores the box."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Return the box with these arrays; ValueError if they are invalid."""
        made = {f.name: np.array(arrays[f.name], dtype=np.float64) for f in fields(cls)}
        for name, array in made.items():
            side = name in ("lower", "upper")
            good = ~np.isnan(array) if side else np.isfinite(array) & (array >= 0)
            if array.shape != made["lower"].shape or not good.all():
                raise ValueError(f"{name} is not a valid array of a box")
        return cls(**made)
