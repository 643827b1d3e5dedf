"""Where the time of a generation goes, as fractions of drawing the normals alone in numpy.

    python benchmarks/parts.py [--dimensions 1000 10000 100000] [--repetitions 7]

For every dimension, on one thread and with a full archive: the time of each part, divided by the
time that numpy's ``standard_normal((lambda, n))`` takes. The two are called in turns, so that
caches are as cold as an objective leaves them; medians of processor times, and of their ratios the
median of the repetitions.

normals         random words and normals of lambda / 2 draws, written as float32: nothing below that
without rows    the isotropic candidates: normals, mean, sigma, both members of each pair stored
with rows       four stored directions added to each draw
sample          the mixture's rows drawn too: all that `ask` computes
recombine       mean, path and newest direction: all that `tell` computes
ask and tell    the calls as users make them
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from ask_tell import filled_optimizer

from mmes.kernels import RecombineCall, SampleCall, StepLaw, choose_kernel
from mmes.strategies.mmes import MMES
from mmes.strategies.mmes.ages import cumulative_ages

CALLS = 50


def kernel_parts(n: int, archive_size: int) -> tuple[int, dict[str, Callable[[], object]]]:
    """Return lambda, and the calls of the kernel that a generation of MMES makes."""
    kernel = choose_kernel("native", threads=1)
    es = MMES(np.zeros(n), 1.0, seed=1, threads=1, archive_size=archive_size)
    p = es.parameters
    draws, size = p.population.draws, p.population_size
    population, mean, path = kernel.population(size, n), kernel.vector(n), kernel.vector(n)
    directions = kernel.directions(archive_size, n)
    kernel.fill_normals(directions, 1.0, 1, 7)
    drawn_law = es.search._generation._mixer.law(es.search.state, draws, 0)
    order = np.arange(archive_size)
    drawn_law = drawn_law._replace(
        drawn=drawn_law.drawn._replace(order=order, cumulative=cumulative_ages(p.c_a, archive_size))
    )
    rows, factors = kernel.drawn_rows(drawn_law.drawn, draws, 1, 0)
    laws = {
        "without rows": StepLaw(drawn_law.isotropic),
        "with rows": StepLaw(drawn_law.isotropic, rows, factors),
        "sample": drawn_law,
    }
    noise = np.empty((draws, n), dtype=np.float32)
    parents = np.random.default_rng(1).permutation(size)[: p.mu]
    step = RecombineCall(population, parents, p.weights, mean, path, 0.9, 0.1, directions[0])

    def sampled(law: StepLaw) -> Callable[[], object]:
        call = SampleCall(population, draws, mean, 1.0, directions, law, None, 1, 0)
        return lambda: kernel.sample(call)

    return size, {
        "normals": lambda: kernel.fill_normals(noise, 1.0, 1, 7),
        **{name: sampled(law) for name, law in laws.items()},
        "recombine": lambda: kernel.recombine(step),
    }


def fractions(n: int, repetitions: int, archive_size: int) -> dict[str, list[float]]:
    """Return the fractions of each part, one per repetition."""
    size, parts = kernel_parts(n, archive_size)
    _, generation = filled_optimizer(n, threads=1, archive_size=archive_size)
    parts["ask and tell"] = generation
    rng = np.random.default_rng(0)
    found: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(repetitions):
        for name, part in parts.items():
            drawing, working = [], []
            for _ in range(CALLS):
                began = time.thread_time()
                rng.standard_normal((size, n))
                drawn = time.thread_time()
                part()
                drawing.append(drawn - began)
                working.append(time.thread_time() - drawn)
            found[name].append(statistics.median(working) / statistics.median(drawing))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[10**3, 10**4, 10**5])
    parser.add_argument("--repetitions", type=int, default=7)
    arguments = parser.parse_args()
    for n in arguments.dimensions:
        found = fractions(n, arguments.repetitions, 2 * int(np.ceil(np.sqrt(n))))
        parts = (f"{name} {statistics.median(values):.3f}" for name, values in found.items())
        print(f"n = {n:<8}", "; ".join(parts), flush=True)


if __name__ == "__main__":
    main()
