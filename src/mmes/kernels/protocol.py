"""What a kernel must do, and the small records it is called with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Noise(IntEnum):
    """The law of the isotropic part z_0; the values are those of the native kernel."""

    NORMAL = 0
    STUDENT = 1
    RADEMACHER = 2


class BoxTreatment(IntEnum):
    """What happens to a coordinate outside the box; the values are those of the native kernel."""

    NONE = 0
    CLIP = 1
    REFLECT = 2


@dataclass(frozen=True)
class Box:
    """The box of feasible points and how candidates are brought into it.

    The treated point is the candidate: it is evaluated, recombined and remembered.
    """

    lower: Vector
    upper: Vector
    treatment: BoxTreatment


@dataclass(frozen=True)
class StepLaw:
    """The law of the steps of one generation.

    A step is z = isotropic * scale .* z_0 + sum_k factors_k archive[rows_k].

    Attributes
    ----------
    isotropic : float
        Factor of the isotropic part, sqrt(1 - gamma).
    rows : ndarray of int64, shape (draws, used)
        The archive rows that each draw mixes; a negative one stands for an empty slot (a zero
        vector).
    factors : ndarray of float32, shape (draws, used)
        Their factors.
    noise : Noise
        The law of z_0.
    scale : ndarray or None
        One scale a coordinate, d; None stands for ones.
    scale_rows : bool
        Whether the scale multiplies the whole step; by default the rows are in the coordinates of
        the search already.
    isotropic_each : ndarray of float32, shape (draws,), or None
        One factor a draw in place of `isotropic`, where draws differ in it.
    """

    isotropic: float
    rows: NDArray[np.int64]
    factors: NDArray[np.float32]
    noise: Noise = Noise.NORMAL
    scale: Vector | None = None
    scale_rows: bool = False
    isotropic_each: NDArray[np.float32] | None = None

    @classmethod
    def without_rows(
        cls, draws: int, noise: Noise = Noise.NORMAL, scale: Vector | None = None
    ) -> StepLaw:
        """Return the law of steps that are isotropic but for the scale."""
        rows = np.empty((draws, 0), dtype=np.int64)
        return cls(1.0, rows, np.empty((draws, 0), dtype=np.float32), noise, scale)


class Kernel(Protocol):
    """The operations on vectors of length n that strategies are made of.

    No result depends on the number of threads.
    """

    @property
    def name(self) -> str:
        """For people: which kernel this is, for example ``"native avx512"``."""
        ...

    def normals(self, count: int, seed: int, stream: int, generation: int) -> NDArray[np.float32]:
        """Return standard normal numbers at this address of the random streams."""
        ...

    def mixture_draws(
        self, cumulative: Vector, draws: int, used: int, seed: int, generation: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Draw places from a cumulative distribution, and a standard normal number for each.

        Returns
        -------
        places : ndarray of int64, shape (draws, used)
        normals : ndarray of float32, shape (draws, used)
        """
        ...

    def sample(
        self,
        population: Vector,
        draws: int,
        mean: Vector,
        sigma: float,
        archive: NDArray[np.float32] | None,
        law: StepLaw,
        box: Box | None,
        seed: int,
        generation: int,
    ) -> None:
        """Fill the (lambda, n) population with mean + sigma z.

        Candidate draws + i is the mirror image of draw i.
        """
        ...

    def recombine(
        self,
        population: Vector,
        parents: NDArray[np.int64],
        weights: Vector,
        mean: Vector,
        path: Vector,
        decay: float,
        gain: float,
        archive_row: NDArray[np.float32] | None,
    ) -> None:
        """Move the mean to the weighted parents, and the path with it, in place.

        The path becomes decay * path + gain * (step of the mean). The new path is also written to
        the archive row.
        """
        ...

    def adapt_scale(
        self, scale: Vector, weights: Vector, rate: float, noise: Noise, seed: int, generation: int
    ) -> None:
        """Learn the scale d of each coordinate, in place.

        d_k grows by exp(rate * sum_i weights_i z_{0,i,k}^2), at constant mean of log d. `weights`
        has one entry a draw; the isotropic parts z_0 of the generation are made again from their
        address.
        """
        ...


@runtime_checkable
class ReducingKernel(Kernel, Protocol):
    """A kernel that also knows scalar products and weighted sums, which some rivals need."""

    def noise_sum(
        self, weights: Vector, n: int, noise: Noise, seed: int, generation: int
    ) -> Vector:
        """Return sum_i weights_i z_{0,i}, one weight a draw, of length n.

        The isotropic parts z_0 of the generation's draws are made again from their address.
        """
        ...

    def step_squares(
        self,
        population: Vector,
        parents: NDArray[np.int64],
        weights: Vector,
        mean: Vector,
        sigma: float,
    ) -> Vector:
        """Return sum_k weights_k ((x_k - mean) / sigma)^2 of the parents, entry by entry."""
        ...

    def project(
        self,
        vectors: NDArray[np.float32],
        rows: NDArray[np.int64],
        noise: Noise,
        seed: int,
        generation: int,
    ) -> Vector:
        """Return the scalar products of vectors[rows_ik] with z_{0,i}; 0 for a negative row."""
        ...

    def gram(self, vectors: NDArray[np.float32], accurate: bool = True) -> Vector:
        """Return the (m, m) scalar products of the vectors, rounded as float64 if `accurate`.

        Otherwise as float32, which is faster.
        """
        ...

    def accumulate(
        self, vectors: NDArray[np.float32], decays: Vector, gains: Vector, step: Vector
    ) -> None:
        """Move each vector to decays_i vectors_i + gains_i step, in place."""
        ...

    def combine(
        self,
        out: NDArray[np.float32],
        targets: NDArray[np.int64],
        coefficients: Vector,
        vectors: NDArray[np.float32],
    ) -> None:
        """Write sum_j coefficients_ij vectors_j to out[targets_i]."""
        ...

    def deflate(
        self, vectors: NDArray[np.float32], decay: float, gain: float, step: Vector
    ) -> None:
        """Let each vector in turn learn from the step and take its part out of it, both in place.

        For q = vectors_1, vectors_2, ..: q <- decay q + gain u; t = u.q / q.q; u <- (u - t q) /
        sqrt(1 + t^2), where u is the step.
        """
        ...
