"""Integer variables: how often the default and active CMA-ES solve spheres and ellipsoids.

    python benchmarks/integers.py --dim 20 --seeds 5
    python benchmarks/integers.py --dim 160 --seeds 2

The optimum is random, at integers where variables are such; the ellipsoid has condition 1e4. In a
mixed problem the first half of the variables are integers. The start is 0 with sigma0 = 2 and the
budget 1000 evaluations per variable; solved means an error of at most 1e-8.
"""

from __future__ import annotations

import argparse
import math
import statistics
from typing import Any

import numpy as np

import mmes

GOAL = 1e-8


def solved(
    n: int, integers: int, condition: float, strategy: str, seed: int
) -> tuple[float, float]:
    """Return the evaluations that solve a problem (inf where it is not solved), and the error."""
    rng = np.random.default_rng(seed)
    best = 3.0 * rng.standard_normal(n)
    best[:integers] = np.rint(best[:integers])
    # In random order, so that integers have all scales.
    scales = rng.permutation(condition ** (np.arange(n) / (n - 1)))

    def fun(X: Any) -> Any:
        return np.sum(scales * (X - best) ** 2, axis=1)

    result = mmes.minimize(
        fun,
        np.zeros(n),
        2.0,
        integers=range(integers),
        vectorized=True,
        strategy=strategy,
        seed=seed,
        target=GOAL,
        max_evaluations=1000 * n,
    )
    return (float(result.nfev) if result.fun <= GOAL else math.inf), result.fun


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dim", type=int, action="append", help="default: 20 and 160")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--strategy", action="append", help="default: auto and active-cma")
    given = parser.parse_args()
    print("| problem | n | strategy | evaluations per variable | error | solved |")
    print("| --- | --- | --- | --- | --- | --- |")
    for n in given.dim or (20, 160):
        for strategy in given.strategy or ("auto", "active-cma"):
            if n <= 100 and strategy == "active-cma" and not given.strategy:
                continue  # "auto" chooses it
            for kind, integers in (("mixed", n // 2), ("integer", n)):
                for shape, condition in (("sphere", 1.0), ("ellipsoid", 1e4)):
                    found = [
                        solved(n, integers, condition, strategy, seed)
                        for seed in range(1, given.seeds + 1)
                    ]
                    median = statistics.median(one for one, _ in found) / n
                    error = statistics.median(one for _, one in found)
                    right = sum(math.isfinite(one) for one, _ in found)
                    shown = "–" if math.isinf(median) else f"{median:.0f}"
                    print(
                        f"| {kind} {shape} | {n} | `{strategy}` | {shown} | {error:.1e} | "
                        f"{right}/{len(found)} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
