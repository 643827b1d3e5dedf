"""The kernel in numpy: the reading copy, the fallback, and the native kernel's oracle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmes import randomness
from mmes.kernels.protocol import Box, BoxTreatment, Noise, StepLaw, Vector
from mmes.randomness import Stream

# Increments of log d are clipped to this size, so that one lucky generation cannot ruin a scale.
SCALE_INCREMENT_LIMIT = 0.25


class ReferenceKernel:
    """The definition of record of every kernel operation, in plain numpy."""

    name = "reference"

    def normals(self, count: int, seed: int, stream: int, generation: int) -> NDArray[np.float32]:
        """See `Kernel.normals`."""
        return randomness.normals(count, seed, stream, generation)

    def mixture_draws(
        self, cumulative: Vector, draws: int, used: int, seed: int, generation: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """See `Kernel.mixture_draws`."""
        every = np.arange(draws)
        u = randomness.uniforms(used, seed, Stream.MIXTURE_INDEX, generation, every)
        places = np.searchsorted(cumulative, u, side="right")
        normals = randomness.normals(used, seed, Stream.MIXTURE_FACTOR, generation, every)
        return np.minimum(places, cumulative.size - 1), normals

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
        candidates, n = population.shape
        parts = isotropic_parts(law.noise, draws, n, seed, generation)
        for i in range(draws):
            factor = law.isotropic if law.isotropic_each is None else law.isotropic_each[i]
            z = np.float32(factor) * parts[i]
            if law.scale is not None and not law.scale_rows:
                z *= law.scale.astype(np.float32)
            for row, factor in zip(law.rows[i], law.factors[i], strict=True):
                if row >= 0 and archive is not None:
                    z += factor * archive[row]
            if law.scale is not None and law.scale_rows:
                z *= law.scale.astype(np.float32)
            step = sigma * z.astype(np.float64)
            np.add(mean, step, out=population[i])
            if draws + i < candidates:
                np.subtract(mean, step, out=population[draws + i])
        if box is not None:
            confine(population, box)

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
        # N.B. steps from the mean, not points: the weights sum to 1 only up to rounding, which
        # would swamp the path once sigma is small against the mean.
        step = weights @ (population[parents] - mean)
        path *= decay
        path += gain * step
        mean += step
        if archive_row is not None:
            archive_row[:] = path

    def adapt_scale(
        self, scale: Vector, weights: Vector, rate: float, noise: Noise, seed: int, generation: int
    ) -> None:
        """See `Kernel.adapt_scale`."""
        parts = isotropic_parts(noise, weights.size, scale.size, seed, generation)
        signal = weights @ parts.astype(np.float64) ** 2
        apply_increments(
            scale, np.clip(rate * signal, -SCALE_INCREMENT_LIMIT, SCALE_INCREMENT_LIMIT)
        )

    def noise_sum(
        self, weights: Vector, n: int, noise: Noise, seed: int, generation: int
    ) -> Vector:
        """See `Kernel.noise_sum`."""
        parts = isotropic_parts(noise, weights.size, n, seed, generation)
        return weights @ parts.astype(np.float64)

    def step_squares(
        self,
        population: Vector,
        parents: NDArray[np.int64],
        weights: Vector,
        mean: Vector,
        sigma: float,
    ) -> Vector:
        """See `Kernel.step_squares`."""
        return weights @ ((population[parents] - mean) / sigma) ** 2

    def project(
        self,
        vectors: NDArray[np.float32],
        rows: NDArray[np.int64],
        noise: Noise,
        seed: int,
        generation: int,
    ) -> Vector:
        """See `Kernel.project`."""
        parts = isotropic_parts(noise, rows.shape[0], vectors.shape[1], seed, generation)
        products = np.zeros(rows.shape)
        for i, line in enumerate(rows):
            there = line >= 0
            products[i, there] = vectors[line[there]].astype(np.float64) @ parts[i].astype(
                np.float64
            )
        return products

    def gram(self, vectors: NDArray[np.float32], accurate: bool = True) -> Vector:
        """See `Kernel.gram`; always accurate here."""
        wide = vectors.astype(np.float64)
        return wide @ wide.T

    def accumulate(
        self, vectors: NDArray[np.float32], decays: Vector, gains: Vector, step: Vector
    ) -> None:
        """See `Kernel.accumulate`."""
        for vector, decay, gain in zip(vectors, decays, gains, strict=True):
            vector[:] = decay * vector.astype(np.float64) + gain * step

    def combine(
        self,
        out: NDArray[np.float32],
        targets: NDArray[np.int64],
        coefficients: Vector,
        vectors: NDArray[np.float32],
    ) -> None:
        """See `Kernel.combine`."""
        out[targets] = coefficients @ vectors.astype(np.float64)

    def deflate(
        self, vectors: NDArray[np.float32], decay: float, gain: float, step: Vector
    ) -> None:
        """See `Kernel.deflate`."""
        for vector in vectors:
            vector[:] = decay * vector.astype(np.float64) + gain * step
            q = vector.astype(np.float64)
            length = float(q @ q)
            t = float(step @ q) / length if length > 0 else 0.0
            step -= t * q
            step /= np.sqrt(1 + t * t)


def isotropic_parts(
    noise: Noise, draws: int, n: int, seed: int, generation: int
) -> NDArray[np.float32]:
    """Return z_0 of every draw of a generation, one a row."""
    every = np.arange(draws)
    if noise is Noise.NORMAL:
        return randomness.normals(n, seed, Stream.ISOTROPIC, generation, every)
    if noise is Noise.STUDENT:
        return randomness.student(n, seed, generation, every)
    return randomness.signs(n, seed, Stream.ISOTROPIC, generation, every)


def apply_increments(scale: Vector, increments: Vector) -> None:
    """Multiply the scale by exp(increment), less the mean: the overall size belongs to sigma."""
    increments -= increments.mean()
    scale *= np.exp(increments)


def confine(points: Vector, box: Box) -> None:
    """Bring points into the box, in place: onto its wall, or folded back as between mirrors."""
    if box.treatment is BoxTreatment.REFLECT:
        with np.errstate(invalid="ignore", over="ignore"):
            _reflect(points, box.lower, box.upper)
    np.clip(points, box.lower, box.upper, out=points)


def _reflect(points: Vector, lower: Vector, upper: Vector) -> None:
    period = 2.0 * (upper - lower)
    for x in points:
        outside = ~((x >= lower) & (x <= upper))
        if not outside.any():
            continue
        at, low, high, span = x[outside], lower[outside], upper[outside], period[outside]
        t = np.fmod(at - low, np.where(span > 0, span, 1.0))
        t += np.where(t < 0, span, 0.0)
        folded = np.where(span > 0, low + np.where(2.0 * t <= span, t, span - t), low)
        mirrored = np.where(at < low, 2.0 * low - at, 2.0 * high - at)
        x[outside] = np.where(np.isfinite(span), folded, mirrored)
