"""Updates without a population on a GPU: their share of the copy bandwidth, and what limits them.

    python benchmarks/updates.py [limits] [shapes] [sampling] [accuracy] [generations] [--small]

`limits`: the update that makes 16 parents again and adds them up, for n = 1e8 and 1e9, with 16
directions in bfloat16 and means in float32; the same without random numbers, once more with its
reads in the order of memory instead of that of the random numbers; and the random numbers alone.
`shapes`: the same update for different numbers of blocks and warps per program.
`sampling`: the sampling of 46 candidates at n = 1e6, likewise.
`accuracy`: how far normal numbers made on the GPU are from those of numpy.
`generations`: ask and tell of MMES and AdaptiveMMES without a population, n = 1e8 and 1e9, and the
peak memory.

Shares count the bytes that must move: all directions are read, one is written, mean and path are
read and written. Times are medians; results go to updates.json in ``$OUT`` (else here) as well.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

import mmes
from mmes.base import randomness
from mmes.kernels import (
    DrawnRows,
    Noise,
    PathCall,
    Precision,
    RecombineCall,
    SampleCall,
    ScaleCall,
    StepLaw,
    choose_kernel,
)
from mmes.kernels.gpu import triton as fused
from mmes.kernels.gpu import triton_sampling
from mmes.kernels.gpu.triton_code import counters, four, places_of
from mmes.kernels.gpu.triton_random import noise

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PARENTS, ROWS, USED = 16, 16, 4
# Read all directions and write one, in bfloat16; read and write mean and path, in float32.
BYTES = 2 * (ROWS + 1) + 4 * 4
FOUND: list[dict[str, Any]] = []


def report(**row: Any) -> None:
    """Print a result and write all of them."""
    FOUND.append(row)
    print(json.dumps(row), flush=True)
    Path(os.environ.get("OUT", "."), "updates.json").write_text(json.dumps(FOUND, indent=1))


def done() -> float:
    """Return the time when the device has done its work."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def seconds(call: Callable[[], object], repeats: int = 9) -> float:
    """Return the median time of a call."""
    call()
    call()
    taken = []
    for _ in range(repeats):
        began = done()
        call()
        taken.append(done() - began)
    return sorted(taken)[repeats // 2]


def copy_bandwidth(small: bool) -> float:
    """Return bytes read plus bytes written per second by a copy."""
    both = torch.randn(2, 2**20 if small else 2**30, device=DEVICE)
    return 4 * both.numel() / seconds(lambda: both[0].copy_(both[1]))


@triton.jit
def _moved(mean, path, row, m, p, s, at, inside):
    tl.store(mean + at, m + s, mask=inside)
    tl.store(path + at, p + s, mask=inside)
    tl.store(row + at, (p + s).to(tl.bfloat16), mask=inside)


@triton.jit
def without_draws(
    mean, path, row, directions, rows, factors, n, count,
    USED: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """What the update reads, mixes and writes; the steps have no isotropic part."""
    block = tl.program_id(0).to(tl.int64) * BLOCKS + tl.arange(0, BLOCKS)
    at0, at1, at2, at3, in0, in1, in2, in3 = places_of(block, n)
    m0, m1, m2, m3 = four(mean, at0, at1, at2, at3, in0, in1, in2, in3, tl.float32)
    s0 = tl.full([BLOCKS], 0.0, tl.float32)
    s1, s2, s3 = s0, s0, s0
    for k in range(count):
        for j in tl.static_range(USED):
            line = directions + tl.load(rows + k * USED + j) * n
            weight = tl.load(factors + k * USED + j)
            x0, x1, x2, x3 = four(line, at0, at1, at2, at3, in0, in1, in2, in3, tl.float32)
            s0, s1 = tl.fma(weight, x0, s0), tl.fma(weight, x1, s1)
            s2, s3 = tl.fma(weight, x2, s2), tl.fma(weight, x3, s3)
    p0, p1, p2, p3 = four(path, at0, at1, at2, at3, in0, in1, in2, in3, tl.float32)
    _moved(mean, path, row, m0, p0, s0, at0, in0)
    _moved(mean, path, row, m1, p1, s1, at1, in1)
    _moved(mean, path, row, m2, p2, s2, at2, in2)
    _moved(mean, path, row, m3, p3, s3, at3, in3)


@triton.jit
def in_order(
    mean, path, row, directions, rows, factors, n, count,
    USED: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """The same as `without_draws`, but neighbouring threads read neighbouring coordinates."""
    at = tl.program_id(0).to(tl.int64) * (4 * BLOCKS) + tl.arange(0, 4 * BLOCKS)
    inside = at < n
    m = tl.load(mean + at, mask=inside)
    s = tl.full([4 * BLOCKS], 0.0, tl.float32)
    for k in range(count):
        for j in tl.static_range(USED):
            line = directions + tl.load(rows + k * USED + j) * n
            weight = tl.load(factors + k * USED + j)
            s = tl.fma(weight, tl.load(line + at, mask=inside).to(tl.float32), s)
    p = tl.load(path + at, mask=inside)
    _moved(mean, path, row, m, p, s, at, inside)


@triton.jit
def draws_alone(path, numbers, n, count, BLOCKS: tl.constexpr):
    """Add up the normal numbers of all parents; read and write one vector."""
    block = tl.program_id(0).to(tl.int64) * BLOCKS + tl.arange(0, BLOCKS)
    at0, at1, at2, at3, in0, in1, in2, in3 = places_of(block, n)
    s0, s1, s2, s3 = four(path, at0, at1, at2, at3, in0, in1, in2, in3, tl.float32)
    counter = counters(block, s0)
    for k in range(count):
        z0, z1, z2, z3 = noise(numbers, counter, k, 0)
        s0, s1, s2, s3 = s0 + z0, s1 + z1, s2 + z2, s3 + z3
    tl.store(path + at0, s0, mask=in0)
    tl.store(path + at1, s1, mask=in1)
    tl.store(path + at2, s2, mask=in2)
    tl.store(path + at3, s3, mask=in3)


class Update:
    """The vectors and calls of one update."""

    def __init__(self, n: int):
        self.n = n
        self.kernel: Any = choose_kernel("triton", None, DEVICE, Precision("float32", "float32"))
        mean, path = self.kernel.vector(n), self.kernel.vector(n)
        archive = self.kernel.directions(ROWS, n, "bfloat16")
        for row in archive:
            row.normal_()
        drawn = DrawnRows(np.linspace(1 / ROWS, 1, ROWS), np.arange(ROWS), USED, 0.1)
        law = StepLaw(0.8, drawn=drawn)
        self.sampling = SampleCall(None, PARENTS, mean, 0.1, archive, law, None, 1, 1)
        order = np.random.default_rng(1)
        parents = order.permutation(PARENTS) + PARENTS * order.integers(0, 2, PARENTS)
        weights = np.linspace(2, 0.1, PARENTS) / PARENTS
        self.step = RecombineCall(
            None, parents, weights, mean, path, 0.9, 0.3, self.kernel.row(archive, 2)
        )

    def whole(self) -> None:
        """The update itself."""
        self.kernel.sample_and_recombine(self.sampling, self.step)

    def part(self, kernel: Any, tensors: tuple[Any, ...], **constants: Any) -> None:
        """One of its parts."""
        grid = (triton.cdiv(self.n, 4 * fused.BLOCKS),)
        options = constants | {"BLOCKS": fused.BLOCKS, "num_warps": fused.WARPS}
        kernel[grid](*tensors, self.n, PARENTS, **options)


def limits(copy: float, small: bool) -> None:
    """Report the update and its parts."""
    for n in (10**3,) if small else (10**8, 10**9):
        update = Update(n)
        mean, path, row = update.step.mean, update.step.path, update.step.archive_row
        random = np.random.default_rng(2)
        rows = torch.tensor(random.integers(0, ROWS, PARENTS * USED), device=DEVICE)
        factors = torch.full((PARENTS * USED,), 1e-3, device=DEVICE)
        numbers = torch.tensor([1, 0, 1], device=DEVICE)
        tensors = mean, path, row, update.sampling.directions, rows, factors
        parts: dict[str, Callable[[], object]] = {
            "update": update.whole,
            "without random numbers": lambda u=update, t=tensors: u.part(
                without_draws, t, USED=USED
            ),
            "the same in the order of memory": lambda u=update, t=tensors: u.part(
                in_order, t, USED=USED
            ),
            "random numbers alone": lambda u=update, p=path, x=numbers: u.part(draws_alone, (p, x)),
        }
        for name, call in parts.items():
            taken = seconds(call)
            share = n * BYTES / taken / copy
            row_of = {"name": name, "n": n, "ms": round(1e3 * taken, 3)}
            if name == "random numbers alone":
                row_of["normals_per_s"] = float(f"{n * PARENTS / taken:.3g}")
            report(**row_of, share_of_copy=round(share, 3))
        del update, mean, path, row, tensors, parts, call


def shapes(copy: float, small: bool) -> None:
    """Report the update for several sizes of a program."""
    n = 10**3 if small else 10**8
    update, given = Update(n), (fused.BLOCKS, fused.WARPS)
    for blocks, warps in ((64, 1), (128, 1), (256, 1), (128, 2), (256, 2), (256, 4), (512, 4)):
        fused.BLOCKS, fused.WARPS = blocks, warps
        update.kernel.launch.forget()
        taken = seconds(update.whole, 5)
        report(name="update", blocks=blocks, warps=warps, ms=round(1e3 * taken, 3),
               share_of_copy=round(n * BYTES / taken / copy, 3))  # fmt: skip
    fused.BLOCKS, fused.WARPS = given


def sampling(copy: float, small: bool) -> None:
    """Report the sampling of one generation for several sizes of a program."""
    n = 10**3 if small else 10**6
    kept = triton_sampling.BLOCKS, triton_sampling.WARPS, triton_sampling.DRAWS
    for blocks, warps in ((128, 1), (128, 2), (128, 4), (256, 2), (256, 4)):
        for draws in (2, 4):
            triton_sampling.BLOCKS, triton_sampling.WARPS = blocks, warps
            triton_sampling.DRAWS = draws
            kernel: Any = choose_kernel("triton", None, DEVICE, Precision("float32"))
            found = {}
            rng = np.random.default_rng(3)
            for label, independent in (("independent", 46), ("mirrored", 23)):
                rows = rng.integers(0, 2, (independent, 2))
                law = StepLaw(0.8, rows, rng.standard_normal((independent, 2)).astype(np.float32))
                call = SampleCall(
                    kernel.population(46, n), independent, kernel.vector(n), 1.0,
                    kernel.directions(2, n), law, None, 1, 1,
                )  # fmt: skip
                taken = seconds(lambda k=kernel, c=call: [k.sample(c) for _ in range(20)]) / 20
                found[label] = round(1e6 * taken, 1)
            scale, path = kernel.from_host(np.ones(n)), kernel.vector(n)
            weights = rng.standard_normal(46)
            path_call = PathCall(path, weights, 0.9, 0.1, Noise.NORMAL, 1, 1)
            lesson = ScaleCall(scale, weights, 1e-3, Noise.NORMAL, 1, 1)
            taken = seconds(
                lambda k=kernel, p=path_call, s=lesson: [k.follow_noise(p, s) for _ in range(20)]
            )
            report(name="sampling of 46, us", blocks=blocks, warps=warps, draws=draws,
                   learning=round(1e6 * taken / 20, 1), **found)  # fmt: skip
    triton_sampling.BLOCKS, triton_sampling.WARPS, triton_sampling.DRAWS = kept


def accuracy(copy: float, small: bool) -> None:
    """Report the distance of normal numbers from those of numpy."""
    n, draws = 10**3 if small else 10**6, 4
    kernel: Any = choose_kernel("triton", None, DEVICE, Precision("float32", "float32"))
    made = kernel.population(draws, n)
    kernel.sample(SampleCall(made, draws, kernel.vector(n), 1.0, None, StepLaw(), None, 5, 7))
    stream = randomness.Stream.ISOTROPIC
    expected = randomness.normals(n, 5, stream, 7, np.arange(draws)).astype(np.float64)
    error = np.abs(kernel.to_host(made) - expected)
    worst = int(error.argmax())
    report(
        name="normals against numpy",
        numbers=error.size,
        largest=float(error.max()),
        where=float(expected.ravel()[worst]),
        root_mean_square=float(np.sqrt((error**2).mean())),
        above_1e_6=int((error > 1e-6).sum()),
        finite=bool(np.isfinite(error).all()),
    )


def generations(copy: float, small: bool) -> None:
    """Report ask and tell of whole strategies."""
    for n in (10**3,) if small else (10**8, 10**9):
        for strategy in ("mmes", "adaptive"):
            try:
                report(**generation(strategy, n, copy))
            except MemoryError as error:
                report(name=strategy, n=n, refused=str(error))
            if DEVICE == "cuda":
                torch.cuda.empty_cache()


def generation(strategy: str, n: int, copy: float) -> dict[str, Any]:
    """Return the times of one generation of 32 candidates, and the memory."""
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()
    kind: Any = mmes.strategies.STRATEGIES[strategy]
    es = kind(
        torch.zeros(n, device=DEVICE),
        1.0,
        seed=1,
        population_size=2 * PARENTS,
        archive_size=ROWS,
        archive_dtype="bfloat16",
        population_dtype="float32",
        mean_dtype="float32",
        rows_at_once=1,
        stagnation_window="off",
        damping=1e9,
    )
    values = torch.rand(64, es.rows + 1).numpy()
    asked, told = [], []
    for _ in range(ROWS + 10):  # until the archive is full, and a few more
        began = done()
        for row in range(es.rows):
            es.ask(rows=[row])
        between = done()
        es.tell(values[es.generation % 64, : es.rows])
        asked.append(between - began)
        told.append(done() - between)
    ask, tell = (sorted(taken[-9:])[4] for taken in (asked, told))
    return {
        "name": strategy,
        "n": n,
        "ask_ms": round(1e3 * ask, 2),
        "tell_ms": round(1e3 * tell, 2),
        "share_of_copy_of_tell": round(n * BYTES / tell / copy, 3),
        "peak_GB": round(torch.cuda.max_memory_allocated() / 1e9, 1) if DEVICE == "cuda" else 0,
        "planned_GB": round(es.planned_bytes / 1e9, 1),
        "kernel": es.kernel.name,
    }


PARTS = {f.__name__: f for f in (limits, shapes, sampling, accuracy, generations)}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--small", action="store_true", help="for a CPU, to see that it works")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    copy = copy_bandwidth(given.small)
    name = torch.cuda.get_device_name() if DEVICE == "cuda" else "the CPU"
    report(name="copy", TB_per_s=round(copy / 1e12, 3), device=name, torch=torch.__version__)
    for part in given.parts or PARTS:
        PARTS[part](copy, given.small)


if __name__ == "__main__":
    main()
