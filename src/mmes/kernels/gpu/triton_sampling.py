"""Sampling on a GPU by a fused Triton kernel, and the boxes that candidates are brought into."""
# pyright: reportMissingImports=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportArgumentType=false

from __future__ import annotations

import operator
import os
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from mmes.kernels.gpu import triton_code
from mmes.kernels.gpu.torch import TorchKernel
from mmes.kernels.gpu.triton_launch import Launch, Launcher
from mmes.kernels.gpu.triton_mail import Flow, Upload
from mmes.kernels.protocol import DrawnRows, SampleCall, StepLaw, Vector
from mmes.spaces.boxes import Box, BoxCode

# Philox blocks of one program, 4 coordinates each.
BLOCKS = 128
# Draws of one program: the mean is read once for them.
DRAWS = 2
WARPS = 2
# Programs that fill a large GPU a few times over.
_PROGRAMS = 4096
# Coordinates of one program where no random numbers are made.
SIZE = 1024
# Up to this many directions per draw, their loads are all under way at once.
_UNROLLED = 8
# Rows and factors of one program that draws them.
_SMALL = 128
# Choices of candidates that are remembered.
_PLACES = 256
_HEAD = triton_code.HEAD


class Tables(NamedTuple):
    """What draws mix."""

    drawing: tuple[Launch, ...]  # What must run before, to draw them.
    used: int  # Rows per draw.
    # Rows, their factors, and factors of the isotropic parts, a line for each draw.
    vectors: tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class TritonSampling(TorchKernel):
    """The half of the kernel that makes candidates; parameters are those of `TorchKernel`."""

    def __init__(
        self, device: str, population_dtype: str | None = None, mean_dtype: str | None = None
    ):
        super().__init__(device, population_dtype, mean_dtype)
        if self.place.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
            raise ValueError(
                f"kernel='triton' needs a GPU, not device={device!r}; TRITON_INTERPRET=1 runs it "
                "on the CPU, for tests"
            )
        self.launch, self._flow = Launcher(self.place), Flow(self.place)
        self._news = Upload(self._flow)  # sent once per generation
        self._nothing = torch.zeros(2, dtype=torch.float64, device=self.place)
        self._known_places: dict[tuple[int, bytes], torch.Tensor] = {}
        self._sent_news: tuple[Any, ...] | None = None
        self._table: tuple[Vector, torch.Tensor] | None = None
        self._bounds: tuple[Box, torch.Tensor] | None = None
        # Reused: work on a stream is done in order.
        self._mixed: tuple[torch.Tensor, torch.Tensor] | None = None
        # What recorded sampling is about, besides its key.
        self._known: tuple[Any, ...] = (None,) * 8
        self._seen: tuple[Any, ...] = (None,) * 4

    def sample(self, call: SampleCall) -> None:
        """See `Kernel.sample`."""
        law, population = call.law, call.population
        count, n = population.shape
        own = call.box is not None and call.box.code is BoxCode.OWN
        drawn = law.drawn if call.directions is not None else None
        # What differs between generations is sent; what is made on the host for each is not known.
        known = law.isotropic_each is None and not own
        # Candidates that are asked for a few at a time share what is sent.
        news = self._news if known and call.rows is None else None
        if news is None:
            self.bring(call, drawn)
        else:
            self._write_news(call, drawn)
        key = None
        if known:
            self.recognise(call, drawn)
            named = None if call.rows is None else call.rows.tobytes()
            key = population.data_ptr(), count, call.draws, self._news.address, named
            if self.launch.replayed(news, key):
                return
        tables = self.tables(call, drawn)
        places = self._places(count, call)
        used, draws = tables.used, places.shape[1]
        blocks = parts_of(n, 4 * BLOCKS)
        per_group = min(DRAWS, max(1, blocks * draws // _PROGRAMS))
        groups = parts_of(draws, per_group)
        scale, directions, box = self._read_only(call)
        vectors = population, self._news.there, call.mean, scale, directions
        sampling = Launch(
            triton_code.sample,
            (blocks * groups,),
            (*vectors, *tables.vectors[:2], places, tables.vectors[2], box),
            (n, draws, used, groups, per_group),
            kinds_of(law, used, box is self._nothing, call.box)
            | {"BLOCKS": BLOCKS, "WIDE": self.wide(call.mean, population)},
            WARPS,
        )
        self.launch(news, *(() if news is None else tables.drawing), sampling, key=key)
        if own:
            super().confine(population, population, call.box)  # type: ignore[arg-type]

    def tables(self, call: SampleCall, drawn: DrawnRows | None) -> Tables:
        """Return what the draws of a generation mix; what is not there is a tensor not read."""
        law, drawing, used = call.law, (), 0
        rows = factors = each = self._nothing
        if drawn is not None:
            drawing, used = (self._drawing(drawn, call.draws, self._news.there),), drawn.used
            rows, factors = drawing[0].tensors[:2]
        elif call.directions is not None and law.rows is not None:
            used, size, there = law.rows.shape[1], law.rows.size, self._news.there
            rows = there[_HEAD:]
            factors = there.view(torch.float32)[2 * (_HEAD + size) :]
        if law.isotropic_each is not None:
            each = self.tensor(law.isotropic_each.astype(np.float32))
        return Tables(drawing, used, (rows, factors, each))

    @staticmethod
    def wide(*vectors: torch.Tensor) -> bool:
        """Return whether a kernel must compute in float64: one of these vectors is float64."""
        return any(vector.dtype == torch.float64 for vector in vectors)

    def _read_only(self, call: SampleCall) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return scale, directions and box of a call; where there are none, a tensor not read."""
        own = call.box is not None and call.box.code is BoxCode.OWN
        return (
            self._nothing if call.law.scale is None else call.law.scale,
            self._nothing if call.directions is None else call.directions,
            self._nothing if call.box is None or own else self._rows_of(call.box),
        )

    def recognise(self, call: SampleCall, drawn: DrawnRows | None) -> None:
        """Forget what was recorded, if it is about other memory or another law."""
        law, mean, directions, box = self._seen
        # Once the archive of MMES is full, the law is the same record in every generation.
        if (
            call.law is not law
            or call.mean is not mean
            or call.directions is not directions
            or call.box is not box
        ):
            self._seen = call.law, call.mean, call.directions, call.box
            self._look_closer(call, drawn)

    def _look_closer(self, call: SampleCall, drawn: DrawnRows | None) -> None:
        """Compare what a law consists of: a new record may be the same law."""
        law = call.law
        listed = None if law.rows is None else law.rows.shape[1]
        known = (
            call.mean,
            call.directions,
            call.box,
            law.scale,
            law.noise,
            law.scale_rows,
            *((None, listed) if drawn is None else (drawn.cumulative, drawn.used)),
        )
        if any(map(operator.is_not, known, self._known)):
            self._known = known
            self.launch.forget()

    def bring(self, call: SampleCall, drawn: DrawnRows | None) -> None:
        """Send what is new in a generation and draw its rows, unless that was done last."""
        law = call.law
        same: tuple[Any, ...] = call.seed, call.generation, call.sigma, call.draws, law.isotropic
        if drawn is not None:
            same += drawn.factor, drawn.used, drawn.order.tobytes(), id(drawn.cumulative)
        elif law.rows is not None and law.factors is not None:
            same += law.rows.tobytes(), law.factors.tobytes()
        if same != self._sent_news:
            self._write_news(call, drawn)
            self.launch(self._news, *self.tables(call, drawn).drawing)
            self._sent_news = same

    def _write_news(self, call: SampleCall, drawn: DrawnRows | None) -> None:
        """Write what is new in a generation: address, sigma, and the order of the directions.

        If the rows are not drawn on the GPU, they follow instead, and then their factors.
        """
        news, law = self._news, call.law
        self._sent_news = None
        address, reals = (call.seed, call.generation), (call.sigma, law.isotropic, 0.0)
        if drawn is not None:
            order = drawn.order
            end = _HEAD + order.size
            news.open(end)
            news.head(*address, (*reals[:2], drawn.factor), order.size)
            news.whole[_HEAD:end] = order
        elif law.rows is not None and law.factors is not None:
            rows, size = law.rows.ravel(), law.rows.size
            middle = _HEAD + size
            news.open(middle + parts_of(size, 2))
            news.head(*address, reals, 0)
            np.maximum(rows, 0, out=news.whole[_HEAD:middle])
            factors = news.whole.view(np.float32)[2 * middle : 2 * middle + size]
            factors[:] = np.where(rows < 0, np.float32(0), law.factors.ravel())
        else:
            news.open(_HEAD)
            news.head(*address, reals, 0)

    def _places(self, count: int, call: SampleCall) -> torch.Tensor:
        """Return the draws that are wanted, and where they go; the same are asked for again."""
        rows = np.arange(count) if call.rows is None else call.rows
        key = call.draws, rows.tobytes()
        if key not in self._known_places:
            if len(self._known_places) >= _PLACES:
                self._known_places.clear()
                self.launch.forget()  # what was recorded may hold them
            self._known_places[key] = self.tensor(_places(rows, call.draws))
        return self._known_places[key]

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
            (parts_of(total, _SMALL),),
            (*self._mixed, numbers, self._table[1]),
            (m, total, drawn.used),
            {"STEPS": m.bit_length() + 1, "SIZE": _SMALL},
        )

    def confine(self, image: torch.Tensor, points: torch.Tensor, box: Box) -> None:
        """See `Kernel.confine`."""
        if box.code is BoxCode.OWN:
            super().confine(image, points, box)
            return
        image, points = torch.atleast_2d(image), torch.atleast_2d(points)
        rows, n = points.shape
        grid, vectors = (parts_of(n, SIZE), rows), (image, points, self._rows_of(box))
        constants = {"BOX": int(box.code), "SIZE": SIZE}
        self.launch(None, Launch(triton_code.confine, grid, vectors, (n,), constants))

    def _rows_of(self, box: Box) -> torch.Tensor:
        """Return the arrays of a box as rows of one tensor, in float64."""
        if self._bounds is None or self._bounds[0] is not box:
            there = self.device_box(box)
            self._bounds = box, torch.stack([side.to(torch.float64) for side in there[1:]])
            self._box = None  # not kept twice
        return self._bounds[1]


def parts_of(whole: int, part: int) -> int:
    """Return how many parts cover the whole; `triton.cdiv` takes ten times as long."""
    return -(-whole // part)


def kinds_of(law: StepLaw, used: int, unboxed: bool, box: Box | None) -> dict[str, Any]:
    """Return what the kernels that make candidates are compiled for."""
    return {
        "NOISE": int(law.noise),
        "SCALED": 0 if law.scale is None else 1 + law.scale_rows,
        "USED": used if used <= _UNROLLED else -1,
        "EACH": law.isotropic_each is not None,
        "BOX": 0 if unboxed or box is None else int(box.code),
    }


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
