"""Evaluations per second of the CEC suites: numpy, the native helper, and the official C++ code.

python benchmarks/suites.py [--batch 24] [--seconds 0.1] [--rounds 5] [name ...]

The official code is the package `cec2013lsgo` (GPL, CEC 2013 only), compared where it is installed:
pip install cython && pip install --no-build-isolation cec2013lsgo. It evaluates one point per call.
The implementations take turns, and the best round counts, so that a busy machine affects all
equally.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from mmes import problems
from mmes.problems import Problem

Evaluation = Callable[[], object]


def official_function(problem: Problem) -> Callable[[np.ndarray], float] | None:
    """Return the official code of a CEC 2013 function, or None where there is none."""
    suite, _, function = problem.name.partition("/f")
    if suite != "lsgo2013" or not function.isdigit():
        return None
    try:
        from cec2013lsgo.cec2013 import Benchmark
    except ImportError:
        return None
    return Benchmark().get_function(int(function))


def ways_to_evaluate(problem: Problem, points: np.ndarray) -> dict[str, Evaluation]:
    """Return what is to be timed, each on the whole batch; all have been checked to agree."""
    composition = problem.batch
    ways: dict[str, Evaluation] = {"numpy": lambda: composition.reference(points)}
    if problems.native_levels():
        ways["native"] = lambda: problem(points)
    official = official_function(problem)
    if official is not None:
        # The package declares 1000 variables for f13 and f14 too and reads the first 905.
        rows = list(np.pad(points, ((0, 0), (0, 1000 - problem.dimension))))
        ways["official"] = lambda: [official(row) for row in rows]
    expected = np.asarray(ways["numpy"]())
    for name, evaluate in ways.items():
        # The official data files have 15 digits.
        np.testing.assert_allclose(np.asarray(evaluate()), expected, rtol=1e-9, err_msg=name)
    return ways


def best_time(evaluate: Evaluation, seconds: float) -> float:
    """Return the mean time of a call over about so many seconds."""
    calls = 0
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds or calls == 0:
        evaluate()
        calls += 1
    return elapsed / calls


def measure(problem: Problem, batch: int, seconds: float, rounds: int) -> dict[str, float]:
    """Return evaluations per second by each way."""
    generator = np.random.Generator(np.random.Philox(1))
    points = generator.uniform(*problem.bounds, (batch, problem.dimension))
    ways = ways_to_evaluate(problem, points)
    times = dict.fromkeys(ways, np.inf)
    for _ in range(rounds):
        for name, evaluate in ways.items():
            times[name] = min(times[name], best_time(evaluate, seconds / rounds))
    return {name: batch / each for name, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, add_help=True)
    parser.add_argument("names", nargs="*", help="problems; default: both suites")
    parser.add_argument("--batch", type=int, default=24, help="points per call")
    parser.add_argument("--seconds", type=float, default=0.1, help="seconds per measurement")
    parser.add_argument(
        "--rounds", type=int, default=5, help=("number of turns that share this time")
    )
    options = parser.parse_args()
    names = options.names or [name for name in problems.names() if name.startswith("lsgo")]
    level = next(iter(problems.native_levels()), "not built")
    print(f"evaluations per second at batch size {options.batch}; native helper: {level}")
    print(f"{'problem':<18}{'numpy':>12}{'native':>12}{'us/eval':>10}{'official':>12}{'ratio':>8}")
    for name in names:
        speed = measure(problems.get(name), options.batch, options.seconds, options.rounds)
        native = speed.get("native", speed["numpy"])
        line = f"{name:<18}{speed['numpy']:>12,.0f}{native:>12,.0f}{1e6 / native:>10.2f}"
        if "official" in speed:
            line += f"{speed['official']:>12,.0f}{native / speed['official']:>8.1f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
