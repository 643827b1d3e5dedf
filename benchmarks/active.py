"""What negative weights save with few variables: CMA-ES as published and active CMA-ES.

    python benchmarks/active.py [--dimensions 10 30 60] [--seeds 3]

Medians of the evaluations to 1e-8, x0 uniform in [-5, 5]^n, sigma0 = 3, 20,000 n at most; a minute.
"""

from __future__ import annotations

import argparse

import numpy as np

import mmes
from mmes.problems import get
from mmes.run.restarts import uniform_start

PROBLEMS = ("sphere", "cigar", "discus", "rotated_ellipsoid", "rosenbrock")
STRATEGIES = ("cma-es", "active-cma")
TARGET = 1e-8


def evaluations(strategy: str, problem: str, n: int, seed: int) -> float:
    """Return how many evaluations a run took to the target; inf where it missed it."""
    result = mmes.minimize(
        get(problem, dimension=n),
        uniform_start(np.full(n, -5.0), np.full(n, 5.0), seed),
        3.0,
        strategy=strategy,
        seed=seed,
        target=TARGET,
        max_evaluations=20_000 * n,
        evaluate_x0=False,
    )
    return result.nfev if result.fun <= TARGET else np.inf


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[10, 30, 60])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print("| n | " + " | ".join(PROBLEMS) + " |\n" + "| --- " * (len(PROBLEMS) + 1) + "|")
    for n in arguments.dimensions:
        cells = []
        for problem in PROBLEMS:
            medians = [
                np.median([evaluations(s, problem, n, 1 + k) for k in range(arguments.seeds)])
                for s in STRATEGIES
            ]
            cells.append(" / ".join(f"{median:.0f}" for median in medians))
        print(f"| {n} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
