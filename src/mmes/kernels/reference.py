"""The kernel in numpy: the reading copy, the fallback, and the native kernel's oracle."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from mmes.base import randomness
from mmes.base.randomness import Stream
from mmes.kernels.host import HostVectors, ordered_sum
from mmes.kernels.protocol import (
    DrawnRows,
    Noise,
    NoiseWithin,
    PathCall,
    RecombineCall,
    SampleCall,
    ScaleCall,
    Vector,
)

# Increments of log d are clipped to this size, so that one lucky generation cannot ruin a scale.
SCALE_INCREMENT_LIMIT = 0.25


class ReferenceKernel(HostVectors):
    """The definition of record of every kernel operation, in plain numpy."""

    name = "reference"

    def normals(self, count: int, seed: int, stream: int, generation: int) -> NDArray[np.float32]:
        """See `Kernel.normals`."""
        return randomness.normals(count, seed, stream, generation)

    def drawn_rows(
        self, drawn: DrawnRows, draws: int, seed: int, generation: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the rows that each draw takes, -1 for an empty slot, and their factors."""
        every = np.arange(draws)
        u = randomness.uniforms(drawn.used, seed, Stream.MIXTURE_INDEX, generation, every)
        m = drawn.cumulative.size
        ages = np.minimum(np.searchsorted(drawn.cumulative, u, side="right"), m - 1)
        by_age = np.full(m, -1, dtype=np.int64)
        by_age[: drawn.order.size] = drawn.order[::-1]
        normals = randomness.normals(drawn.used, seed, Stream.MIXTURE_FACTOR, generation, every)
        return by_age[ages], normals * np.float32(drawn.factor)

    def sample(self, call: SampleCall) -> None:
        """See `Kernel.sample`."""
        law, draws = call.law, call.draws
        count, n = call.population.shape
        rows, factors = law.rows, law.factors
        if law.drawn is not None:
            rows, factors = self.drawn_rows(law.drawn, draws, call.seed, call.generation)
        scale = None if law.scale is None else law.scale.astype(np.float32)
        candidates = np.arange(count) if call.rows is None else call.rows
        drawn, part_of = np.unique(candidates % draws, return_inverse=True)
        parts = isotropic_parts(law.noise, drawn, n, call.seed, call.generation)
        steps: dict[int, Vector] = {}
        for k, candidate in enumerate(candidates):
            i = int(candidate % draws)
            if i not in steps:
                factor = law.isotropic if law.isotropic_each is None else law.isotropic_each[i]
                z = np.float32(factor) * parts[part_of[k]]
                if scale is not None and not law.scale_rows:
                    z *= scale
                if rows is not None and factors is not None and call.directions is not None:
                    for row, weight in zip(rows[i], factors[i], strict=True):
                        if row >= 0:
                            z += weight * call.directions[row]
                if scale is not None and law.scale_rows:
                    z *= scale
                steps[i] = call.sigma * z.astype(np.float64)
            (np.add if candidate < draws else np.subtract)(
                call.mean, steps[i], out=call.population[k]
            )
        if call.box is not None:
            self.confine(call.population, call.population, call.box)

    def recombine(self, call: RecombineCall) -> None:
        """See `Kernel.recombine`."""
        _recombine(call, map(call.population.__getitem__, call.parents))

    def sample_and_recombine(self, sampling: SampleCall, step: RecombineCall) -> None:
        """See `Kernel.sample_and_recombine`; one parent at a time."""
        one = np.empty((1, step.mean.size))

        def made(parent: int) -> Vector:
            self.sample(sampling._replace(population=one, rows=np.array([parent])))
            return one[0]

        _recombine(step, map(made, step.parents))

    def adapt_scale(self, call: ScaleCall) -> float:
        """See `Kernel.adapt_scale`."""
        scale, lessons = call.scale, call.lessons
        every = np.arange(call.weights.size)
        parts = isotropic_parts(call.noise, every, scale.size, call.seed, call.generation)
        lesson, rate = _weighted(call.weights, parts.astype(np.float64) ** 2), call.rate
        if lessons is not None:
            # The path before this generation: so the rate and the lesson are independent.
            above = np.maximum(lessons.path**2 - lessons.threshold, 0.0)
            rate = rate * np.minimum(lessons.factor + lessons.slope * above, lessons.fastest)
            lesson -= lesson.mean()
            self.blend(lessons.path, lessons.decay, lessons.gain, lesson)
        increments = np.clip(rate * lesson, -SCALE_INCREMENT_LIMIT, SCALE_INCREMENT_LIMIT)
        # Less the mean: the overall size belongs to sigma.
        scale *= np.exp(increments - increments.mean())
        if lessons is None:
            return 0.0
        return ordered_sum(np.minimum(lessons.path**2, lessons.threshold))

    def fill_normals(self, rows: NDArray[np.float32], size: float, seed: int, stream: int) -> None:
        """See `ReducingKernel.fill_normals`."""
        rows[...] = self.normals(rows.size, seed, stream, 0).reshape(rows.shape)
        rows *= np.float32(size)

    def noise_sum(
        self, weights: Vector, n: int, noise: Noise, seed: int, generation: int
    ) -> Vector:
        """See `ReducingKernel.noise_sum`."""
        parts = isotropic_parts(noise, np.arange(weights.size), n, seed, generation)
        return _weighted(weights, parts.astype(np.float64))

    def follow_noise(self, call: PathCall, lesson: ScaleCall | None) -> float:
        """See `ReducingKernel.follow_noise`."""
        path, weights, decay, gain, noise, seed, generation = call
        total = self.noise_sum(weights, path.size, noise, seed, generation)
        self.blend(path, decay, gain, total)
        return 0.0 if lesson is None else self.adapt_scale(lesson)

    def noise_within(self, call: NoiseWithin) -> tuple[Vector, float]:
        """See `ReducingKernel.noise_within`."""
        n, draws = call.mean.size, call.draws
        size = call.size if call.scale is None else call.size * call.scale
        total, left, drawn = np.zeros(n), np.zeros(n), np.zeros(n)
        parts = isotropic_parts(call.noise, np.arange(draws), n, call.seed, call.generation)
        for i, z in enumerate(parts.astype(np.float64)):
            together, free = np.zeros(n), np.zeros(n)
            for candidate, part in ((i, z), (draws + i, -z)):
                if candidate < call.weights.size:
                    x = call.population[candidate]
                    inside = (x > call.box.lower) & (x < call.box.upper)
                    evaluated = (x - call.mean) / size
                    fitting = np.where(
                        part > 0,
                        np.minimum(part, np.maximum(evaluated, 0.0)),
                        np.maximum(part, np.minimum(evaluated, 0.0)),
                    )
                    together += call.weights[candidate] * np.where(inside, part, fitting)
                    free += call.weights[candidate] * part
            total += together
            left += together**2
            drawn += free**2
        whole = ordered_sum(drawn)
        return total, ordered_sum(left) / whole if whole > 0 else 0.0

    def step_squares(self, call: RecombineCall) -> Vector:
        """See `ReducingKernel.step_squares`."""
        steps = call.gain * (call.population[call.parents] - call.mean)
        return _weighted(call.weights, steps**2)

    def project(
        self,
        vectors: NDArray[np.float32],
        rows: NDArray[np.int64],
        noise: Noise,
        seed: int,
        generation: int,
    ) -> Vector:
        """See `ReducingKernel.project`."""
        every = np.arange(rows.shape[0])
        parts = isotropic_parts(noise, every, vectors.shape[1], seed, generation)
        products = np.zeros(rows.shape)
        for i, line in enumerate(rows):
            there = line >= 0
            products[i, there] = self.products(vectors[line[there]], parts[i].astype(np.float64))
        return products

    def gram(self, vectors: NDArray[np.float32], accurate: bool = True) -> Vector:
        """See `ReducingKernel.gram`; always accurate here."""
        return np.array([self.products(vectors, row.astype(np.float64)) for row in vectors])

    def accumulate(
        self, vectors: NDArray[np.float32], decays: Vector, gains: Vector, step: Vector
    ) -> None:
        """See `ReducingKernel.accumulate`."""
        for vector, decay, gain in zip(vectors, decays, gains, strict=True):
            vector[:] = decay * vector.astype(np.float64) + gain * step

    def combine(
        self,
        out: NDArray[np.float32],
        targets: NDArray[np.int64],
        coefficients: Vector,
        vectors: NDArray[np.float32],
    ) -> None:
        """See `ReducingKernel.combine`."""
        wide = vectors.astype(np.float64)
        out[targets] = [_weighted(line, wide) for line in coefficients]

    def deflate(
        self, vectors: NDArray[np.float32], decay: float, gain: float, step: Vector
    ) -> None:
        """See `ReducingKernel.deflate`."""
        for vector in vectors:
            vector[:] = decay * vector.astype(np.float64) + gain * step
            q = vector.astype(np.float64)
            length = self.dot(q, q)
            t = self.dot(step, q) / length if length > 0 else 0.0
            step -= t * q
            step /= np.sqrt(1 + t * t)


def isotropic_parts(
    noise: Noise, draws: NDArray[np.int64], n: int, seed: int, generation: int
) -> NDArray[np.float32]:
    """Return z_0 of some draws of a generation, one per row."""
    if noise is Noise.NORMAL:
        return randomness.normals(n, seed, Stream.ISOTROPIC, generation, draws)
    if noise is Noise.STUDENT:
        return randomness.student(n, seed, generation, draws)
    return randomness.signs(n, seed, Stream.ISOTROPIC, generation, draws)


def _recombine(call: RecombineCall, parents: Iterable[Vector]) -> None:
    """Move mean and path; the parents come one after the other, as points."""
    path, mean, step = call.path, call.mean, np.zeros(call.mean.size)
    # N.B. steps from the mean, not points: the weights sum to 1 only up to rounding, which would
    # swamp the path once sigma is small against the mean.
    for weight, x in zip(call.weights, parents, strict=True):
        step += weight * (x - mean)
    path *= call.decay
    path += call.gain * step
    mean += step
    if call.archive_row is not None:
        call.archive_row[:] = path


def _weighted(weights: Vector, rows: Vector) -> Vector:
    """Return sum_k weights_k rows_k, row by row."""
    return np.add.reduce(weights[:, None] * rows, axis=0)
