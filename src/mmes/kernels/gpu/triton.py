"""The kernel for GPUs: sampling, recombination and scales in fused Triton kernels.

Everything else is that of `TorchKernel`. With ``TRITON_INTERPRET=1`` it runs on the CPU, slowly,
which is how it is tested without a GPU.
"""
# pyright: reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportArgumentType=false

from __future__ import annotations

import operator
import os
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from mmes.kernels.gpu import triton_code, triton_steps
from mmes.kernels.gpu.torch import TorchKernel, inner_products
from mmes.kernels.gpu.triton_launch import Launch, Launcher
from mmes.kernels.gpu.triton_mail import Arrivals, Flow, Upload
from mmes.kernels.protocol import (
    DrawnRows,
    Noise,
    RecombineCall,
    SampleCall,
    ScaleCall,
    StepLaw,
    Vector,
)
from mmes.kernels.reference import SCALE_INCREMENT_LIMIT
from mmes.spaces.boxes import Box, BoxCode

# Philox blocks of one program, 4 coordinates each.
_BLOCKS = 128
# Draws of one program: the mean is read once for them.
_DRAWS = 2
_WARPS = 2
# Programs that fill a large GPU a few times over.
_PROGRAMS = 4096
# Coordinates of one program where no random numbers are made.
_SIZE = 1024
# Parents that are read together, and coordinates of one program that does.
_TOGETHER, _WIDTH = 4, 512
# Up to this many directions per draw, their loads are all under way at once.
_UNROLLED = 8
# From so many variables on the GPU works longer than the host: it goes ahead by a ranking of its
# own while the host waits for the values.
AHEAD = 2**18
# Rows and factors of one program that draws them.
_SMALL = 128
_HEAD = triton_code.HEAD
# Numbers of noise that are made at a time to be projected.
_PROJECTED = 2**28
# Sums over parts of the coordinates; their number does not depend on the GPU.
_PARTS = 4096


