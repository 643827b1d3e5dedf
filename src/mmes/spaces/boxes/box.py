"""What a box treatment is: the bounds, and a map of points into them and back."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class BoxCode(IntEnum):
    """The treatments that compiled kernels know by heart; the values are those of the native one.

    A treatment without a code of its own works too: kernels on the host call its `map_points`.
    """

    NONE = 0
    CLIP = 1
    REFLECT = 2
    SMOOTH = 3
    OWN = -1


class Start(NamedTuple):
    """Where a search begins, for treatments that depend on it."""

    point: Vector
    reach: Vector | float
    """Standard deviation of the first steps: sigma0 times the scale."""


@dataclass(frozen=True)
class Box:
    """The box of feasible points, and how the points of a search are brought into it.

    Attributes
    ----------
    lower, upper : ndarray
        The bounds, one entry per variable; infinite ones do not bind.
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
        """Return the treatment for a search that begins there."""
        del start
        return cls(lower, upper)

    def map_points(self, points: Vector) -> Vector:
        """Return the points of the box that stand for points of the search, one per row."""
        raise NotImplementedError(f"{type(self).__name__} must define map_points")

    def map_back(self, point: Vector) -> Vector:
        """Return a point of the search that stands for this point of the box."""
        return np.array(point)

    def walls(self) -> Box | None:
        """Return the map of points that are no candidates; None where they are clipped."""
        return None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a state keeps of it; `from_arrays` makes the same box again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the box that `arrays` was taken from; ValueError if they are none of a box."""
        made = {f.name: np.array(arrays[f.name], dtype=np.float64) for f in fields(cls)}
        for name, array in made.items():
            side = name in ("lower", "upper")
            good = ~np.isnan(array) if side else np.isfinite(array) & (array >= 0)
            if array.shape != made["lower"].shape or not good.all():
                raise ValueError(f"{name} is not a valid array of a box")
        return cls(**made)
