"""The kernel for GPUs: sampling, recombination and scales in fused Triton kernels.

Everything else is that of `TorchKernel`. With ``TRITON_INTERPRET=1`` it runs on the CPU, slowly,
which is how it is tested without a GPU.
"""
# pyright: reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mmes.kernels.gpu import triton_code, triton_learning, triton_sampling, triton_steps
from mmes.kernels.gpu.torch import inner_products
from mmes.kernels.gpu.triton_launch import Launch
from mmes.kernels.gpu.triton_mail import Arrivals, Upload
from mmes.kernels.gpu.triton_sampling import SIZE, TritonSampling, kinds_of, parts_of
from mmes.kernels.protocol import (
    Noise,
    PathCall,
    RecombineCall,
    SampleCall,
    ScaleCall,
    StepLaw,
    Vector,
)
from mmes.kernels.reference import SCALE_INCREMENT_LIMIT

# Philox blocks and warps of one program that makes parents and adds them up.
BLOCKS, WARPS = 128, 1
# Parents that are read together, and coordinates of one program that does.
_TOGETHER, _WIDTH = 4, 512
# From so many variables on the GPU works longer than the host: it goes ahead by a ranking of its
# own while the host waits for the values.
AHEAD = 2**18
_HEAD = triton_code.HEAD
# Numbers of noise that are made at a time to be projected.
_PROJECTED = 2**28
# Sums over parts of the coordinates; their number does not depend on the GPU.
_PARTS = 4096


