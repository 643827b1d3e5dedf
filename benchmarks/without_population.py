"""Search without a population: a hundred million variables on a small machine, and what it costs.

    python benchmarks/without_population.py run [--dimension 1e8] [--candidates 16]
    python benchmarks/without_population.py compare [--dimension 1e6] [--rows 8]

`run` minimises a sum of squares by `mmes.minimize`, which stores no population if it does not fit
into memory, and prints the time per generation, the part of it that the objective takes, the
processor time, if others use the machine, and the peak memory of the process. `--memory` (GiB)
limits the memory that the process may take, so that a small machine can be tried on a larger one.
`compare` prints the time of ask + tell with a population and without, in turns, the objective
excluded: the median of the generations.

Both take `--device cuda`, with `--precision` for candidates and means; the memory is the GPU's
then. On the host, `compare` measures processor time of one thread, since others may use the
machine, and the objective of `run` should have one thread too (``OMP_NUM_THREADS=1``).
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np

import mmes
from mmes.base import memory

GIB = 2**30


def squares(point: Any) -> float:
    """Return the sum of squares, a part at a time: no second vector of that length."""
    if isinstance(point, np.ndarray):
        parts = (point[first : first + 2**20] for first in range(0, point.size, 2**20))
        return sum(float(part @ part) for part in parts)
    return float(point.square().sum())


class Clock:
    """Times generations and the calls of an objective within them."""

    def __init__(self, call: Any):
        self._call = call
        self.inside, self.ends = 0.0, [time.perf_counter()]
        self.processor = [time.process_time()]

    def __call__(self, point: Any) -> float:
        """Return the value of a point."""
        began = time.perf_counter()
        value = self._call(point)
        self.inside += time.perf_counter() - began
        return value

    def generation(self, progress: Any) -> None:
        """Take note of the end of a generation."""
        if not progress.final:
            self.ends.append(time.perf_counter())
            self.processor.append(time.process_time())


def options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the search that the command line asks for."""
    options: dict[str, Any] = {"archive_size": arguments.archive, "seed": 1}
    if arguments.candidates:
        options["population_size"] = arguments.candidates
    if arguments.device:
        options |= {"device": arguments.device, "archive_dtype": arguments.directions}
        options |= {"population_dtype": arguments.precision, "mean_dtype": arguments.precision}
    return options


def run(arguments: argparse.Namespace) -> None:
    """Minimise, and print time and memory."""
    n = int(arguments.dimension)
    if arguments.memory:
        limit = int(arguments.memory * GIB)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        free = memory.available_bytes
        memory.available_bytes = lambda: min(free(), limit - address_space())
    clock = Clock(squares)
    result = mmes.minimize(
        clock,
        np.full(n, 1.0),
        10 / n**0.5,
        strategy=arguments.strategy,
        max_generations=arguments.generations,
        callback=clock.generation,
        noise="no",
        evaluate_x0=False,
        rows_at_once=arguments.rows,
        **options_of(arguments),
    )
    taken = np.diff(clock.ends)
    print(f"{result.strategy}, n = {n}, m = {result.options['archive_size']}, {result.kernel}")
    print(f"{result.nfev} evaluations in {result.nit} generations; f from {n} to {result.fun:.8g}")
    print(f"seconds per generation: {np.median(taken):.3g} (all: {np.round(taken, 2)})")
    print(f"of these in the objective: {clock.inside / len(taken):.3g}")
    print(f"processor seconds per generation: {np.median(np.diff(clock.processor)):.3g}")
    print(f"peak memory: {peak(arguments.device)}")


def address_space() -> int:
    """Return the bytes of address space that this process has taken."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def peak(device: str | None) -> str:
    """Return the peak memory of the process, and of the GPU where one was used."""
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    words = f"{host / GIB:.1f} GiB of the host"
    if device and device.startswith("cuda"):
        import torch

        words += f", {torch.cuda.max_memory_allocated() / 1e9:.1f} GB of the GPU"
    return words


def compare(arguments: argparse.Namespace) -> None:
    """Print the time of ask + tell with and without a population."""
    n, device = int(arguments.dimension), arguments.device
    on_host = {} if device else {"threads": 1}
    kind: Any = mmes.strategies.get_strategy(arguments.strategy)
    made = {
        rows: kind(np.zeros(n), 1.0, rows_at_once=rows, **options_of(arguments), **on_host)
        for rows in ("all", arguments.rows or 8)
    }
    values = np.random.default_rng(0)
    times: dict[Any, list[tuple[float, float]]] = {rows: [] for rows in made}
    for _ in range(arguments.generations + 3):
        for rows, es in made.items():
            told = values.standard_normal(es.rows)
            began = now(device)
            step = es.rows_at_once
            if step == es.rows:
                es.ask()
            else:
                for first in range(0, es.rows, step):
                    es.ask(rows=range(first, min(first + step, es.rows)))
            asked = now(device)
            es.tell(told)
            times[rows].append((asked - began, now(device) - asked))
    sums = {}
    for rows, es in made.items():
        ask, tell = 1e3 * np.median(np.array(times[rows])[3:], axis=0)
        sums[rows] = ask + tell
        print(f"{es.kernel.name}, n = {n}, rows {rows}: ask {ask:.3g} ms, tell {tell:.3g} ms")
    first, second = sums.values()
    print(f"without a population: {second / first:.2f} times")


def now(device: str | None) -> float:
    """Return the time; on a GPU when all work is done, else processor time."""
    if not device or device == "cpu":
        return time.process_time()
    import torch

    torch.cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("run", "compare"))
    parser.add_argument("--dimension", type=float, default=None)
    parser.add_argument("--archive", type=int, default=None)
    parser.add_argument("--candidates", type=int, default=None)
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--generations", type=int, default=5)
    parser.add_argument("--strategy", default="adaptive")
    parser.add_argument("--device", default=None)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--directions", default="bfloat16")
    parser.add_argument("--memory", type=float, default=None)
    arguments = parser.parse_args()
    if arguments.dimension is None:
        arguments.dimension = 1e8 if arguments.what == "run" else 1e6
    (run if arguments.what == "run" else compare)(arguments)


if __name__ == "__main__":
    main()
