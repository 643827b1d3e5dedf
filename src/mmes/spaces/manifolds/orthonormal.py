"""Matrices with orthonormal columns: frames (`Stiefel`) and the spaces they span (`Grassmann`).

All linear algebra is batched over leading axes. Steps are tangent, so the Gram matrix of U + Z is
I + Z'Z: for short steps close to the identity, so that factorizing it is cheap and exact. Long
steps use LAPACK's decomposition of the matrix itself, for each member of a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.spaces.manifolds.protocol import Array, Manifold, NormalSource

# Largest entry of the Gram matrix up to which factorising it is exact to rounding: the loss grows
# with its condition number, which for k columns is then at most about 4 k.
WELL_CONDITIONED = 4.0


def transposed(matrices: NDArray[Any]) -> Array:
    """Swap the last two axes."""
    return np.swapaxes(matrices, -1, -2)


def orthonormal_basis(matrices: Array) -> Array:
    """Return the Q of the QR decomposition with positive diagonal, for each matrix of a batch."""
    return _by_conditioning(matrices, _cholesky_q, _householder_q)


def polar_factor(matrices: Array) -> Array:
    """Return Y (Y'Y)^(-1/2), the nearest matrix with orthonormal columns, for each of a batch."""
    return _by_conditioning(matrices, _gram_polar, _svd_polar)


def _by_conditioning(
    matrices: Array, cheap: Callable[[Array, Array], Array], safe: Callable[[Array], Array]
) -> Array:
    """Factorize the Gram matrix if that is exact, otherwise the matrix itself."""
    gram = transposed(matrices) @ matrices
    good = np.asarray(gram.max(axis=(-2, -1)) <= WELL_CONDITIONED)
    if good.all():
        return cheap(matrices, gram)
    result = np.empty_like(matrices)
    result[good] = cheap(matrices[good], gram[good])
    result[~good] = safe(matrices[~good])
    return result


def _cholesky_q(matrices: Array, gram: Array) -> Array:
    return matrices @ transposed(np.linalg.inv(np.linalg.cholesky(gram)))


def _householder_q(matrices: Array) -> Array:
    q, r = np.linalg.qr(matrices)
    return q * np.where(np.diagonal(r, axis1=-2, axis2=-1) < 0.0, -1.0, 1.0)[..., None, :]


def _gram_polar(matrices: Array, gram: Array) -> Array:
    values, vectors = np.linalg.eigh(gram)
    return matrices @ ((vectors / np.sqrt(values)[..., None, :]) @ transposed(vectors))


def _svd_polar(matrices: Array) -> Array:
    left, _, right = np.linalg.svd(matrices, full_matrices=False)
    return left @ right


class _OrthonormalColumns(Manifold):
    """What frames and subspaces have in common."""

    def __init__(self, n: int, k: int) -> None:
        super().__init__(n, k)
        self.n, self.k = self.shape
        if self.k > self.n:
            raise ValueError(
                f"k of {type(self).__name__} is {k}; {n} rows have at most {n} orthonormal columns"
            )
        if self.dim == 0:
            raise ValueError(f"{self} is a single point; k must be less than {n}")

    def random_point(self, rng: NormalSource) -> Array:
        """Return the orthonormal factor of a Gaussian matrix, which is uniform."""
        gaussian = np.asarray(rng.standard_normal(self.shape), dtype=np.float64)
        return _householder_q(gaussian)

    def retract_mean(self, point: Array, tangent: Array) -> Array:
        """Return the polar factor of U + Z: of all bases of its span the one closest to U."""
        return polar_factor(point + tangent)

    def distance_from(self, array: Array) -> float:
        """Return the largest entry of ``|U'U - I|``."""
        return float(np.abs(array.T @ array - np.eye(self.k)).max())

    def nearest_point(self, array: Array) -> Array:
        """Return the polar factor."""
        return polar_factor(array)

    def _constraint(self) -> str:
        return "U'U = I"


class Grassmann(_OrthonormalColumns):
    """The k-dimensional subspaces of R^n, each represented by an orthonormal basis U (n x k).

    An objective must depend only on the span of U, ``f(U) == f(U @ O)`` for orthogonal O. Tangents
    at U are the matrices Z with U'Z = 0.

    Parameters
    ----------
    n, k : int
        Dimension of the space and of the subspaces, k < n.
    """

    @property
    def dim(self) -> int:
        """Return k (n - k)."""
        n, k = self.shape
        return k * (n - k)

    def proj(self, point: Array, ambient: Array) -> Array:
        """Subtract the part in the span: Z - U (U'Z)."""
        return ambient - point @ (point.T @ ambient)

    def retract(self, point: Array, tangent: Array) -> Array:
        """Return an orthonormal basis of the span of U + Z, whichever is cheapest."""
        return orthonormal_basis(point + tangent)


class Stiefel(_OrthonormalColumns):
    """The n x k matrices with orthonormal columns, with the metric of the surrounding space.

    Tangents at U are the matrices Z with U'Z skew-symmetric.

    Parameters
    ----------
    n, k : int
        Rows and columns, k <= n. ``Stiefel(n, n)`` are the rotations and reflections; steps from a
        rotation stay among rotations.
    """

    @property
    def dim(self) -> int:
        """Return n k - k (k + 1) / 2."""
        n, k = self.shape
        return n * k - k * (k + 1) // 2

    def proj(self, point: Array, ambient: Array) -> Array:
        """Subtract the symmetric part: Z - U (U'Z + Z'U) / 2."""
        inner = point.T @ ambient
        return ambient - point @ (0.5 * (inner + transposed(inner)))

    def retract(self, point: Array, tangent: Array) -> Array:
        """Return the polar factor of U + Z, which follows the geodesic to second order."""
        return polar_factor(point + tangent)