class TritonKernel(TritonSampling):
    """Vectors on a GPU; parameters are those of `TorchKernel`."""

    def __init__(
        self, device: str, population_dtype: str | None = None, mean_dtype: str | None = None
    ):
        super().__init__(device, population_dtype, mean_dtype)
        # Each is sent once per generation; steps that are taken ahead of the values in turn with
        # others, since values that arrive say nothing of what was sent after them.
        self._step, self._lesson = Upload(self._flow), Upload(self._flow)
        self._next_step, self._squares = Upload(self._flow), Upload(self._flow)
        self._ranks: tuple[torch.Tensor, torch.Tensor] | None = None
        self._arrivals = Arrivals(self._flow)
        # Reused: work on a stream is done in order.
        self._taught = torch.empty(0, dtype=torch.float64, device=self.place)
        self._taken = torch.zeros(2 * _PARTS, dtype=torch.float64, device=self.place)
        self._sums, self._products = torch.zeros(
            (2, _PARTS), dtype=torch.float64, device=self.place
        )

    @property
    def name(self) -> str:
        """See `Kernel.name`."""
        return f"triton on {self.device}"

    def sample_and_recombine(self, sampling: SampleCall, step: RecombineCall) -> None:
        """See `Kernel.sample_and_recombine`."""
        law, n, row = sampling.law, step.mean.shape[0], step.archive_row
        drawn = law.drawn if sampling.directions is not None else None
        _write_parents(self._step, step)
        self.bring(sampling, drawn)
        key = None
        if law.isotropic_each is None:
            self.recognise(sampling, drawn)
            memory = step.mean.data_ptr(), step.path.data_ptr(), self._step.address
            sizes = step.weights.size, 0 if row is None else row.itemsize
            key = "made", *memory, self._news.address, *sizes, sampling.draws
            if self.launch.replayed(self._step, key):
                return
        tables = self.tables(sampling, drawn)
        scale, directions, box = self._read_only(sampling)
        vectors = step.mean, step.path, self._news.there, self._step.there, scale, directions
        single = self.population_type is torch.float32
        fused = Launch(
            triton_steps.sample_and_recombine,
            (parts_of(n, 4 * BLOCKS),),
            (*vectors, *tables.vectors, box),
            (n, sampling.draws, tables.used, step.weights.size),
            kinds_of(law, tables.used, box is self._nothing, sampling.box)
            | {
                "BLOCKS": BLOCKS,
                "WIDE": not single or self.wide(step.mean),
                "ARCHIVED": 0 if row is None else row.itemsize,
                "SINGLE": single,
            },
            WARPS,
        )
        self.launch(self._step, fused, key=key)

    def project(
        self,
        vectors: torch.Tensor,
        rows: NDArray[np.int64],
        noise: Noise,
        seed: int,
        generation: int,
    ) -> Vector:
        """See `ReducingKernel.project`; the noise is made by the kernel that samples."""
        draws, n = rows.shape[0], vectors.shape[1]
        taken, columns = np.unique(rows, return_inverse=True)
        chosen = self.tensor(np.maximum(taken, 0))
        found = np.empty((draws, taken.size))
        origin, law = self.vector(n), StepLaw(noise=noise)
        few = max(_PROJECTED // n, 1)
        for first in range(0, draws, few):
            some = np.arange(first, min(first + few, draws))
            z = torch.empty((some.size, n), dtype=torch.float32, device=self.place)
            self.sample(SampleCall(z, draws, origin, 1.0, None, law, None, seed, generation, some))
            products = torch.zeros((some.size, taken.size), dtype=torch.float64, device=self.place)
            for begin, end in self.wide_tiles(n, max(some.size, taken.size)):
                products += inner_products(z[:, begin:end], vectors[chosen, begin:end])
            found[some] = self.to_host(products)
        found = found[np.arange(draws)[:, None], columns.reshape(rows.shape)]
        return np.where(rows < 0, 0.0, found)

    def recombine(self, call: RecombineCall) -> None:
        """See `Kernel.recombine`."""
        population, mean, path, row = call.population, call.mean, call.path, call.archive_row
        count, step = call.weights.size, self._step
        _write_parents(step, call)
        if call.ranking is not None:
            self._step_ahead(call)
            return
        memory = population.data_ptr(), mean.data_ptr(), path.data_ptr(), step.address
        n = mean.shape[0]
        key = *memory, n, count, 0 if row is None else row.itemsize
        if self.launch.replayed(step, key):
            return
        self.launch(step, self._recombining(call, self._nothing, self._nothing), key=key)

    def _recombining(self, call: RecombineCall, values: Any, order: Any) -> Launch:
        n = call.mean.shape[0]
        return Launch(
            triton_steps.recombine,
            (parts_of(n, _WIDTH),),
            (call.population, self._step.there, call.mean, call.path, values, order),
            (call.weights.size, n),
            {
                "ARCHIVED": 0 if call.archive_row is None else call.archive_row.itemsize,
                "RANKED": call.ranking is not None,
                "TOGETHER": _TOGETHER,
                "SIZE": _WIDTH,
                "WIDE": self.wide(call.mean, call.population),
            },
        )

    def step_squares(self, call: RecombineCall) -> torch.Tensor:
        """See `ReducingKernel.step_squares`."""
        total, n = torch.empty_like(call.mean, dtype=torch.float64), call.mean.shape[0]
        _write_parents(self._squares, call)
        launch = Launch(
            triton_steps.step_squares,
            (parts_of(n, _WIDTH),),
            (total, call.population, self._squares.there, call.mean),
            (call.weights.size, n),
            {"TOGETHER": _TOGETHER, "SIZE": _WIDTH},
        )
        self.launch(self._squares, launch)
        return total

    def _step_ahead(self, call: RecombineCall) -> None:
        """Rank the values on the GPU and recombine by that, while they are on their way."""
        values: Any = call.ranking
        step = self._step
        count, words = values.shape[0], _HEAD + 2 * call.weights.size
        if self._ranks is None or self._ranks[0].shape[0] != count:
            order = torch.empty(count, dtype=torch.int64, device=self.place)
            self._ranks = order, torch.empty(1, dtype=torch.float64, device=self.place)
        told = self._arrivals.awaited(values)
        ranking = Launch(
            triton_steps.rank,
            (1,),
            (*self._ranks, told, step.there, values, step.pinned),
            (count, words),
            {"SIZE": _power_of_two(count), "WORDS": _power_of_two(words)},
        )
        order, best = self._ranks
        self.launch(None, ranking, self._recombining(call, best, order))
        step.sent()
        self._step, self._next_step = self._next_step, self._step

    def ranked(self, values: Any, count: int, n: int) -> torch.Tensor | None:
        """See `Kernel.ranked`; the values themselves, where the GPU would be waited for."""
        if n < AHEAD or count > SIZE or not self._arrivals.takes(values, count):
            return None
        return values.detach()

    def adapt_scale(self, call: ScaleCall) -> float:
        """See `Kernel.adapt_scale`."""
        return self._learn(None, call)

    def follow_noise(self, call: PathCall, lesson: ScaleCall | None) -> float:
        """See `ReducingKernel.follow_noise`; both in one pass over the noise."""
        return self._learn(call, lesson)

    def noise_sum(
        self, weights: Vector, n: int, noise: Noise, seed: int, generation: int
    ) -> torch.Tensor:
        """See `ReducingKernel.noise_sum`."""
        total = torch.zeros(n, dtype=torch.float64, device=self.place)
        self._learn(PathCall(total, weights, 0.0, 1.0, noise, seed, generation), None, again=False)
        return total

    def _learn(self, path: PathCall | None, scale: ScaleCall | None, again: bool = True) -> float:
        """Move a path or the scale, or both; work that may come again is recorded."""
        call: Any = scale if path is None else path
        lessons = None if scale is None else scale.lessons
        numbers, draws = self._lesson, call.weights.size
        rates = (0.0, 0.0) if path is None else (path.decay, path.gain)
        middle = _HEAD + draws
        end = middle + draws
        numbers.open(end + 6)
        numbers.head(call.seed, call.generation, (*rates, 0.0 if scale is None else scale.rate), 0)
        if path is not None:
            numbers.real[_HEAD:middle] = path.weights
        if scale is not None:
            numbers.real[middle:end] = scale.weights
        if lessons is not None:
            numbers.real[end : end + 6] = lessons[1:]
            if self._taught.shape != lessons.path.shape:
                self._taught = torch.empty_like(lessons.path, dtype=torch.float64)
        moved = (path, scale, lessons)
        vectors = [self._nothing if x is None else x[0] for x in moved]
        held = *(vector.data_ptr() for vector in vectors), call[0].shape[0]
        key = ("learn", *held, numbers.address, draws, call.noise) if again else None
        if key is None or not self.launch.replayed(numbers, key):
            self.launch(numbers, *self._learning(vectors, draws, call.noise), key=key)
        if lessons is None:
            return 0.0
        return float(self._taken[_PARTS : _PARTS + _spread(call[0].shape[0], SIZE)[0]].sum())

    def _learning(self, vectors: list[torch.Tensor], draws: int, noise: Noise) -> list[Launch]:
        path, scale, lessons = vectors
        n = max(vector.shape[0] for vector in vectors)
        moved, grown, kept = (vector is not self._nothing for vector in vectors)
        programs, rounds = _spread(n, 4 * triton_sampling.BLOCKS)
        numbers = self._lesson.there
        learning = Launch(
            triton_learning.learn,
            (programs,),
            (path, self._taught if kept else scale, self._sums, numbers),
            (n, draws, rounds),
            {
                "PATH": moved,
                "SCALE": grown,
                "KEEP": kept,
                "LIMIT": SCALE_INCREMENT_LIMIT,
                "NOISE": int(noise),
                "BLOCKS": triton_sampling.BLOCKS,
            },
            triton_sampling.WARPS,
        )
        if not grown:
            return [learning]
        others, turns = _spread(n, SIZE)
        constants: dict[str, Any] = {"PARTS": _PARTS, "SIZE": SIZE}
        if not kept:
            sizes = n, programs, turns
            return [
                learning,
                Launch(triton_learning.centre, (others,), (scale, self._sums), sizes, constants),
            ]
        taking = Launch(
            triton_learning.take,
            (others,),
            (lessons, self._taught, self._sums, self._taken, numbers),
            (n, draws, programs, turns),
            constants | {"LIMIT": SCALE_INCREMENT_LIMIT},
        )
        vectors = [scale, self._taught, self._taken]
        growing = Launch(
            triton_learning.grow, (others,), tuple(vectors), (n, others, turns), constants
        )
        return [learning, taking, growing]

    def dot(self, a: torch.Tensor, b: torch.Tensor) -> float:
        """See `Kernel.dot`."""
        n = a.shape[0]
        programs, rounds = _spread(n, SIZE)
        tensors, constants = (self._products, a, b), {"SIZE": SIZE}
        self.launch(
            None, Launch(triton_learning.product_sums, (programs,), tensors, (n, rounds), constants)
        )
        return float(self._products[:programs].sum())

    def fetched(self, values: Any) -> Any:
        """See `Kernel.fetched`."""
        return self._arrivals.fetched(values)


def _write_parents(upload: Upload, call: RecombineCall) -> None:
    """Write what the kernels that read parents want to know."""
    row, count = call.archive_row, call.weights.size
    middle = _HEAD + count
    upload.open(middle + count)
    upload.head(0, 0, (call.decay, call.gain, 0.0), 0 if row is None else row.data_ptr())
    upload.whole[_HEAD:middle] = call.parents
    upload.real[middle : middle + count] = call.weights


def _power_of_two(size: int) -> int:
    """Return the least power of two that is no smaller."""
    return 1 << (size - 1).bit_length()


def _spread(n: int, part: int) -> tuple[int, int]:
    """Return how many programs share the coordinates, and how many parts each works on."""
    parts = parts_of(n, part)
    programs = min(parts, _PARTS)
    return programs, parts_of(parts, programs)
