"""What a kernel must do, and the small records it is called with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

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
    """

    isotropic: float
    rows: NDArray[np.int64]
    factors: NDArray[np.float32]
    noise: Noise = Noise.NORMAL
    scale: Vector | None = None


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
