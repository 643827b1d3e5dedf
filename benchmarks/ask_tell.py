"""What asking and telling costs, as a fraction of drawing the normals alone in numpy.

    python benchmarks/ask_tell.py [--dimensions 1000 10000 100000 1000000] [--seconds 0.5]
                                  [--quantile 0.5]

For every dimension and kernel: the time of ask + tell per generation, divided by the time that
numpy's ``standard_normal((lambda, n))`` takes on one thread. Both are called in turns, so that
caches are as cold as after an objective and a busy machine slows both equally; the fraction is the
median of seven repetitions, each of which compares the medians of its calls. If other processes
keep emptying the caches, a lower quantile of the calls (``--quantile 0.1``) shows the time without
this. One thread is measured in processor time, several in wall-clock time. The archive is full:
empty slots would cost nothing. It is limited by `--memory`, and the number of directions is
printed. The peak memory is that of a separate process. The objective is free (a table of random
values), so it is not counted.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
from collections.abc import Callable

import numpy as np

import mmes
from mmes.kernels.native import NativeKernel, simd_levels

REPETITIONS = 7


class Turns:
    """Times two things in turns."""

    def __init__(self, seconds: float, quantile: float, clock: Callable[[], float]):
        self.seconds = seconds
        self.quantile = quantile
        self.clock = clock

    def ratio(
        self, measured: Callable[[], None], baseline: Callable[[], None]
    ) -> tuple[list[float], float]:
        """Return the ratio of each repetition, sorted, and the seconds of one measured call."""
        measured(), baseline()
        ratios, seconds = [], []
        for _ in range(REPETITIONS):
            a, b = self._quantiles(measured, baseline)
            ratios.append(a / b)
            seconds.append(a)
        return sorted(ratios), float(np.median(seconds))

    def _quantiles(self, *calls: Callable[[], None]) -> list[float]:
        taken: list[list[float]] = [[] for _ in calls]
        end = time.perf_counter() + self.seconds
        while time.perf_counter() < end or len(taken[0]) < 3:
            for call, times in zip(calls, taken, strict=True):
                began = self.clock()
                call()
                times.append(self.clock() - began)
        return [float(np.quantile(times, self.quantile)) for times in taken]


def filled_optimizer(
    n: int, strategy: str = "mmes", **options
) -> tuple[mmes.MMES, Callable[[], None]]:
    """Return MMES with a full archive, and a call that does one generation."""
    made = mmes.strategies.STRATEGIES[strategy]
    es = made(np.zeros(n), 1.0, seed=1, stagnation_window="off", damping=1e6, **options)
    archive = es.search.state.archive
    rows = archive.vectors.shape[0]
    # As many steps of random directions as there are slots, in the order of their age.
    NativeKernel().fill_normals(archive.vectors, 1.0, 1, 7)
    archive.order = np.arange(rows)
    archive.stamps[:] = np.arange(rows) - rows
    values = np.random.default_rng(1).standard_normal((64, es.population_size + 1))

    def generation() -> None:
        rows = es.ask().shape[0]
        es.tell(values[es.generation % 64, :rows])

    for _ in range(5):
        generation()
    return es, generation


def measure(n: int, settings: argparse.Namespace, connection, **options) -> None:
    """Measure one case; runs in a process of its own, so that the peak memory is its own."""
    if "kernel" not in options:
        fitting = int(settings.memory * 2**30) // (4 * n)
        options["archive_size"] = min(2 * int(np.ceil(np.sqrt(n))), fitting)
    es, generation = filled_optimizer(n, **options)
    lam = es.population_size
    normal = np.random.default_rng(0)
    clock = time.thread_time if options.get("threads", 1) == 1 else time.perf_counter
    ratios, taken = Turns(settings.seconds, settings.quantile, clock).ratio(
        generation, lambda: normal.standard_normal((lam, n))
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    connection.send((ratios, taken, lam, es.parameters.archive_size, peak))


def measure_pypop7(n: int, settings: argparse.Namespace, connection) -> None:
    """The only other MMES in Python, one generation at a time, where it is installed."""
    try:
        from pypop7.optimizers.es.mmes import MMES
    except ImportError:
        connection.send(None)
        return
    problem = {
        "fitness_function": lambda x: 0.0,
        "ndim_problem": n,
        "lower_boundary": -5 * np.ones(n),
        "upper_boundary": 5 * np.ones(n),
    }
    options = {"max_function_evaluations": 10**9, "seed_rng": 1, "sigma": 1.0, "verbose": 0,
               "mean": np.zeros(n), "saving_fitness": 0}  # fmt: skip
    es = MMES(problem, options)
    es.start_time = time.time()
    x, mean, p, w, q, t, v, y = es.initialize()
    state = {"mean": mean, "x": x, "y": y, "p": p, "w": w, "q": q, "t": t, "v": v}
    normal = np.random.default_rng(0)

    def generation() -> None:
        s = state
        s["x"], s["y"] = es.iterate(s["x"], s["mean"], s["q"], s["v"], s["y"], None)
        s["mean"], s["p"], s["w"], s["q"], s["t"], s["v"] = es._update_distribution(
            s["x"], s["mean"], s["p"], s["w"], s["q"], s["t"], s["v"], s["y"], s["y"].copy()
        )
        es._n_generations += 1

    lam = es.n_individuals
    ratios, taken = Turns(settings.seconds, settings.quantile, time.thread_time).ratio(
        generation, lambda: normal.standard_normal((lam, n))
    )
    connection.send((ratios, taken, lam, es.m, 0))


def in_a_process(target, *arguments, **options):
    """Return what the measurement sends back, or the reason why it could not."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=target, args=(*arguments, there), kwargs=options)
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        return None
    finally:
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[10**3, 10**4, 10**5, 10**6])
    parser.add_argument("--seconds", type=float, default=0.5, help="seconds per repetition")
    parser.add_argument(
        "--quantile", type=float, default=0.5, help=("quantile of the times of the calls")
    )
    parser.add_argument(
        "--memory", type=float, default=2.0, help=("maximum size of the archive in GiB")
    )
    parser.add_argument("--quick", action="store_true", help="one thread of the native kernel only")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    print(f"SIMD levels: {', '.join(simd_levels())}; {cores} cores")
    titles = f"{'fraction of':>14}{'lowest, highest':>18}{'us/gen':>10}{'peak memory':>13}"
    print(f"{'n':>9} {'lambda':>7} {'m':>6}  {'kernel':<26}{titles}")
    print(f"{'':>9} {'':>7} {'':>6}  {'':<26}{'numpy normals':>14}")
    for n in arguments.dimensions:
        cases = [
            ("native, 1 thread", measure, {"threads": 1}),
            ("native, adaptive scaling", measure, {"threads": 1, "scaling": "adaptive"}),
        ]
        if not arguments.quick:
            cases.append((f"native, {cores} threads", measure, {"threads": cores}))
        if not arguments.quick and n <= 10**5:  # they take minutes beyond, and say nothing new
            cases.append(("reference (numpy)", measure, {"kernel": "reference"}))
            cases.append(("pypop7's MMES", measure_pypop7, {}))
        for name, target, options in cases:
            found = in_a_process(target, n, arguments, **options)
            if found is None:
                print(f"{n:>9} {'':>7} {'':>6}  {name:<26}{'not installed or failed':>24}")
                continue
            ratios, taken, lam, m, peak = found
            middle, spread = ratios[len(ratios) // 2], f"{ratios[0]:.3f}, {ratios[-1]:.3f}"
            memory = f"{peak / 2**20:>9,.0f} MiB" if peak else ""
            print(
                f"{n:>9} {lam:>7} {m:>6}  {name:<26}{middle:>14.3f}{spread:>18}"
                f"{1e6 * taken:>10.1f}{memory:>13}",
                flush=True,
            )


if __name__ == "__main__":
    main()
