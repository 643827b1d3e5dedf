"""Euclidean space: projection is the identity, retraction is addition."""

from __future__ import annotations

import numpy as np

from mmes.spaces.manifolds.protocol import Array, Manifold, NormalSource


class Euclidean(Manifold):
    """All arrays of one shape: ``Euclidean(n)`` for vectors, ``Euclidean(n, k)`` for matrices."""

    @property
    def dim(self) -> int:
        """Number of entries."""
        return self.ambient_dim

    def random_point(self, rng: NormalSource) -> Array:
        """Return an array of standard normals; a flat space has no uniform distribution."""
        return np.asarray(rng.standard_normal(self.shape), dtype=np.float64)

    def proj(self, point: Array, ambient: Array) -> Array:
        """Return `ambient`: every array is a tangent."""
        del point
        return ambient

    def retract(self, point: Array, tangent: Array) -> Array:
        """Add."""
        return point + tangent

    def distance_from(self, array: Array) -> float:
        """Return 0: every array is a point."""
        del array
        return 0.0

    def nearest_point(self, array: Array) -> Array:
        """Return the array itself."""
        return array
