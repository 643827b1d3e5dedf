"""Integer variables: the search runs in real numbers, and f is evaluated at rounded ones.

An integer variable with bounds is folded onto [lower - 1/2, upper + 1/2] before it is rounded, so
that both ends are as likely as the integers between them. The other variables have smooth bounds.

A variable whose steps are much shorter than 1/2 would stay on its integer forever. So its steps are
widened, in each generation, to a standard deviation with which about three integers of a generation
change while the mean lies in the middle of them: the margin of Hamano et al. 2022 for such a mean.
N.B. they change the covariance matrix and the mean; here only the candidates are changed, from
which every strategy can learn. And they let one integer change: with three, bbob-mixint reaches
more targets (n = 20: 0.37 of them instead of 0.30).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mmes.spaces.bounds import first_of
from mmes.spaces.boxes.box import Box, Start, Vector
from mmes.spaces.boxes.reflect import fold
from mmes.spaces.boxes.smooth import Smooth

# How many integers of a generation change, at least.
_CHANGES = 3.0


@dataclass(frozen=True)
class Rounded(Box):
    """Rounded integers, and smooth bounds for the other variables."""

    name = "rounded"
    maps_points = True

    knee: Vector  # As of `Smooth`; 0 for integers.
    integers: Vector  # 1 for integers, 0 for the others.

    @classmethod
    def around(cls, lower: Vector, upper: Vector, start: Start) -> Self:
        """Not used here; see `of_integers`."""
        raise NotImplementedError("integers are needed")

    @classmethod
    def of_integers(cls, box: tuple[Vector, Vector], mask: NDArray[np.bool_], start: Start) -> Self:
        """Return the treatment for a search with this start; `mask` marks the integers."""
        lower, upper = box
        knee = np.where(mask, 0.0, Smooth.around(lower, upper, start).knee)
        return cls(lower, upper, np.ascontiguousarray(knee), mask.astype(np.float64))

    def map_points(self, points: Vector) -> Vector:
        found = Smooth(self.lower, self.upper, self.knee).map_points(points)
        mask = self.integers > 0
        lower, upper = self.lower[mask], self.upper[mask]
        folded = fold(points[..., mask], lower - 0.5, upper + 0.5)
        found[..., mask] = np.clip(np.rint(folded), lower, upper)
        return found

    def map_back(self, point: Vector) -> Vector:
        return Smooth(self.lower, self.upper, self.knee).map_back(point)

    def walls(self) -> Box:
        """See `Box.walls`: integers are rounded too."""
        return RoundedWalls(self.lower, self.upper, self.integers)

    @property
    def count(self) -> int:
        """The number of integer variables that are not fixed."""
        return int(((self.integers > 0) & (self.lower < self.upper)).sum())

    @property
    def alone(self) -> bool:
        """Whether no other variable can change."""
        return not bool(((self.integers == 0) & (self.lower < self.upper)).any())

    def least_sigma(self, candidates: int, smallest: float) -> float:
        """Return the lower limit of the mutation strength.

        Where only integers can change, their margin; else `smallest`: shorter steps are none.
        """
        return margin(self.count * candidates) if self.alone else smallest

    def widen(self, points: Vector, mean: Vector) -> None:
        """Widen the steps of integer variables that are too short to change them, in place."""
        columns = np.flatnonzero((self.integers > 0) & (self.lower < self.upper))
        steps = points[:, columns] - mean[columns]
        variances = np.add.reduce(steps * steps, axis=0) / len(points)
        least = margin(int(columns.size * len(points) / _CHANGES))
        short = (variances < least * least) & (variances > 0)
        if short.any():
            columns, steps = columns[short], steps[:, short]
            points[:, columns] = mean[columns] + steps * (least / np.sqrt(variances[short]))


@dataclass(frozen=True)
class RoundedWalls(Box):
    """Clipping and rounding, for points that are not candidates."""

    name = "rounded-walls"

    integers: Vector

    def map_points(self, points: Vector) -> Vector:
        return np.clip(np.where(self.integers > 0, np.rint(points), points), self.lower, self.upper)


def margin(draws: int) -> float:
    """Return the standard deviation with which one of `draws` draws leaves an integer."""
    from statistics import NormalDist  # here: it imports fractions and decimal

    return 0.5 / NormalDist().inv_cdf(1.0 - 0.5 / max(draws, 2))


def integer_box(
    box: tuple[Vector, Vector] | None, mask: NDArray[np.bool_]
) -> tuple[Vector, Vector]:
    """Return bounds with integers for integer variables; infinite without a bound.

    Raises ValueError if there is no integer within the bounds of a variable.
    """
    lower, upper = box or (np.full(mask.size, -np.inf), np.full(mask.size, np.inf))
    lower, upper = np.where(mask, np.ceil(lower), lower), np.where(mask, np.floor(upper), upper)
    if (at := first_of(lower > upper)) is not None:
        raise ValueError(f"variable {at} must be an integer, but there is none within its bounds")
    return lower, upper


def integer_mask(integers: Any, n: int) -> NDArray[np.bool_]:
    """Return which of n variables are integers.

    Raises TypeError or ValueError if `integers` is neither indices of variables nor a mask nor
    True.
    """
    if integers is True:
        return np.ones(n, dtype=bool)
    given = np.atleast_1d(np.asarray(integers))
    if given.dtype == bool and given.shape == (n,):
        return given.copy()
    if given.ndim != 1 or given.dtype.kind not in "iu" or given.size == 0:
        raise TypeError(
            f"integers must be True, a mask of {n} booleans, or indices of variables, not "
            f"{integers!r}"
        )
    beyond = (given < -n) | (given >= n)
    if beyond.any():
        raise ValueError(
            f"integers must be indices of variables, 0 to {n - 1}, not {given[beyond.argmax()]}"
        )
    if np.unique(given % n).size < given.size:  # most likely a mask of zeros and ones
        raise ValueError(
            f"integers must be different indices of variables, not {integers!r}; "
            "a mask must hold booleans"
        )
    mask = np.zeros(n, dtype=bool)
    mask[given] = True
    return mask
