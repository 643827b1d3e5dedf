"""The kernel in C++: one pass over memory a call, SIMD chosen at run time, threads inside."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

import mmes._native as _native
from mmes.kernels.protocol import Box, BoxTreatment, Noise, StepLaw, Vector
from mmes.kernels.reference import SCALE_INCREMENT_LIMIT, apply_increments
from mmes.randomness import Stream

# Below this many numbers a generation is over before a thread has started.
_THREADED_SIZE = 1_000_000


class NativeKernel:
    """The compiled kernel.

    Parameters
    ----------
    threads : int or None
        Threads for one call; None takes one for small generations and all cores for large ones.
    simd : str or None
        The SIMD level, one of `simd_levels()`; None takes the best.
    """

    def __init__(self, threads: int | None = None, simd: str | None = None):
        self.threads = threads
        levels = simd_levels()
        if simd is not None and simd not in levels:
            raise ValueError(
                f"simd must be one of {', '.join(levels)} on this machine, not {simd!r}"
            )
        self.simd = simd or levels[0]
        self.name = f"native {self.simd}"

    def _threads_for(self, size: int) -> int:
        if self.threads is not None:
            return self.threads
        return _usable_cores() if size >= _THREADED_SIZE else 1

    def normals(self, count: int, seed: int, stream: int, generation: int) -> NDArray[np.float32]:
        """See `Kernel.normals`."""
        out = np.empty(count, dtype=np.float32)
        _native.normals(self.simd, out, seed, stream, generation, 0)
        return out

    def mixture_draws(
        self, cumulative: Vector, draws: int, used: int, seed: int, generation: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """See `Kernel.mixture_draws`."""
        places = np.empty((draws, used), dtype=np.int64)
        normals = np.empty((draws, used), dtype=np.float32)
        _native.mixture_draws(
            self.simd,
            places,
            normals,
            cumulative,
            seed,
            generation,
            Stream.MIXTURE_INDEX,
            Stream.MIXTURE_FACTOR,
        )
        return places, normals

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
        """See `Kernel.sample`."""
        _native.sample(
            self.simd,
            self._threads_for(population.size),
            population,
            draws,
            mean,
            sigma,
            law.scale,
            archive,
            law.rows,
            law.factors,
            law.isotropic,
            law.isotropic_each,
            law.scale_rows,
            law.noise,
            seed,
            generation,
            Stream.ISOTROPIC,
            Stream.ISOTROPIC_ANGLE,
            BoxTreatment.NONE if box is None else box.treatment,
            None if box is None else box.lower,
            None if box is None else box.upper,
        )

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
        """See `Kernel.recombine`."""
        _native.recombine(
            self.simd,
            self._threads_for(population.size),
            population,
            parents,
            weights,
            mean,
            path,
            decay,
            gain,
            archive_row,
        )

    def adapt_scale(
        self, scale: Vector, weights: Vector, rate: float, noise: Noise, seed: int, generation: int
    ) -> None:
        """See `Kernel.adapt_scale`."""
        increments = np.empty_like(scale)
        _native.scale_increments(
            self.simd,
            self._threads_for(scale.size * weights.size),
            increments,
            weights,
            rate,
            SCALE_INCREMENT_LIMIT,
            noise,
            seed,
            generation,
            Stream.ISOTROPIC,
            Stream.ISOTROPIC_ANGLE,
        )
        apply_increments(scale, increments)

    def noise_sum(
        self, weights: Vector, n: int, noise: Noise, seed: int, generation: int
    ) -> Vector:
        """See `Kernel.noise_sum`."""
        total = np.empty(n)
        _native.noise_sum(
            self.simd,
            self._threads_for(n * weights.size),
            total,
            weights,
            noise,
            seed,
            generation,
            Stream.ISOTROPIC,
            Stream.ISOTROPIC_ANGLE,
        )
        return total

    def step_squares(
        self,
        population: Vector,
        parents: NDArray[np.int64],
        weights: Vector,
        mean: Vector,
        sigma: float,
    ) -> Vector:
        """See `Kernel.step_squares`."""
        total = np.empty(mean.size)
        threads = self._threads_for(population.size)
        _native.step_squares(
            self.simd, threads, total, population, parents, weights, mean, 1.0 / sigma
        )
        return total

    def project(
        self,
        vectors: NDArray[np.float32],
        rows: NDArray[np.int64],
        noise: Noise,
        seed: int,
        generation: int,
    ) -> Vector:
        """See `Kernel.project`."""
        products = np.empty(rows.shape)
        _native.project(
            self.simd,
            self._threads_for(vectors.shape[1] * rows.size),
            products,
            vectors,
            rows,
            noise,
            seed,
            generation,
            Stream.ISOTROPIC,
            Stream.ISOTROPIC_ANGLE,
        )
        return products

    def gram(self, vectors: NDArray[np.float32], accurate: bool = True) -> Vector:
        """See `Kernel.gram`."""
        products = np.empty((vectors.shape[0], vectors.shape[0]))
        _native.gram(self.simd, self._threads_for(vectors.size), products, vectors, accurate)
        return products

    def accumulate(
        self, vectors: NDArray[np.float32], decays: Vector, gains: Vector, step: Vector
    ) -> None:
        """See `Kernel.accumulate`."""
        _native.accumulate(self.simd, self._threads_for(vectors.size), vectors, decays, gains, step)

    def combine(
        self,
        out: NDArray[np.float32],
        targets: NDArray[np.int64],
        coefficients: Vector,
        vectors: NDArray[np.float32],
    ) -> None:
        """See `Kernel.combine`."""
        _native.combine(
            self.simd, self._threads_for(vectors.size), out, targets, coefficients, vectors
        )

    def deflate(
        self, vectors: NDArray[np.float32], decay: float, gain: float, step: Vector
    ) -> None:
        """See `Kernel.deflate`; one thread, since each vector waits for the one before."""
        _native.deflate(self.simd, vectors, decay, gain, step)


def simd_levels() -> list[str]:
    """Return the SIMD levels of this processor, best first."""
    return _native.simd_levels()


def _usable_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1
