"""What a search on a GPU costs: sampling, ask + tell, a network; as fractions of copy bandwidth.

    python benchmarks/gpu.py [--json FILE] [--quick] [--variants] [--profile]

Bytes are those that must move: every distinct row that a generation mixes read once, candidates
written once, mean, path and the parents read, mean, path and the new direction written. The copy
bandwidth (bytes read plus bytes written) is measured in the same run. Absolute times hold for the
GPU that is named. A generation is `ask`, values that are on the GPU, and `tell`; the program waits
for the GPU at the end of the timed generations. For comparison there are figures of the native
kernel on one thread of the same machine, and of numpy's normals alone. Without the compiled part of
mmes (``PYTHONPATH=src python benchmarks/gpu.py``) the host's part of a generation takes longer.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch

import mmes
from mmes.kernels import DrawnRows, ReferenceKernel
from mmes.kernels.gpu import triton
from mmes.kernels.gpu.torch import TorchKernel

RESULTS: list[dict[str, object]] = []


def record(what: str, **figures: object) -> None:
    RESULTS.append({"what": what, **figures})
    shown = "  ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in figures.items()
    )
    print(f"{what:34s} {shown}", flush=True)


def device_seconds(call: Callable[[], object], repeats: int = 30) -> float:
    """Return the median time of a call on the device."""
    for _ in range(3):
        call()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return statistics.median(times)


def kernel_seconds(call: Callable[[], object], kernel: str, repeats: int = 20) -> float:
    """Return the median time of one kernel on the device, whatever the host does meanwhile."""
    from torch.profiler import ProfilerActivity, profile

    call()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(repeats):
            call()
        torch.cuda.synchronize()
    times = [e.device_time for e in found.events() if e.name == kernel and e.device_time > 0]
    return 1e-6 * statistics.median(times)


def wall_seconds(
    call: Callable[[], object], repeats: int = 200, rounds: int = 25
) -> tuple[float, float]:
    """Return the time per call, the device's work included: the median over rounds, and the least.

    They differ where other work disturbs the host.
    """
    for _ in range(20):
        call()
    taken = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(repeats):
            call()
        torch.cuda.synchronize()
        taken.append((time.perf_counter() - began) / repeats)
    return statistics.median(taken), min(taken)


def copy_bandwidth() -> float:
    source = torch.randn(2**30, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() * 4 / device_seconds(lambda: target.copy_(source))


def filled(strategy: str, n: int, m: int, **options: object) -> mmes.strategies.AskTell:
    """Return an optimizer whose archive is full of random directions."""
    es = mmes.strategies.STRATEGIES[strategy](
        torch.zeros(n, device="cuda"),
        1.0,
        seed=1,
        archive_size=m,
        stagnation_window="off",
        damping=1e9,
        **options,
    )
    es.ask()
    es.tell(torch.arange(float(es.rows), device="cuda"))
    archive = es.search.state.archive
    for row in archive.vectors:
        row.normal_()
    archive.order = np.random.default_rng(1).permutation(m)
    archive.stamps = np.argsort(archive.order) - 10 * m
    return es


def moved_bytes(es: mmes.strategies.AskTell) -> tuple[int, int]:
    """Return the bytes that sampling a generation must move, and those that telling it must."""
    search, n = es.search, es.dimension
    law = search._generation._mixer.law(search.state, 1, es.generation)
    drawn = law.drawn
    assert isinstance(drawn, DrawnRows)
    rows, _ = ReferenceKernel().drawn_rows(drawn, draws_of(es), es.seed, es.generation)
    distinct = np.unique(rows[rows >= 0]).size
    entry = es.kernel.entry_bytes
    scaled = 8 * n * (search.state.scale is not None)
    row = search.state.archive.vectors.itemsize
    sampling = n * (row * distinct + entry * es.population_size + 8) + scaled
    telling = n * (entry * search.parameters.mu + 16 + 16 + row) + 2 * scaled
    return sampling, telling


def draws_of(es: mmes.strategies.AskTell) -> int:
    from mmes.strategies.mmes import mirroring

    return mirroring.draws(es.parameters, es.search.state)


def resample(es: mmes.strategies.AskTell) -> Callable[[], None]:
    def again() -> None:
        es.skip()
        es.ask()

    return again


def generation(es: mmes.strategies.AskTell) -> Callable[[], None]:
    """Return a call that asks and tells; the values come from the device, as of an objective."""
    values = torch.rand(64, es.population_size, device="cuda")

    def call() -> None:
        es.ask()
        es.tell(values[es.generation % 64])

    return call


def measure(strategy: str, n: int, m: int, copy: float, repeats: int, **options: object) -> None:
    """Time ask + tell; the profiler must not have run before, since it slows every launch down."""
    es = filled(strategy, n, m, **options)
    bytes_moved = sum(moved_bytes(es))
    seconds, least = wall_seconds(generation(es), repeats)
    record(
        f"{strategy} ask + tell, n = {n:.3g}",
        **options,
        m=m,
        population=es.population_size,
        draws=draws_of(es),
        us=1e6 * seconds,
        least_us=1e6 * least,
        share_of_copy=bytes_moved / seconds / copy,
        evaluations_per_s=es.population_size / seconds,
    )


def measure_sampling(strategy: str, n: int, m: int, copy: float) -> None:
    es = filled(strategy, n, m)
    sampling, _ = moved_bytes(es)
    seconds = kernel_seconds(resample(es), "sample")
    record(
        f"{strategy} sampling, n = {n:.3g}",
        m=m,
        population=es.population_size,
        draws=draws_of(es),
        us=1e6 * seconds,
        us_per_candidate=1e6 * seconds / es.population_size,
        TB_per_s=1e-12 * sampling / seconds,
        share_of_copy=sampling / seconds / copy,
    )


def measure_host(n: int, m: int, repeats: int) -> None:
    """Time ask + tell of the host's kernel on one thread, and numpy's normals, in turns."""
    es = mmes.MMES(np.zeros(n), 1.0, seed=1, threads=1, archive_size=m, damping=1e9)
    random = np.random.default_rng(1)
    archive = es.search.state.archive
    for row in archive.vectors:
        random.standard_normal(out=row, dtype=np.float32)
    archive.order = random.permutation(m)
    archive.stamps = np.argsort(archive.order) - 10 * m
    es.tell(np.arange(es.ask().shape[0], dtype=float))
    values = random.standard_normal((64, es.population_size))
    ours, normals = [], []
    for k in range(repeats):
        began = time.process_time()
        es.ask()
        es.tell(values[k % 64])
        between = time.process_time()
        random.standard_normal((es.population_size, n))
        ours.append(between - began)
        normals.append(time.process_time() - between)
    seconds, baseline = statistics.median(ours), statistics.median(normals)
    record(
        f"host: mmes ask + tell, n = {n:.3g}",
        kernel=es.kernel.name,
        m=m,
        population=es.population_size,
        us=1e6 * seconds,
        us_of_numpy_normals=1e6 * baseline,
        share=seconds / baseline,
    )


def plain_step(n: int, population: int) -> None:
    """What a strategy of torch operations needs at the least: normals, and their weighted sum."""
    mean, weights = torch.zeros(n, device="cuda"), torch.rand(population, device="cuda")

    def call() -> None:
        z = torch.randn(population, n, device="cuda")
        points = mean + 0.5 * z
        mean.add_(weights @ z, alpha=1e-9)
        del points

    seconds, _ = wall_seconds(call, 100)
    record(
        f"torch.randn and a weighted sum, n = {n:.3g}",
        us=1e6 * seconds,
        evaluations_per_s=population / seconds,
    )


def network(batch: int) -> None:
    """A fully connected network of ten million parameters, all candidates at once."""
    sizes = [784, 2048, 2048, 2048, 10]
    shapes = list(itertools.pairwise(sizes))
    n = sum(a * b + b for a, b in shapes)
    inputs = torch.randn(batch, sizes[0], device="cuda")
    labels = torch.randint(0, 10, (batch,), device="cuda")

    def loss(points: torch.Tensor) -> torch.Tensor:
        h, at = inputs.expand(points.shape[0], -1, -1), 0
        for k, (a, b) in enumerate(shapes):
            w = points[:, at : at + a * b].view(-1, a, b)
            bias = points[:, at + a * b : at + a * b + b].unsqueeze(1)
            h = torch.baddbmm(bias, h, w)
            h = torch.relu(h) if k < len(shapes) - 1 else h
            at += a * b + b
        flat = h.reshape(-1, 10)
        each = torch.nn.functional.cross_entropy(
            flat, labels.repeat(points.shape[0]), reduction="none"
        )
        return each.view(points.shape[0], batch).mean(1)

    es = mmes.AdaptiveMMES(0.02 * torch.randn(n, device="cuda"), 0.01, seed=1, archive_size=400)

    def whole() -> None:
        es.tell(loss(es.ask()))

    for _ in range(5):
        whole()
    points = es.ask()
    alone, _ = wall_seconds(lambda: loss(points).cpu(), 5, 5)
    both, _ = wall_seconds(whole, 5, 5)
    record(
        f"network, n = {n:.3g}, {batch} samples",
        population=es.population_size,
        ms_per_generation=1e3 * both,
        ms_of_the_network=1e3 * alone,
        share_of_the_optimizer=1 - alone / both,
    )


def variants(copy: float) -> None:
    """How sampling depends on the shape of the programs."""
    for n, m in ((10**6, 2000), (16 * 10**6, 800)):
        es = filled("mmes", n, m)
        sampling, _ = moved_bytes(es)
        for blocks, warps in ((64, 1), (64, 2), (128, 1), (128, 2), (128, 4), (256, 4)):
            for draws in (1, 2, 4, 32):
                triton._BLOCKS, triton._DRAWS, triton._WARPS = blocks, draws, warps
                es.kernel.launch.forget()
                seconds = kernel_seconds(resample(es), "sample", 10)
                record(
                    f"variant, n = {n:.3g}",
                    blocks=blocks,
                    draws=draws,
                    warps=warps,
                    us=1e6 * seconds,
                    share_of_copy=sampling / seconds / copy,
                )
        triton._BLOCKS, triton._DRAWS, triton._WARPS = DEFAULTS


def profiled(n: int) -> None:
    """Where the time of a generation goes, on the device and on the host."""
    import cProfile
    import pstats

    from torch.profiler import ProfilerActivity, profile

    call = generation(filled("adaptive", n, 200))
    for _ in range(50):
        call()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(20):
            call()
        torch.cuda.synchronize()
    times: dict[str, list[float]] = {}
    for event in found.events():
        if event.device_time > 0:
            times.setdefault(event.name, []).append(event.device_time)
    for name, each in times.items():
        us = statistics.median(each)
        record(f"n = {n:.3g}, {name[:40]}", us=us, per_generation=len(each) / 20)
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(300):
        call()
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(20)


STRATEGIES = "mmes", "adaptive"
# Variables, stored directions, and generations to be timed.
SIZES = (10**4, 200, 200), (10**5, 634, 200), (10**6, 2000, 100), (16 * 10**6, 800, 10)
DEFAULTS = triton._BLOCKS, triton._DRAWS, triton._WARPS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="write all figures to this file")
    parser.add_argument(
        "--profile", action="store_true", help=("also print the host's time by function")
    )
    parser.add_argument(
        "--quick", action="store_true", help=("only the cases in which the host limits the speed")
    )
    parser.add_argument("--variants", action="store_true", help="also measure other kernel shapes")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", mmes.errors.KernelWarning)
    import triton as compiler

    record(
        "machine",
        gpu=torch.cuda.get_device_name(),
        torch=torch.__version__,
        triton=compiler.__version__,
        numpy=np.__version__,
        free_GiB=TorchKernel("cuda").available_bytes() / 2**30,
    )
    copy = copy_bandwidth()
    record("copy", TB_per_s=1e-12 * copy)
    sizes = SIZES[:3] if arguments.quick else SIZES
    # Three times each, since other work on the machine may disturb the host for seconds.
    for _, strategy, (n, m, repeats) in itertools.product(range(3), STRATEGIES, sizes):
        measure(strategy, n, m, copy, repeats)
        torch.cuda.empty_cache()
    if not arguments.quick:
        plain_step(10**6, 45)
        for batch in (256, 1024):
            network(batch)
            torch.cuda.empty_cache()
        for m, dtype in ((200, "float32"), (400, "bfloat16")):
            measure("mmes", 10**8, m, copy, 2, archive_dtype=dtype)
            torch.cuda.empty_cache()
        measure("mmes", 10**6, 2000, copy, 100, archive_dtype="bfloat16", mean_dtype="float32")
        for n, m, repeats in (
            (10**3, 64, 400),
            (10**4, 200, 200),
            (10**5, 634, 40),
            (10**6, 500, 8),
        ):
            measure_host(n, m, repeats)
    for strategy, (n, m, _) in itertools.product(STRATEGIES, sizes):
        measure_sampling(strategy, n, m, copy)
        torch.cuda.empty_cache()
    if not arguments.quick:
        measure_sampling("mmes", 10**8, 200, copy)
        torch.cuda.empty_cache()
    if arguments.variants:
        variants(copy)
    if arguments.profile:
        for n in (10**4, 10**6):
            profiled(n)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(RESULTS, file, indent=1)


if __name__ == "__main__":
    main()
