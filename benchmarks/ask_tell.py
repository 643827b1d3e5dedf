"""What asking and telling costs, as a fraction of drawing the normals alone in numpy.

    python benchmarks/ask_tell.py [--dimensions 1000 10000 100000 1000000] [--seconds 1.0]

For every dimension and kernel: the time of ask + tell an evaluation, divided by the time that
numpy's ``standard_normal((lambda, n))`` takes an evaluation on one thread, both measured in turns
in this run. The peak memory is that of a process of its own. The objective is free (a table of
random values), so nothing of it is counted.
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
from mmes.kernels.native import simd_levels


class Turns:
    """Times two things in turns, so that a busy machine slows both alike; reports the medians."""

    def __init__(self, seconds: float):
        self.seconds = seconds

    def ratio(
        self, measured: Callable[[], None], baseline: Callable[[], None]
    ) -> tuple[float, float]:
        """Return the ratio of the medians and the seconds of one measured call."""
        times: tuple[list[float], list[float]] = ([], [])
        measured(), baseline()
        end = time.perf_counter() + self.seconds
        while time.perf_counter() < end or len(times[0]) < 5:
            for call, taken in zip((measured, baseline), times, strict=True):
                began = time.perf_counter()
                call()
                taken.append(time.perf_counter() - began)
        a, b = (float(np.median(taken)) for taken in times)
        return a / b, a


def filled_optimizer(n: int, generations: int, **options) -> tuple[mmes.MMES, Callable[[], None]]:
    """Return MMES with some directions stored, and a call that does one generation."""
    es = mmes.MMES(np.zeros(n), 1.0, seed=1, stagnation_window="off", damping=1e6, **options)
    values = np.random.default_rng(1).standard_normal((64, es.population_size + 1))

    def generation() -> None:
        rows = es.ask().shape[0]
        es.tell(values[es.generation % 64, :rows])

    for _ in range(generations):
        generation()
    return es, generation


def measure(n: int, seconds: float, connection, **options) -> None:
    """Measure one case; runs in a process of its own, so that the peak memory is its own."""
    full = 2 * int(np.ceil(np.sqrt(n)))
    es, generation = filled_optimizer(n, min(full, 200), **options)
    lam = es.population_size
    normal = np.random.default_rng(0)
    ratio, taken = Turns(seconds).ratio(generation, lambda: normal.standard_normal((lam, n)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    connection.send((ratio, taken / lam, lam, peak))


def measure_pypop7(n: int, seconds: float, connection) -> None:
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
    ratio, taken = Turns(seconds).ratio(generation, lambda: normal.standard_normal((lam, n)))
    connection.send((ratio, taken / lam, lam, 0))


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
    parser.add_argument("--seconds", type=float, default=1.0, help="for each measurement")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    print(f"SIMD levels: {', '.join(simd_levels())}; {cores} cores")
    titles = f"{'fraction of':>12}{'us/eval':>10}{'peak memory':>13}"
    print(f"{'n':>9} {'lambda':>7}  {'kernel':<26}{titles}")
    print(f"{'':>9} {'':>7}  {'':<26}{'numpy normals':>13}")
    for n in arguments.dimensions:
        cases = [
            ("native, 1 thread", measure, {"threads": 1}),
            (f"native, {cores} threads", measure, {"threads": cores}),
            ("native, adaptive scaling", measure, {"threads": 1, "scaling": "adaptive"}),
        ]
        if n <= 10**5:  # the reference takes minutes beyond, and says nothing new
            cases.append(("reference (numpy)", measure, {"kernel": "reference"}))
            cases.append(("pypop7's MMES", measure_pypop7, {}))
        for name, target, options in cases:
            found = in_a_process(target, n, arguments.seconds, **options)
            if found is None:
                print(f"{n:>9} {'':>7}  {name:<26}{'not installed or failed':>24}")
                continue
            ratio, each, lam, peak = found
            memory = f"{peak / 2**20:>9,.0f} MiB" if peak else ""
            print(
                f"{n:>9} {lam:>7}  {name:<26}{ratio:>12.3f}{1e6 * each:>10.2f}{memory:>13}",
                flush=True,
            )


if __name__ == "__main__":
    main()
