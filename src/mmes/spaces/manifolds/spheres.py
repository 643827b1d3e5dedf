"""Unit vectors: one of them (`Sphere`), or one in each column of a matrix (`Oblique`)."""

from __future__ import annotations

import numpy as np

from mmes.spaces.manifolds.protocol import Array, Manifold, NormalSource


class Oblique(Manifold):
    """Matrices of n rows whose k columns have unit Euclidean norm.

    Parameters
    ----------
    n, k : int
        Rows and columns, n >= 2.
    """

    # The axis of a point along which norms are taken, counted from the end because of batches.
    _axis = -2

    def __init__(self, n: int, k: int) -> None:
        super().__init__(n, k)
        self._need_two_rows()

    def _need_two_rows(self) -> None:
        if self.shape[0] < 2:
            raise ValueError(
                f"n of {type(self).__name__} is {self.shape[0]}; it must be at least 2, "
                "since unit vectors of one entry cannot move"
            )

    @property
    def dim(self) -> int:
        """One degree of freedom less than entries for each unit vector."""
        return self.ambient_dim - self.ambient_dim // self.shape[0]

    def random_point(self, rng: NormalSource) -> Array:
        """Return columns drawn uniformly on the sphere."""
        return self.nearest_point(np.asarray(rng.standard_normal(self.shape), dtype=np.float64))

    def proj(self, point: Array, ambient: Array) -> Array:
        """Subtract the radial part: Z - u (u'Z) for each unit vector u."""
        return ambient - point * (point * ambient).sum(axis=self._axis, keepdims=True)

    def retract(self, point: Array, tangent: Array) -> Array:
        """Add and scale back to unit length."""
        return self.nearest_point(point + tangent)

    def distance_from(self, array: Array) -> float:
        """Return the largest deviation of a norm from 1."""
        return float(np.abs(np.linalg.norm(array, axis=self._axis) - 1.0).max())

    def nearest_point(self, array: Array) -> Array:
        """Scale to unit length."""
        return array / np.linalg.norm(array, axis=self._axis, keepdims=True)

    def _constraint(self) -> str:
        return "the unit norm of every column"


class Sphere(Oblique):
    """Vectors of n entries with unit Euclidean norm.

    Parameters
    ----------
    n : int
        Number of entries, at least 2; the sphere has n - 1 dimensions.
    """

    _axis = -1

    def __init__(self, n: int) -> None:
        Manifold.__init__(self, n)
        self._need_two_rows()

    def _constraint(self) -> str:
        return "its unit norm"
