"""Ask + tell of two versions of the library in turns, on one machine.

    python benchmarks/versions.py OLD NEW [--dimensions 1000 10000 100000 1000000] [--seconds 0.3]
                                          [--repetitions 7] [--quantile 0.5] [--memory 1.0]
                                          [--scaling fixed] [--strategy mmes]

OLD and NEW are Python interpreters, each with its version installed. For every dimension each has a
separate process with a full archive (of at most `--memory` GiB); the two take turns, one repetition
each, so that both have the same load. The figures are those of `ask_tell.py`: the processor time of
a generation on one thread as a fraction of numpy's ``standard_normal((lambda, n))``, a quantile of
the calls' times and medians of the repetitions; the last columns are the median, the lowest and the
highest of the ratios within a turn. For another `--strategy` than MMES it is the mean of the calls'
times: a covariance matrix is factorized in some generations only.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

import numpy as np


def filled_optimizer(n: int, memory: float, scaling: str):
    """Return an optimizer of the version that is installed, with a full archive.

    N.B. without helpers of `ask_tell.py`, which imports what old versions do not have.
    """
    import mmes

    m = min(2 * int(np.ceil(np.sqrt(n))), int(memory * 2**30) // (4 * n))
    settled = {"stagnation_window": "off", "damping": 1e6, "threads": 1}
    es = mmes.MMES(np.zeros(n), 1.0, seed=1, archive_size=m, scaling=scaling, **settled)
    search = es.search if hasattr(es, "search") else es._search  # before 0.2.0
    archive = search.state.archive
    rng = np.random.default_rng(1)
    for row in archive.vectors:
        rng.standard_normal(out=row, dtype=np.float32)
    archive.order = np.arange(m)
    archive.stamps[:] = np.arange(m) - m
    return es


def serve(
    n: int, seconds: float, quantile: float, memory: float, scaling: str, strategy: str
) -> None:
    """Do one repetition for every line of the standard input, and print its fraction."""
    if strategy == "mmes":
        es = filled_optimizer(n, memory, scaling)
    else:
        from mmes.strategies import STRATEGIES

        es = STRATEGIES[strategy](np.zeros(n), 1.0, seed=1, threads=1, stagnation_window="off")
    lam = es.population_size
    rng = np.random.default_rng(0)
    values = rng.standard_normal((64, lam + 1))
    for _ in range(5):
        es.tell(values[0, : es.ask().shape[0]])
    for _ in sys.stdin:
        ours, numpys = [], []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(ours) < 3:
            began = time.thread_time()
            es.tell(values[es.generation % 64, : es.ask().shape[0]])
            half = time.thread_time()
            rng.standard_normal((lam, n))
            ours.append(half - began)
            numpys.append(time.thread_time() - half)
        if strategy == "mmes":
            ours, numpys = np.quantile(ours, quantile), np.quantile(numpys, quantile)
        print(np.mean(ours) / np.mean(numpys), flush=True)


def fractions(interpreters: list[str], n: int, arguments: argparse.Namespace) -> list[list[float]]:
    """Return the fractions of each interpreter, one per repetition."""
    a = arguments
    named = (n, a.seconds, a.quantile, a.memory, a.scaling, a.strategy)
    settings = [str(value) for value in named]
    servers = [
        subprocess.Popen(
            [python, __file__, "--serve", *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for python in interpreters
    ]
    found: list[list[float]] = [[] for _ in servers]
    for _ in range(arguments.repetitions):
        for server, taken in zip(servers, found, strict=True):
            server.stdin.write("\n")
            server.stdin.flush()
            taken.append(float(server.stdout.readline()))
    for server in servers:
        server.communicate()
    return found


def main() -> None:
    """Print the table."""
    if sys.argv[1:2] == ["--serve"]:
        n, seconds, quantile, memory, scaling, strategy = sys.argv[2:]
        serve(int(n), float(seconds), float(quantile), float(memory), scaling, strategy)
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", help="interpreter of the old version")
    parser.add_argument("new", help="interpreter of the new version")
    parser.add_argument("--dimensions", type=int, nargs="+", default=[10**3, 10**4, 10**5, 10**6])
    parser.add_argument("--seconds", type=float, default=0.3, help="seconds per repetition")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument(
        "--quantile", type=float, default=0.5, help=("quantile of the times of the calls")
    )
    parser.add_argument(
        "--memory", type=float, default=1.0, help=("maximum size of each archive in GiB")
    )
    parser.add_argument("--scaling", choices=("fixed", "adaptive"), default="fixed")
    parser.add_argument("--strategy", default="mmes", help="a strategy's name (default: mmes)")
    arguments = parser.parse_args()
    print(f"{'n':>9} {'old':>7} {'new':>7} {'new / old':>10}   lowest, highest ratio")
    for n in arguments.dimensions:
        old, new = fractions([arguments.old, arguments.new], n, arguments)
        ratios = sorted(b / a for a, b in zip(old, new, strict=True))
        print(
            f"{n:>9} {statistics.median(old):>7.3f} {statistics.median(new):>7.3f} "
            f"{statistics.median(ratios):>10.2f}   {ratios[0]:.2f}, {ratios[-1]:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
