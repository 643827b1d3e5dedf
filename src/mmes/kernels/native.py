"""The kernel in C++: one pass over memory per call, SIMD chosen at run time, threads inside."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mmes.kernels._native as _native
from mmes.base.cores import usable_cores
from mmes.kernels.host import aligned
from mmes.kernels.protocol import (
    KEPT_NOISE_BYTES,
    DrawnRows,
    Lessons,
    Noise,
    NoiseWithin,
    RecombineCall,
    SampleCall,
    ScaleCall,
    StepLaw,
    Vector,
)
from mmes.kernels.reference import SCALE_INCREMENT_LIMIT, ReferenceKernel
from mmes.spaces.boxes import Box, BoxCode

RECORDS = (DrawnRows, StepLaw, SampleCall, RecombineCall, Lessons, ScaleCall, NoiseWithin)
"""The records that C++ reads, by the places that their fields had when it was compiled."""


def check_records(records: Iterable[Any] = RECORDS) -> None:
    """Raise ImportError if C++ would read a wrong field.

    It is called once, when this module is imported.
    """
    for record in records:
        here, compiled = ", ".join(record._fields), _native.RECORDS[record.__name__]
        if here != compiled:
            raise ImportError(
                f"{record.__name__} has the fields ({here}), but the compiled kernels read "
                f"({compiled}); they belong to another version of mmes: reinstall it"
            )


check_records()

# Coordinates of a draw that are made at a time, kBlock in native/kernels.hpp.
_BLOCK = 128
# Below this many numbers a generation is over before a thread has started.
_THREADED_SIZE = 1_000_000


class NativeKernel(ReferenceKernel):
    """The compiled kernel.

    Without a number of threads, a call uses one for small generations and all cores for large ones.
    `simd` is one of `simd_levels()`, by default the best; the results are the same.
    """

    def __init__(self, threads: int | None = None, simd: str | None = None):
        super().__init__()
        self.threads = threads
        levels = simd_levels()
        if simd is not None and simd not in levels:
            raise ValueError(
                f"simd must be one of {', '.join(levels)} on this machine, not {simd!r}"
            )
        self.simd = simd or levels[0]
        self.name = f"native {self.simd}"
        self._level = _native.Level(self.simd)
        self._kept = _KeptNoise()

    def _threads_for(self, size: int) -> int:
        if self.threads is not None:
            return self.threads
        return usable_cores() if size >= _THREADED_SIZE else 1

    def normals(self, count: int, seed: int, stream: int, generation: int) -> NDArray[np.float32]:
        """See `Kernel.normals`."""
        out = np.empty(count, dtype=np.float32)
        _native.normals(self._level, out, seed, stream, generation, 0)
        return out

    def drawn_rows(
        self, drawn: DrawnRows, draws: int, seed: int, generation: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """See `ReferenceKernel.drawn_rows`; `sample` does this itself."""
        rows = np.empty((draws, drawn.used), dtype=np.int64)
        factors = np.empty((draws, drawn.used), dtype=np.float32)
        _native.drawn_rows(self._level, rows, factors, drawn, seed, generation)
        return rows, factors

    def sample(self, call: SampleCall) -> None:
        """See `Kernel.sample`."""
        kept = self._kept.renewed(call) if call.keep_noise else None
        _native.sample(self._level, self._threads_for(call.population.size), call, kept)
        if call.box is not None and call.box.code is BoxCode.OWN:
            super().confine(call.population, call.population, call.box)

    def recombine(self, call: RecombineCall) -> None:
        """See `Kernel.recombine`."""
        _native.recombine(self._level, self._threads_for(call.population.size), call)

    def sample_and_recombine(self, sampling: SampleCall, step: RecombineCall) -> None:
        """See `Kernel.sample_and_recombine`."""
        threads = self._threads_for(step.mean.size * step.parents.size)
        _native.sample_and_recombine(self._level, threads, sampling, step)

    def adapt_scale(self, call: ScaleCall) -> float:
        """See `Kernel.adapt_scale`."""
        threads = self._threads_for(call.scale.size * call.weights.size)
        address = call.seed, call.generation, call.noise, call.weights.size, call.scale.size
        kept = self._kept.found(address)
        return _native.adapt_scale(self._level, threads, call, SCALE_INCREMENT_LIMIT, kept)

    def confine(self, image: Vector, points: Vector, box: Box) -> None:
        """See `Kernel.confine`."""
        if box.code is BoxCode.OWN:
            super().confine(image, points, box)
        else:
            rows, to = np.atleast_2d(points), np.atleast_2d(image)
            _native.confine(self._level, self._threads_for(points.size), to, rows, box)

    def dot(self, a: Vector, b: Vector) -> float:
        """See `Kernel.dot`."""
        return _native.dot(self._level, a, b)

    def fill_normals(self, rows: NDArray[np.float32], size: float, seed: int, stream: int) -> None:
        """See `ReducingKernel.fill_normals`."""
        _native.normals(self._level, rows.reshape(-1), seed, stream, 0, 0)
        rows *= np.float32(size)

    def noise_sum(
        self, weights: Vector, n: int, noise: Noise, seed: int, generation: int
    ) -> Vector:
        """See `ReducingKernel.noise_sum`."""
        total = np.empty(n)
        threads = self._threads_for(n * weights.size)
        kept = self._kept.found((seed, generation, noise, weights.size, n))
        _native.noise_sum(self._level, threads, total, weights, noise, seed, generation, kept)
        return total

    def noise_within(self, call: NoiseWithin) -> tuple[Vector, float]:
        """See `ReducingKernel.noise_within`."""
        total = np.empty(call.mean.size)
        threads = self._threads_for(call.population.size)
        kept = self._kept.found((call.seed, call.generation, call.noise, call.draws, total.size))
        return total, _native.noise_within(self._level, threads, total, call, kept)

    def step_squares(self, call: RecombineCall) -> Vector:
        """See `ReducingKernel.step_squares`."""
        total = np.empty(call.mean.size)
        _native.step_squares(self._level, self._threads_for(call.population.size), total, call)
        return total

    def project(
        self,
        vectors: NDArray[np.float32],
        rows: NDArray[np.int64],
        noise: Noise,
        seed: int,
        generation: int,
    ) -> Vector:
        """See `ReducingKernel.project`."""
        products = np.empty(rows.shape)
        threads = self._threads_for(vectors.shape[1] * rows.size)
        _native.project(self._level, threads, products, vectors, rows, noise, seed, generation)
        return products

    def gram(self, vectors: NDArray[np.float32], accurate: bool = True) -> Vector:
        """See `ReducingKernel.gram`."""
        products = np.empty((vectors.shape[0], vectors.shape[0]))
        _native.gram(self._level, self._threads_for(vectors.size), products, vectors, accurate)
        return products

    def accumulate(
        self, vectors: NDArray[np.float32], decays: Vector, gains: Vector, step: Vector
    ) -> None:
        """See `ReducingKernel.accumulate`."""
        _native.accumulate(
            self._level, self._threads_for(vectors.size), vectors, decays, gains, step
        )

    def combine(
        self,
        out: NDArray[np.float32],
        targets: NDArray[np.int64],
        coefficients: Vector,
        vectors: NDArray[np.float32],
    ) -> None:
        """See `ReducingKernel.combine`."""
        _native.combine(
            self._level, self._threads_for(vectors.size), out, targets, coefficients, vectors
        )

    def deflate(
        self, vectors: NDArray[np.float32], decay: float, gain: float, step: Vector
    ) -> None:
        """See `ReducingKernel.deflate`; one thread: each vector depends on the previous one."""
        _native.deflate(self._level, vectors, decay, gain, step)


class _KeptNoise:
    """The isotropic parts of the last sampled generation, used to learn scales."""

    def __init__(self) -> None:
        self._rows = np.empty((0, 0), dtype=np.float32)
        self._address: tuple[int, int, int, int, int] | None = None

    def renewed(self, call: SampleCall) -> NDArray[np.float32] | None:
        """Return memory for the noise of a call; None if it is too large or incomplete."""
        self._address = None
        n = call.population.shape[1]
        stride = -(-n // _BLOCK) * _BLOCK
        if call.rows is not None or 4 * stride * call.draws > KEPT_NOISE_BYTES:
            return None
        if self._rows.shape != (call.draws, stride):
            self._rows = aligned((call.draws, stride), np.float32)
        self._address = (call.seed, call.generation, call.law.noise, call.draws, n)
        return self._rows

    def found(self, wanted: tuple[int, int, int, int, int]) -> NDArray[np.float32] | None:
        """Return the noise of this seed, generation, law, draws and dimension, if it was kept."""
        return self._rows if self._address == wanted else None


def simd_levels() -> list[str]:
    """Return the SIMD levels of this processor, best first."""
    return _native.simd_levels()