class _Tables(NamedTuple):
    """What draws mix.

    Attributes
    ----------
    drawing : tuple of Launch
        What must run before, to draw them.
    used : int
        Rows per draw.
    vectors : tuple of tensor
        Rows, their factors, and factors of the isotropic parts, a line for each draw.
    """

    drawing: tuple[Launch, ...]
    used: int
    vectors: tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class TritonKernel(TorchKernel):
    """Vectors on a GPU; parameters are those of `TorchKernel`."""

    def __init__(
        self, device: str, population_dtype: str | None = None, mean_dtype: str | None = None
    ):
        super().__init__(device, population_dtype, mean_dtype)
        if self.place.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
            raise ValueError(
                f"kernel='triton' needs a GPU, not device={device!r}; TRITON_INTERPRET=1 runs it "
                "on the CPU, for tests"
            )
        self.launch, flow = Launcher(self.place), Flow(self.place)
        # Each is sent once per generation; steps that are taken ahead of the values in turn with
        # others, since values that arrive say nothing of what was sent after them.
        self._news, self._step, self._lesson = Upload(flow), Upload(flow), Upload(flow)
        self._next_step, self._squares = Upload(flow), Upload(flow)
        self._ranks: tuple[torch.Tensor, torch.Tensor] | None = None
        self._arrivals = Arrivals(flow)
        self._nothing = torch.zeros(2, dtype=torch.float64, device=self.place)
        self._whole: tuple[tuple[int, int], torch.Tensor, torch.Tensor] | None = None
        self._table: tuple[Vector, torch.Tensor] | None = None
        self._bounds: tuple[Box, torch.Tensor] | None = None
        # Reused: work on a stream is done in order.
        self._mixed: tuple[torch.Tensor, torch.Tensor] | None = None
        self._increments: torch.Tensor | None = None
        # What recorded sampling is about, besides its key.
        self._known: tuple[Any, ...] = (None,) * 9
        self._seen: tuple[Any, ...] = (None,) * 4
        self._known_scale: torch.Tensor | None = None
        self._sums = torch.zeros(_PARTS, dtype=torch.float64, device=self.place)

    @property
    def name(self) -> str:
        """See `Kernel.name`."""
        return f"triton on {self.device}"

    def sample(self, call: SampleCall) -> None:
        """See `Kernel.sample`."""
        law, population = call.law, call.population
        count, n = population.shape
        own = call.box is not None and call.box.code is BoxCode.OWN
        drawn = law.drawn if call.directions is not None else None
        self._write_news(call, drawn)
        key = None if drawn is None or call.rows is not None else self._key_of(call, drawn)
        if key is not None and self.launch.replayed(self._news, key):
            return
        which, places = self._places(count, call)
        tables = self._tables(call, drawn)
        first, used = tables.drawing, tables.used
        rows, factors, each = tables.vectors
        if call.rows is not None:
            self.launch(self._news, *first)
            first = ()
            if used:
                end = call.draws * used
                rows, factors = (x[:end].view(-1, used)[which] for x in (rows, factors))
            if law.isotropic_each is not None:
                each = each[which]
        draws = which.shape[0]
        blocks = _parts(n, 4 * _BLOCKS)
        per_group = min(_DRAWS, max(1, blocks * draws // _PROGRAMS))
        groups = _parts(draws, per_group)
        scale, directions, box = self._read_only(call)
        vectors = population, self._news.there, call.mean, scale, directions
        sampling = Launch(
            triton_code.sample,
            (blocks * groups,),
            (*vectors, rows, factors, places, each, box),
            (n, draws, used, groups, per_group),
            _kinds(law, used, box is self._nothing, call.box),
            _WARPS,
        )
        self.launch(self._news, *first, sampling, key=None if own else key)
        if own:
            super().confine(population, population, call.box)  # type: ignore[arg-type]

    def sample_and_recombine(self, sampling: SampleCall, step: RecombineCall) -> None:
        """See `Kernel.sample_and_recombine`."""
        law, n, row = sampling.law, step.mean.shape[0], step.archive_row
        drawn = law.drawn if sampling.directions is not None else None
        self._write_news(sampling, drawn)
        _write_parents(self._step, step)
        tables = self._tables(sampling, drawn)
        scale, directions, box = self._read_only(sampling)
        vectors = step.mean, step.path, self._news.there, self._step.there, scale, directions
        fused = Launch(
            triton_steps.sample_and_recombine,
            (_parts(n, 4 * _BLOCKS),),
            (*vectors, *tables.vectors, box),
            (n, sampling.draws, tables.used, step.weights.size),
            _kinds(law, tables.used, box is self._nothing, sampling.box)
            | {
                "ARCHIVED": 0 if row is None else row.itemsize,
                "SINGLE": self.population_type is torch.float32,
            },
            _WARPS,
        )
        self.launch(self._news, *tables.drawing)
        self.launch(self._step, fused)

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

    def _tables(self, call: SampleCall, drawn: DrawnRows | None) -> _Tables:
        """Return what the draws of a generation mix; what is not there is a tensor not read."""
        law, drawing, used = call.law, (), 0
        rows = factors = each = self._nothing
        if drawn is not None:
            drawing, used = (self._drawing(drawn, call.draws, self._news.there),), drawn.used
            rows, factors = drawing[0].tensors[:2]
        elif call.directions is not None and law.rows is not None and law.factors is not None:
            used = law.rows.shape[1]
            rows = self.tensor(law.rows.astype(np.int64).ravel())
            factors = self.tensor(law.factors.astype(np.float32).ravel())
        if law.isotropic_each is not None:
            each = self.tensor(law.isotropic_each.astype(np.float32))
        return _Tables(drawing, used, (rows, factors, each))

    def _read_only(self, call: SampleCall) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return scale, directions and box of a call; where there are none, a tensor not read."""
        own = call.box is not None and call.box.code is BoxCode.OWN
        return (
            self._nothing if call.law.scale is None else call.law.scale,
            self._nothing if call.directions is None else call.directions,
            self._nothing if call.box is None or own else self._rows_of(call.box),
        )

    def _key_of(self, call: SampleCall, drawn: DrawnRows) -> Any:
        """Return what the work of a generation depends on, besides the numbers that are sent."""
        law, mean, directions, box = self._seen
        # Once the archive is full, the law is the same record in every generation.
        if (
            call.law is not law
            or call.mean is not mean
            or call.directions is not directions
            or call.box is not box
        ):
            self._seen = call.law, call.mean, call.directions, call.box
            self._look_closer(call, drawn)
        population = call.population
        return population.data_ptr(), population.shape[0], call.draws, self._news.address

    def _look_closer(self, call: SampleCall, drawn: DrawnRows) -> None:
        """Forget what was recorded, if a law of another name is another law."""
        law = call.law
        known = (
            call.mean,
            call.directions,
            call.box,
            law.scale,
            law.isotropic_each,
            law.noise,
            law.scale_rows,
            drawn.cumulative,
            drawn.used,
        )
        if any(map(operator.is_not, known, self._known)):
            self._known = known
            self.launch.forget()

    def _write_news(self, call: SampleCall, drawn: DrawnRows | None) -> None:
        """Write what is new in a generation: address, sigma, and the order of the directions."""
        news, isotropic = self._news, call.law.isotropic
        if drawn is None:
            news.open(_HEAD)
            news.head(call.seed, call.generation, (call.sigma, isotropic, 0.0), 0)
            return
        order = drawn.order
        end = _HEAD + order.size
        news.open(end)
        reals = call.sigma, isotropic, drawn.factor
        news.head(call.seed, call.generation, reals, order.size)
        news.whole[_HEAD:end] = order

    def _places(self, count: int, call: SampleCall) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the draws that are wanted, and where they go; those of whole generations kept."""
        if call.rows is not None:
            there = self.tensor(_places(np.asarray(call.rows), call.draws))
            return there[0], there
        if self._whole is None or self._whole[0] != (count, call.draws):
            there = self.tensor(_places(np.arange(count), call.draws))
            self._whole = (count, call.draws), there[0], there
        return self._whole[1:]

    def _drawing(self, drawn: DrawnRows, draws: int, numbers: torch.Tensor) -> Launch:
        """Return what draws the rows of each draw and their factors, its first two tensors."""
        if self._table is None or self._table[0] is not drawn.cumulative:
            self._table = drawn.cumulative, self.tensor(drawn.cumulative)
        m, total = drawn.cumulative.size, draws * drawn.used
        if self._mixed is None or self._mixed[0].numel() < total:
            rows = torch.empty(total, dtype=torch.int64, device=self.place)
            self._mixed = rows, torch.empty(total, dtype=torch.float32, device=self.place)
            self.launch.forget()
        return Launch(
            triton_code.drawn_rows,
            (_parts(total, _SMALL),),
            (*self._mixed, numbers, self._table[1]),
            (m, total, drawn.used),
            {"STEPS": m.bit_length() + 1, "SIZE": _SMALL},
        )

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
            (_parts(n, _WIDTH),),
            (call.population, self._step.there, call.mean, call.path, values, order),
            (call.weights.size, n),
            {
                "ARCHIVED": 0 if call.archive_row is None else call.archive_row.itemsize,
                "RANKED": call.ranking is not None,
                "TOGETHER": _TOGETHER,
                "SIZE": _WIDTH,
            },
        )

    def step_squares(self, call: RecombineCall) -> torch.Tensor:
        """See `ReducingKernel.step_squares`."""
        total, n = torch.empty_like(call.mean, dtype=torch.float64), call.mean.shape[0]
        _write_parents(self._squares, call)
        launch = Launch(
            triton_steps.step_squares,
            (_parts(n, _WIDTH),),
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
        if n < AHEAD or count > _SIZE or not self._arrivals.takes(values, count):
            return None
        return values.detach()

    def adapt_scale(self, call: ScaleCall) -> None:
        """See `Kernel.adapt_scale`."""
        n = call.scale.shape[0]
        if self._known_scale is not call.scale:
            self._known_scale = call.scale
            self._increments = torch.empty(n, dtype=torch.float64, device=self.place)
            self.launch.forget()
        self._write_weights(call)
        key = "scale", self._lesson.address, call.weights.size, call.noise
        if self.launch.replayed(self._lesson, key):
            return
        moment = self._moment(self._increments, call, 2, SCALE_INCREMENT_LIMIT)
        increments, sums = moment.tensors[:2]
        blocks = _parts(n, _SIZE)
        programs = min(blocks, _PARTS)
        growth = Launch(
            triton_code.grow,
            (programs,),
            (call.scale, increments, sums),
            (n, moment.grid[0], _parts(blocks, programs)),
            {"PARTS": _PARTS, "SIZE": _SIZE},
        )
        self.launch(self._lesson, moment, growth, key=key)

    def _noise_moment(self, weights: Vector, n: int, at: ScaleCall, power: int) -> torch.Tensor:
        del weights  # those of `at`
        total = torch.empty(n, dtype=torch.float64, device=self.place)
        self._write_weights(at)
        self.launch(self._lesson, self._moment(total, at, power, float("inf")))
        return total

    def _write_weights(self, call: ScaleCall) -> None:
        lesson, end = self._lesson, _HEAD + call.weights.size
        lesson.open(end)
        lesson.head(call.seed, call.generation, (call.rate, 0.0, 0.0), 0)
        lesson.real[_HEAD:end] = call.weights

    def fetched(self, values: Any) -> Any:
        """See `Kernel.fetched`."""
        return self._arrivals.fetched(values)

    def _moment(self, out: torch.Tensor, call: ScaleCall, power: int, limit: float) -> Launch:
        """Return what writes rate * sum_i weights_i z_{0,i}^power, clipped, and sums of parts."""
        n = out.numel()
        blocks = _parts(n, 4 * _BLOCKS)
        programs = min(blocks, _PARTS)
        return Launch(
            triton_code.noise_moment,
            (programs,),
            (out, self._sums, self._lesson.there),
            (n, call.weights.size, _parts(blocks, programs)),
            {"LIMIT": limit, "NOISE": int(call.noise), "POWER": power, "BLOCKS": _BLOCKS},
            _WARPS,
        )

    def confine(self, image: torch.Tensor, points: torch.Tensor, box: Box) -> None:
        """See `Kernel.confine`."""
        if box.code is BoxCode.OWN:
            super().confine(image, points, box)
            return
        image, points = torch.atleast_2d(image), torch.atleast_2d(points)
        rows, n = points.shape
        grid, vectors = (_parts(n, _SIZE), rows), (image, points, self._rows_of(box))
        constants = {"BOX": int(box.code), "SIZE": _SIZE}
        self.launch(None, Launch(triton_code.confine, grid, vectors, (n,), constants))

    def _rows_of(self, box: Box) -> torch.Tensor:
        """Return the arrays of a box as rows of one tensor, in float64."""
        if self._bounds is None or self._bounds[0] is not box:
            there = self.device_box(box)
            self._bounds = box, torch.stack([side.to(torch.float64) for side in there[1:]])
            self._box = None  # not kept twice
        return self._bounds[1]


def _parts(whole: int, part: int) -> int:
    """Return how many parts cover the whole; `triton.cdiv` takes ten times as long."""
    return -(-whole // part)


def _kinds(law: StepLaw, used: int, unboxed: bool, box: Box | None) -> dict[str, Any]:
    """Return what the kernels that make candidates are compiled for."""
    return {
        "NOISE": int(law.noise),
        "SCALED": 0 if law.scale is None else 1 + law.scale_rows,
        "USED": used if used <= _UNROLLED else -1,
        "EACH": law.isotropic_each is not None,
        "BOX": 0 if unboxed or box is None else int(box.code),
        "BLOCKS": _BLOCKS,
    }


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


def _places(candidates: NDArray[np.int64], draws: int) -> NDArray[np.int64]:
    """Return, for each draw that is wanted, its number, its row and that of its mirror image.

    -1 stands for a candidate that is not wanted.
    """
    drawn = np.unique(candidates % draws)
    of_draw = np.full(draws, -1)
    of_draw[drawn] = np.arange(drawn.size)
    places = np.full((3, drawn.size), -1)
    places[0] = drawn
    mirrored = candidates >= draws
    places[1 + mirrored, of_draw[candidates % draws]] = np.arange(candidates.size)
    return places
