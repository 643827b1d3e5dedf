"""The sampling law of MMES: the mixture P_m and the Gaussian P_a that it approximates.

With stored directions q_1 (oldest) .. q_m (newest) and a rate c_a, the target is P_a = N(0, C_a),

    C_a = (1 - c_a)^m I + c_a sum_j (1 - c_a)^(m-j) q_j q_j',

and the mixture draws l directions with replacement, direction j with probability alpha_j,

    z = sqrt(1 - gamma) z_0 + sqrt(gamma / l) sum_k z_k q_{i_k},   gamma = 1 - (1 - c_a)^m,

at cost O(n l) whatever m is. Both have mean 0 and covariance C_a; all odd moments vanish; the k-th
moments differ by O(1/l).

It is here to be examined and compared with; what a search draws is decided in `step_mixer`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmes.base.randomness import Stream
from mmes.kernels import DrawnRows, Kernel, SampleCall, StepLaw, choose_kernel
from mmes.strategies.mmes.ages import age_probabilities, cumulative_ages, directed_share

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Covariance:
    """The covariance C_a as a linear operator: `isotropic` * I + sum_j weights_j q_j q_j'.

    Supports ``C @ v`` and ``C @ V`` in O(n m); `dense` makes the matrix.
    """

    isotropic: float
    weights: Vector
    directions: Vector

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (n, n) of the matrix it stands for."""
        n = self.directions.shape[1]
        return n, n

    def __matmul__(self, v: ArrayLike) -> Vector:
        v = np.asarray(v, dtype=np.float64)
        weighted = (self.weights * (self.directions @ v).T).T
        return self.isotropic * v + self.directions.T @ weighted

    def dense(self) -> Vector:
        """Return the (n, n) matrix."""
        return self @ np.eye(self.shape[0])


@dataclass(frozen=True)
class Mixture:
    """The law P_m of one MMES step before scaling by sigma.

    Parameters
    ----------
    directions : array_like, shape (m, n)
        q_1 .. q_m, oldest first.
    c_a : float
        Rate, in (0, 1).
    mixing : int
        Mixing strength l, at least 1.
    """

    directions: Vector
    c_a: float
    mixing: int

    def __init__(self, directions: ArrayLike, c_a: float, mixing: int = 4):
        q = np.array(directions, dtype=np.float64)
        if q.ndim != 2 or q.size == 0 or not np.isfinite(q).all():
            raise ValueError(
                "directions must be a finite (m, n) array with m, n >= 1, "
                f"not one of shape {q.shape}"
            )
        if not 0 < c_a < 1:
            raise ValueError(f"c_a must lie strictly between 0 and 1, not {c_a!r}")
        if mixing != int(mixing) or mixing < 1:
            raise ValueError(f"mixing must be an integer >= 1, not {mixing!r}")
        object.__setattr__(self, "directions", q)
        object.__setattr__(self, "c_a", float(c_a))
        object.__setattr__(self, "mixing", int(mixing))

    @property
    def gamma(self) -> float:
        """The share gamma of the variance along the directions."""
        return directed_share(self.c_a, self.directions.shape[0])

    @property
    def probabilities(self) -> Vector:
        """alpha_1 .. alpha_m: the probability that a draw takes each direction, oldest first."""
        return age_probabilities(self.c_a, self.directions.shape[0])[::-1]

    def covariance(self) -> Covariance:
        """Return C_a, the covariance of P_m for every l and of P_a."""
        return Covariance(1.0 - self.gamma, self.gamma * self.probabilities, self.directions)

    def moment_generating_function(self, t: ArrayLike) -> float:
        """Return E exp(t'z)."""
        t = np.asarray(t, dtype=np.float64)
        along = self.gamma * (self.directions @ t) ** 2 / (2 * self.mixing)
        inner = float(self.probabilities @ np.exp(along))
        return math.exp((1.0 - self.gamma) * float(t @ t) / 2) * inner**self.mixing

    def excess_kurtosis(self, v: ArrayLike) -> float:
        """Return the excess kurtosis of v'z, never negative and independent of the length of v."""
        v = np.asarray(v, dtype=np.float64)
        length = float(np.linalg.norm(v))
        if length == 0:
            raise ValueError("v must not be zero: a direction is needed")
        alpha = self.probabilities
        d = (1.0 - self.gamma) + self.gamma * (self.directions @ (v / length)) ** 2
        return 3.0 / self.mixing * (float(alpha @ d**2) / float(alpha @ d) ** 2 - 1.0)

    def sample(self, count: int, seed: int = 0, kernel: Kernel | None = None) -> Vector:
        """Return `count` independent draws of z, shape (count, n), fixed by the seed."""
        m = self.directions.shape[0]
        drawn = DrawnRows(
            cumulative_ages(self.c_a, m),
            np.arange(m),
            self.mixing,
            math.sqrt(self.gamma / self.mixing),
        )
        return self._draw(StepLaw(math.sqrt(1.0 - self.gamma), drawn=drawn), count, seed, kernel)

    def sample_target(self, count: int, seed: int = 0, kernel: Kernel | None = None) -> Vector:
        """Return `count` independent draws of the Gaussian target P_a, at cost O(n m) each."""
        kernel = kernel or choose_kernel()
        m = self.directions.shape[0]
        normals = kernel.normals(count * m, seed, Stream.MIXTURE_FACTOR, 0).reshape(count, m)
        weights = np.sqrt(self.gamma * self.probabilities).astype(np.float32)
        rows = np.tile(np.arange(m), (count, 1))
        law = StepLaw(math.sqrt(1.0 - self.gamma), rows, normals * weights)
        return self._draw(law, count, seed, kernel)

    def _draw(self, law: StepLaw, count: int, seed: int, kernel: Kernel | None) -> Vector:
        kernel = kernel or choose_kernel()
        n = self.directions.shape[1]
        out, directions = kernel.population(count, n), kernel.directions(*self.directions.shape)
        kernel.assign(directions, kernel.from_host(self.directions))
        kernel.sample(SampleCall(out, count, kernel.vector(n), 1.0, directions, law, None, seed, 0))
        return kernel.to_host(out)
