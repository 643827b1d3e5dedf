"""The kernel in plain torch operations: vectors are tensors on any device.

The fallback where there is no Triton, and the oracle of the Triton kernel. Work that needs memory
in passing goes over the coordinates tile by tile, so that what was planned is what is used.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from mmes.base import randomness
from mmes.kernels.gpu.torch_random import NormalsAhead, parts
from mmes.kernels.gpu.torch_sampling import Sampling
from mmes.kernels.gpu.torch_vectors import TorchVectors, tiles
from mmes.kernels.protocol import (
    DrawnRows,
    Lessons,
    Noise,
    NoiseWithin,
    PathCall,
    RecombineCall,
    SampleCall,
    ScaleCall,
    Vector,
)
from mmes.kernels.reference import SCALE_INCREMENT_LIMIT, ReferenceKernel

# Coordinates that are summed up one after the other in products of rows.
_PART = 2048


class TorchKernel(TorchVectors):
    """Steps and sums in plain torch operations; see `Kernel` and `ReducingKernel`.

    Parameters are those of `TorchVectors`.
    """

    def __init__(
        self, device: str, population_dtype: str | None = None, mean_dtype: str | None = None
    ):
        super().__init__(device, population_dtype, mean_dtype)
        self._normals = NormalsAhead()

    # Steps

    def normals(self, count: int, seed: int, stream: int, generation: int) -> NDArray[np.float32]:
        """See `Kernel.normals`; made on the host, where they are wanted."""
        return self._normals(count, seed, stream, generation)

    def drawn_rows(
        self, drawn: DrawnRows, draws: int, seed: int, generation: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """See `ReferenceKernel.drawn_rows`."""
        return ReferenceKernel().drawn_rows(drawn, draws, seed, generation)

    def sample(self, call: SampleCall) -> None:
        """See `Kernel.sample`."""
        population = call.population
        count, n = population.shape
        made = Sampling(self, call, np.arange(count) if call.rows is None else call.rows)
        for first, last in tiles(n, count):
            population[:, first:last] = made.points(first, last)
        if call.box is not None:
            self.confine(population, population, call.box)

    def recombine(self, call: RecombineCall) -> None:
        """See `Kernel.recombine`."""
        self._move(call, self._parents_of(call))

    def sample_and_recombine(self, sampling: SampleCall, step: RecombineCall) -> None:
        """See `Kernel.sample_and_recombine`."""
        made = Sampling(self, sampling, step.parents)
        box = None if sampling.box is None else self.device_box(sampling.box)

        def parents(first: int, last: int) -> torch.Tensor:
            points = made.points(first, last).to(self.population_type)
            return points if box is None else box.part(first, last).map_points(points)

        self._move(step, parents)

    def adapt_scale(self, call: ScaleCall) -> float:
        """See `Kernel.adapt_scale`."""
        scale, n, limit = call.scale, call.scale.shape[0], SCALE_INCREMENT_LIMIT
        if call.lessons is not None:
            lesson = torch.empty(n, dtype=torch.float64, device=self.place)
            for first, last, moment in self._noise_moments(call, n, power=2):
                lesson[first:last] = moment
            return self.take_lesson(call, call.lessons, lesson)
        total = torch.zeros((), dtype=torch.float64, device=self.place)
        for first, last, moment in self._noise_moments(call, n, power=2):
            increments = moment.mul_(call.rate).clamp_(-limit, limit)
            total += increments.sum()
            scale[first:last].mul_(increments.exp_())
        scale.mul_(torch.exp(-total / n))
        return 0.0

    def take_lesson(self, call: ScaleCall, lessons: Lessons, lesson: torch.Tensor) -> float:
        """Learn from sum_i weights_i z_{0,i}^2, which is overwritten; see `Lessons`."""
        path, threshold = lessons.path, lessons.threshold
        lesson -= lesson.mean()
        # The path before this generation: so the rate and the lesson are independent.
        above = path.square().sub_(threshold).clamp_min_(0.0)
        rate = above.mul_(lessons.slope).add_(lessons.factor).clamp_max_(lessons.fastest)
        self.blend(path, lessons.decay, lessons.gain, lesson)
        limit = SCALE_INCREMENT_LIMIT
        increments = lesson.mul_(rate).mul_(call.rate).clamp_(-limit, limit)
        increments -= increments.mean()
        call.scale.mul_(increments.exp_())
        return float(path.square().clamp_max_(threshold).sum())

    # Sums over coordinates and draws

    def fill_normals(self, rows: torch.Tensor, size: float, seed: int, stream: int) -> None:
        """See `ReducingKernel.fill_normals`."""
        entries = randomness.normals(rows.numel(), seed, stream, 0) * np.float32(size)
        self.assign(rows, entries.reshape(tuple(rows.shape)))

    def noise_sum(
        self, weights: Vector, n: int, noise: Noise, seed: int, generation: int
    ) -> torch.Tensor:
        """See `ReducingKernel.noise_sum`."""
        total = torch.empty(n, dtype=torch.float64, device=self.place)
        at = ScaleCall(None, weights, 1.0, noise, seed, generation)
        for first, last, part in self._noise_moments(at, n, power=1):
            total[first:last] = part
        return total

    def follow_noise(self, call: PathCall, lesson: ScaleCall | None) -> float:
        """See `ReducingKernel.follow_noise`; no vector in passing."""
        path, decay, gain = call.path, call.decay, call.gain
        for first, last, total in self._noise_moments(call, path.shape[0], power=1):
            self.blend(path[first:last], decay, gain, total)
        return 0.0 if lesson is None else self.adapt_scale(lesson)

    def noise_within(self, call: NoiseWithin) -> tuple[torch.Tensor, float]:
        """See `ReducingKernel.noise_within`."""
        n, draws, there = call.mean.shape[0], call.draws, self.device_box(call.box)
        total = torch.empty(n, dtype=torch.float64, device=self.place)
        left, drawn = torch.zeros((2, 1), dtype=torch.float64, device=self.place)
        weights, count = self.tensor(call.weights)[:, None], call.weights.size
        for first, last in tiles(n, count):
            at = call.seed, call.generation
            own = self.parts(call.noise, np.arange(draws), (first, last), at).to(torch.float64)
            part = torch.cat((own, -own[: count - draws]))
            x = call.population[:, first:last].to(torch.float64)
            inside = (x > there.lowest[first:last]) & (x < there.highest[first:last])
            size = call.size if call.scale is None else call.size * call.scale[first:last]
            evaluated = (x - call.mean[first:last]) / size
            fitting = torch.where(
                part > 0,
                torch.minimum(part, evaluated.clamp_min(0.0)),
                torch.maximum(part, evaluated.clamp_max(0.0)),
            )
            for steps, squares in ((torch.where(inside, part, fitting), left), (part, drawn)):
                together = weights[:draws] * steps[:draws]
                together[: count - draws] += weights[draws:] * steps[draws:]
                squares += together.square().sum()
                if squares is left:
                    total[first:last] = together.sum(0)
        whole = float(drawn)
        return total, float(left) / whole if whole > 0 else 0.0

    def step_squares(self, call: RecombineCall) -> torch.Tensor:
        """See `ReducingKernel.step_squares`."""
        total = torch.empty_like(call.mean)
        for first, last, square in self._weighted_steps(call, self._parents_of(call), power=2):
            total[first:last] = square * call.gain**2
        return total

    def adapt_deviations(
        self,
        deviations: torch.Tensor,
        rates: tuple[float, float, float],
        path: torch.Tensor,
        squares: torch.Tensor,
    ) -> None:
        """See `ReducingKernel.adapt_deviations`."""
        deviations.square_().mul_(rates[0])
        deviations.add_(path.square(), alpha=rates[1]).add_(squares, alpha=rates[2]).sqrt_()

    def project(
        self,
        vectors: torch.Tensor,
        rows: NDArray[np.int64],
        noise: Noise,
        seed: int,
        generation: int,
    ) -> Vector:
        """See `ReducingKernel.project`."""
        draws = np.arange(rows.shape[0])
        taken, columns = np.unique(rows, return_inverse=True)
        chosen = self.tensor(np.maximum(taken, 0))
        products = torch.zeros((rows.shape[0], taken.size), dtype=torch.float64, device=self.place)
        for first, last in tiles(vectors.shape[1], max(taken.size, draws.size, 1)):
            z = self.parts(noise, draws, (first, last), (seed, generation))
            products += inner_products(z, vectors[chosen, first:last])
        found = self.to_host(products)[draws[:, None], columns.reshape(rows.shape)]
        return np.where(rows < 0, 0.0, found)

    def products(self, vectors: torch.Tensor, vector: torch.Tensor) -> Vector:
        """See `ReducingKernel.products`."""
        total = torch.zeros(vectors.shape[0], dtype=torch.float64, device=self.place)
        for first, last in tiles(vectors.shape[1], vectors.shape[0]):
            wide = vector[first:last].to(torch.float64)
            total += vectors[:, first:last].to(torch.float64) @ wide
        return self.to_host(total)

    def add_rows(self, target: torch.Tensor, coefficients: Vector, vectors: torch.Tensor) -> None:
        """See `ReducingKernel.add_rows`."""
        weights = self.tensor(np.asarray(coefficients, dtype=np.float64))
        for first, last in tiles(vectors.shape[1], vectors.shape[0]):
            target[first:last] += weights @ vectors[:, first:last].to(torch.float64)

    def gram(self, vectors: torch.Tensor, accurate: bool = True) -> Vector:
        """See `ReducingKernel.gram`; always accurate here."""
        m = vectors.shape[0]
        total = torch.zeros((m, m), dtype=torch.float64, device=self.place)
        for first, last in self.wide_tiles(vectors.shape[1], m):
            part = vectors[:, first:last]
            total += inner_products(part, part)
        return self.to_host(total)

    def accumulate(
        self, vectors: torch.Tensor, decays: Vector, gains: Vector, step: torch.Tensor
    ) -> None:
        """See `ReducingKernel.accumulate`."""
        decay, gain = (self.tensor(factors)[:, None] for factors in (decays, gains))
        for first, last in self.wide_tiles(*vectors.shape[::-1]):
            part = vectors[:, first:last]
            wide = part.to(torch.float64).mul_(decay)
            part.copy_(wide.addcmul_(gain, step[None, first:last].to(torch.float64)))

    def combine(
        self,
        out: torch.Tensor,
        targets: NDArray[np.int64],
        coefficients: Vector,
        vectors: torch.Tensor,
    ) -> None:
        """See `ReducingKernel.combine`."""
        weights, rows = self.tensor(coefficients), self.tensor(targets)
        for first, last in tiles(vectors.shape[1], vectors.shape[0]):
            sums = weights @ vectors[:, first:last].to(torch.float64)
            out[rows, first:last] = sums.to(torch.float32)

    def deflate(self, vectors: torch.Tensor, decay: float, gain: float, step: torch.Tensor) -> None:
        """See `ReducingKernel.deflate`; nothing waits for the host."""
        for vector in vectors:
            vector.copy_(vector.to(torch.float64).mul_(decay).add_(step, alpha=gain))
            q = vector.to(torch.float64)
            length = torch.dot(q, q)
            product = torch.dot(step.to(torch.float64), q)
            t = torch.where(length > 0, product / length.clamp(min=1e-300), 0.0)
            step.sub_(t * q).div_(torch.sqrt(1 + t * t))

    # Inner works

    def parts(
        self,
        noise: Noise,
        draws: NDArray[np.int64],
        span: tuple[int, int],
        address: tuple[int, int],
    ) -> torch.Tensor:
        """Return entries of z_0; see `torch_random.parts`."""
        return parts(noise, draws, span, address, self.place)

    def _noise_moments(
        self, at: ScaleCall | PathCall, n: int, power: int
    ) -> Iterator[tuple[int, int, torch.Tensor]]:
        """Yield sum_i weights_i z_{0,i}^power, tile by tile."""
        every, column = np.arange(at.weights.size), self.tensor(at.weights)[:, None]
        for first, last in tiles(n, at.weights.size):
            z = self.parts(at.noise, every, (first, last), (at.seed, at.generation))
            yield first, last, (column * z.to(torch.float64) ** power).sum(0)

    def _parents_of(self, call: RecombineCall) -> Callable[[int, int], torch.Tensor]:
        """Return what gives the parents' entries of a span of the coordinates, one per row."""
        rows = self.tensor(call.parents)
        return lambda first, last: call.population[rows, first:last]  # type: ignore[index]

    def _weighted_steps(
        self, call: RecombineCall, parents: Callable[[int, int], torch.Tensor], power: int = 1
    ) -> Iterator[tuple[int, int, torch.Tensor]]:
        """Yield sum_k weights_k (x_k - mean)^power of the parents, tile by tile."""
        weights = self.tensor(call.weights)[:, None]
        for first, last in tiles(call.mean.shape[0], call.weights.size):
            centre = call.mean[first:last].to(torch.float64)
            steps = parents(first, last).to(torch.float64) - centre
            yield first, last, (weights * steps**power).sum(0)

    def _move(self, call: RecombineCall, parents: Callable[[int, int], torch.Tensor]) -> None:
        """Move mean and path, and write the row of the archive."""
        for first, last, step in self._weighted_steps(call, parents):
            path = call.path[first:last]
            path.mul_(call.decay).add_(step, alpha=call.gain)
            call.mean[first:last].add_(step)
            if call.archive_row is not None:
                # Rounded to float32 first, as in every kernel.
                call.archive_row[first:last] = path.to(torch.float32)


def inner_products(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
    """Return all products of rows of one with rows of another, in float64.

    In parts along the rows, which a GPU works on at once: a product of few but very long rows would
    keep a small share of it busy.
    """
    one, two = one.to(torch.float64), two.to(torch.float64)
    count = one.shape[1] // _PART
    whole = count * _PART
    parts = one[:, :whole].view(len(one), count, _PART).transpose(0, 1)
    others = two[:, :whole].view(len(two), count, _PART).permute(1, 2, 0)
    return torch.bmm(parts, others).sum(0).add_(one[:, whole:] @ two[:, whole:].T)
