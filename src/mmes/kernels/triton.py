"""The kernel for GPUs: sampling, recombination and scales in fused Triton kernels.

Everything else is that of `TorchKernel`. With ``TRITON_INTERPRET=1`` it runs on the CPU, slowly,
which is how it is tested without a GPU.
"""
# pyright: reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportArgumentType=false

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
import triton
from numpy.typing import NDArray

from mmes.boxes import Box, BoxCode
from mmes.kernels import triton_code
from mmes.kernels.protocol import DrawnRows, RecombineCall, SampleCall, ScaleCall, Vector
from mmes.kernels.reference import SCALE_INCREMENT_LIMIT
from mmes.kernels.torch import TorchKernel
from mmes.kernels.triton_launch import Launcher

# Philox blocks of one program, 4 coordinates each.
_BLOCKS = 128
# Draws of one program: the mean is read once for them.
_DRAWS = 2
_WARPS = 2
# Programs that fill a large GPU a few times over.
_PROGRAMS = 4096
# Coordinates of one program where no random numbers are made.
_SIZE = 1024
# Up to this many directions per draw, their loads are all under way at once.
_UNROLLED = 8
# Rows and factors of one program that draws them.
_SMALL = 128
# Uploads before the device is waited for.
_SLOTS = 64
_NOBODY = np.empty(0, dtype=np.int64)


