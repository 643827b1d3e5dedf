"""What a benchmark problem is: a function with its box, its optimum and its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """A function to minimise, callable on one point and on a batch of points.

    Attributes
    ----------
    name : str
        The name under which the registry knows it, for example ``"cigar"`` or ``"lsgo2013/f7"``.
    dimension : int
        Number of variables n.
    batch : callable
        The function itself: takes a (k, n) float64 array, returns k values.
    lower, upper : ndarray
        The default box, one entry a variable. Points outside are evaluated all the same.
    optimum : ndarray or None
        A minimiser, where it is known.
    minimum : float or None
        The minimum value, where it is known.
    description : str
        One sentence for listings.
    details : dict
        What a suite adds: group sizes, weights, the seed of a rotation.
    """

    name: str
    dimension: int
    batch: Callable[[Vector], Vector] = field(repr=False)
    lower: Vector = field(repr=False)
    upper: Vector = field(repr=False)
    optimum: Vector | None = field(default=None, repr=False)
    minimum: float | None = 0.0
    description: str = ""
    details: dict[str, Any] = field(default_factory=dict, repr=False)

    def __call__(self, x: ArrayLike) -> Any:
        """Return f(x): a float for one point, an array of k values for a (k, n) batch."""
        points = np.asarray(x, dtype=np.float64)
        if points.ndim not in (1, 2) or points.shape[-1] != self.dimension:
            raise ValueError(
                f"{self.name} takes points of {self.dimension} variables: an array of shape "
                f"({self.dimension},) or (k, {self.dimension}), not {points.shape}"
            )
        values = self.batch(np.atleast_2d(points))
        return float(values[0]) if points.ndim == 1 else values

    @property
    def bounds(self) -> tuple[Vector, Vector]:
        """The default box as a pair (lower, upper)."""
        return self.lower, self.upper
