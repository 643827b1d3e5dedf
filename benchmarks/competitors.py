"""Speed and first results of the competitors on the CEC 2013 suite.

    python benchmarks/competitors.py --budget 1.2e5 --functions f1 f7 --strategies mmes mos

For each run: the best value, the processor time per evaluation (of which in the objective), the
seconds that 3e6 evaluations would take, and that time as a multiple of the first strategy's on the
same function. Processor time is used, because other work on the machine affects wall time.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import mmes
from mmes import problems
from mmes.lab.competitors import COMPETITORS

FULL = 3_000_000


class Timed:
    """An objective that adds up the processor time spent in it."""

    def __init__(self, function):
        self.function = function
        self.seconds = 0.0

    def __call__(self, points: np.ndarray) -> np.ndarray:
        begin = time.process_time()
        values = self.function(points)
        self.seconds += time.process_time() - begin
        return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=1.2e5)
    parser.add_argument("--functions", nargs="+", default=["f1"])
    parser.add_argument("--strategies", nargs="+", default=["mmes", *COMPETITORS])
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    titles = ("function", "strategy", "best", "us/evaluation", "objective", "s/3e6", "ratio")
    print("| " + " | ".join(titles) + " |")
    print("| " + " | ".join("---" for _ in titles) + " |")
    for function in given.functions:
        problem = problems.get(f"lsgo2013/{function}")
        first = None
        for strategy in given.strategies:
            objective = Timed(problem.batch)
            begin = time.process_time()
            result = mmes.minimize(
                objective,
                bounds=problem.bounds,
                vectorized=True,
                strategy=strategy,
                seed=given.seed,
                threads=1,
                max_evaluations=int(given.budget),
                stagnation_window="off",
            )
            each = (time.process_time() - begin) / result.nfev
            first = first or each
            cells = (
                function,
                strategy,
                f"{result.fun:.3g}",
                f"{1e6 * each:.1f}",
                f"{1e6 * objective.seconds / result.nfev:.1f}",
                f"{FULL * each:.0f}",
                f"{each / first:.2f}",
            )
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
