"""A benchmark problem: a function with its box, its optimum and its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]
"""A float64 array; a batch is one of shape (k, n)."""

Batch = Callable[[Vector], Vector]
"""A function of k points at once: takes a C-contiguous (k, n) array, returns k values."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A function to minimise, callable on one point and on a batch of points.

    Attributes
    ----------
    name : str
        The name in the registry, for example ``"cigar"`` or ``"lsgo2013/f7"``.
    dimension : int
        Number of variables n.
    batch : callable
        The function itself: takes a (k, n) float64 array, returns k values.
    lower, upper : ndarray
        The default box, one entry per variable. Points outside are evaluated too.
    minimizer : ndarray, callable or None
        A minimiser, if known, or a function that computes it if this is costly. Read it as
        `optimum`.
    minimum : float or None
        The minimum value, if known.
    description : str
        One sentence for listings.
    details : dict
        Further data of a suite: group sizes, weights, the seed of a rotation.
    treatment : str
        How its published results keep candidates in the box: a value of `bounds_handling`, or
        ``"none"`` if the box only defines the start.
    """

    name: str
    dimension: int
    batch: Batch = field(repr=False)
    lower: Vector = field(repr=False)
    upper: Vector = field(repr=False)
    minimizer: Vector | Callable[[], Vector] | None = field(default=None, repr=False)
    minimum: float | None = 0.0
    description: str = ""
    details: dict[str, Any] = field(default_factory=dict, repr=False)
    treatment: str = field(default="none", repr=False)

    def __call__(self, x: ArrayLike) -> Any:
        """Return f(x): a float for one point, an array of k values for a (k, n) batch."""
        points = np.ascontiguousarray(x, dtype=np.float64)
        if points.ndim not in (1, 2) or points.shape[-1] != self.dimension:
            raise ValueError(
                f"{self.name} takes points of {self.dimension} variables: an array of shape "
                f"({self.dimension},) or (k, {self.dimension}), not {np.shape(x)}"
            )
        # A diverging search may send any float: it gets inf or nan back, without a warning.
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.batch(points if points.ndim == 2 else points[None, :])
        return float(values[0]) if points.ndim == 1 else values

    @property
    def bounds(self) -> tuple[Vector, Vector]:
        """The default box as a pair (lower, upper)."""
        return self.lower, self.upper

    @property
    def optimum(self) -> Vector | None:
        """A minimiser, if known."""
        return self.minimizer() if callable(self.minimizer) else self.minimizer


def box(dimension: int, lower: float, upper: float) -> tuple[Vector, Vector]:
    """Return the box [lower, upper]^dimension as two read-only arrays."""
    ends = np.full(dimension, lower), np.full(dimension, upper)
    for end in ends:
        end.setflags(write=False)
    return ends