class TritonKernel(TorchKernel):
    """Vectors on a GPU; parameters are those of `TorchKernel`."""

    def __init__(self, device: str, population_dtype: str | None = None):
        super().__init__(device, population_dtype)
        if self.place.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
            raise ValueError(
                f"kernel='triton' needs a GPU, not device={device!r}; TRITON_INTERPRET=1 runs it "
                "on the CPU, for tests"
            )
        self._uploads, self._launch = _Uploads(self.place), Launcher()
        self._whole: tuple[tuple[int, int], torch.Tensor, torch.Tensor] | None = None
        self._table: tuple[Vector, torch.Tensor] | None = None
        self._bounds: tuple[Box, torch.Tensor] | None = None

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
        numbers = self._uploads.send(
            _head(call, call.sigma, law.isotropic, 0.0 if drawn is None else drawn.factor),
            _NOBODY if drawn is None else drawn.order,
        )
        which, places = self._places(count, call)
        rows = factors = each = self._nothing
        used = 0
        if drawn is not None:
            used = drawn.used
            rows, factors = self._drawn(drawn, call.draws, numbers)
            if call.rows is not None:
                rows, factors = (x.view(call.draws, used)[which] for x in (rows, factors))
        elif call.directions is not None and law.rows is not None and law.factors is not None:
            used = law.rows.shape[1]
            rows = self._tensor(law.rows.astype(np.int64))[which]
            factors = self._tensor(law.factors.astype(np.float32))[which]
        if law.isotropic_each is not None:
            each = self._tensor(law.isotropic_each.astype(np.float32))[which]
        draws = which.shape[0]
        blocks = triton.cdiv(n, 4 * _BLOCKS)
        per_group = min(_DRAWS, max(1, blocks * draws // _PROGRAMS))
        groups = triton.cdiv(draws, per_group)
        box, code = self._nothing, 0
        if call.box is not None and not own:
            box, code = self._rows_of(call.box), int(call.box.code)
        scale = self._nothing if law.scale is None else law.scale
        directions = self._nothing if call.directions is None else call.directions
        vectors = population, numbers, call.mean, scale, directions, rows, factors, places
        self._launch(
            triton_code.sample,
            (blocks * groups,),
            (*vectors, each, box, n, draws, used, groups, per_group),
            _WARPS,
            NOISE=int(law.noise),
            SCALED=0 if law.scale is None else 1 + law.scale_rows,
            USED=used if used <= _UNROLLED else -1,
            EACH=law.isotropic_each is not None,
            BOX=code,
            BLOCKS=_BLOCKS,
        )
        if own:
            super().confine(population, population, call.box)  # type: ignore[arg-type]

    def _places(self, count: int, call: SampleCall) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the draws that are wanted, and where they go; those of whole generations kept."""
        if call.rows is not None:
            there = self._tensor(_places(np.asarray(call.rows), call.draws))
            return there[0], there
        if self._whole is None or self._whole[0] != (count, call.draws):
            there = self._tensor(_places(np.arange(count), call.draws))
            self._whole = (count, call.draws), there[0], there
        return self._whole[1:]

    def _drawn(
        self, drawn: DrawnRows, draws: int, numbers: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the rows that each draw takes and their factors, drawn on the device."""
        if self._table is None or self._table[0] is not drawn.cumulative:
            self._table = drawn.cumulative, self._tensor(drawn.cumulative)
        m, total = drawn.cumulative.size, draws * drawn.used
        rows = torch.empty(total, dtype=torch.int64, device=self.place)
        factors = torch.empty(total, dtype=torch.float32, device=self.place)
        self._launch(
            triton_code.drawn_rows,
            (triton.cdiv(total, _SMALL),),
            (rows, factors, numbers, self._table[1], m, drawn.order.size, total, drawn.used),
            4,
            STEPS=m.bit_length() + 1,
            SIZE=_SMALL,
        )
        return rows, factors

    def recombine(self, call: RecombineCall) -> None:
        """See `Kernel.recombine`."""
        n = call.mean.shape[0]
        weights = np.asarray(call.weights, dtype=np.float64).view(np.int64)
        numbers = self._uploads.send(_head(None, call.decay, call.gain), call.parents, weights)
        row = self._nothing if call.archive_row is None else call.archive_row
        self._launch(
            triton_code.recombine,
            (triton.cdiv(n, _SIZE),),
            (call.population, numbers, call.mean, call.path, row, call.weights.size, n),
            4,
            ARCHIVED=call.archive_row is not None,
            SIZE=_SIZE,
        )

    def adapt_scale(self, call: ScaleCall) -> None:
        """See `Kernel.adapt_scale`."""
        n = call.scale.shape[0]
        increments = self._moment(call, n, power=2, limit=SCALE_INCREMENT_LIMIT)
        arguments = call.scale, increments, increments.sum(), n
        self._launch(triton_code.grow, (triton.cdiv(n, _SIZE),), arguments, 4, SIZE=_SIZE)

    def _noise_moment(self, weights: Vector, n: int, at: ScaleCall, power: int) -> torch.Tensor:
        del weights  # those of `at`
        return self._moment(at, n, power, limit=float("inf"))

    def _moment(self, call: ScaleCall, n: int, power: int, limit: float) -> torch.Tensor:
        """Return rate * sum_i weights_i z_{0,i}^power, clipped."""
        entries = torch.empty(n, dtype=torch.float64, device=self.place)
        weights = np.asarray(call.weights, dtype=np.float64).view(np.int64)
        numbers = self._uploads.send(_head(call, call.rate), weights)
        self._launch(
            triton_code.noise_moment,
            (triton.cdiv(n, 4 * _BLOCKS),),
            (entries, numbers, n, call.weights.size),
            _WARPS,
            LIMIT=limit,
            NOISE=int(call.noise),
            POWER=power,
            BLOCKS=_BLOCKS,
        )
        return entries

    def confine(self, image: torch.Tensor, points: torch.Tensor, box: Box) -> None:
        """See `Kernel.confine`."""
        if box.code is BoxCode.OWN:
            super().confine(image, points, box)
            return
        image, points = torch.atleast_2d(image), torch.atleast_2d(points)
        rows, n = points.shape
        grid = triton.cdiv(n, _SIZE), rows
        arguments = image, points, self._rows_of(box), n
        self._launch(triton_code.confine, grid, arguments, 4, BOX=int(box.code), SIZE=_SIZE)

    def _rows_of(self, box: Box) -> torch.Tensor:
        """Return the arrays of a box as rows of one tensor, in float64."""
        if self._bounds is None or self._bounds[0] is not box:
            there = self.device_box(box)
            self._bounds = box, torch.stack([side.to(torch.float64) for side in there[1:]])
            self._box = None  # not kept twice
        return self._bounds[1]

    @property
    def _nothing(self) -> torch.Tensor:
        return self._uploads.nothing


class _Uploads:
    """Small arrays on their way to the device, without waiting for it."""

    def __init__(self, device: torch.device):
        self._device = device
        self.nothing = torch.zeros(2, dtype=torch.float64, device=device)
        self._pinned: list[torch.Tensor] = []
        self._next = 0

    def send(self, *arrays: NDArray[Any]) -> torch.Tensor:
        """Return int64 arrays, joined, on the device."""
        whole = np.concatenate(arrays)
        if self._device.type != "cuda":
            return torch.from_numpy(whole)
        if self._next == len(self._pinned) == _SLOTS:
            # All memory was used once; what was sent from it first may still be on its way.
            torch.cuda.current_stream(self._device).synchronize()
            self._next = 0
        if self._next == len(self._pinned):
            self._pinned.append(_pinned(whole.size))
        pinned = self._pinned[self._next]
        if pinned.numel() < whole.size:
            pinned = self._pinned[self._next] = _pinned(whole.size)
        self._next += 1
        pinned.numpy()[: whole.size] = whole
        return pinned[: whole.size].to(self._device, non_blocking=True)


def _pinned(size: int) -> torch.Tensor:
    return torch.empty(2 * size, dtype=torch.int64, pin_memory=True)


def _head(call: SampleCall | ScaleCall | None, *reals: float) -> NDArray[np.int64]:
    """Return the numbers that every kernel finds at the beginning: an address, and real ones."""
    head = np.zeros(triton_code.HEAD, dtype=np.int64)
    if call is not None:
        head[:3] = call.seed & 0xFFFFFFFF, call.seed >> 32, call.generation
    head[3 : 3 + len(reals)].view(np.float64)[:] = reals
    return head


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
