"""Penalties for constraints: what is solved, and what is claimed where it is not.

    python benchmarks/penalties.py               # the default and five strategies
    python benchmarks/penalties.py --strategy adaptive --dimension 120

Squares, or a linear function, with an exact penalty for leaving a half-space, a subspace, a ball or
a line, with weights from 1e2 to 1e8; and the same high value for all points outside of a half-space
or a ball. Better methods exist: `constraints=`. Here a success must be one: f within 1e-5 of the
minimum, as a share of 1 + its absolute value.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

import mmes

Floats = NDArray[np.float64]
Problem = tuple[str, Callable[[Floats], Floats], float]
STRATEGIES = {
    "auto": (6, 12, 120), "adaptive": (12, 40), "sep-cma": (12, 40), "mmes": (12, 40),
    "lm-ma": (12, 40), "rm-es": (12, 40),
}  # fmt: skip
EVALUATIONS = 4000  # per variable
CLOSE = 1e-5


def problems(n: int) -> Iterator[Problem]:
    """Return the names, functions and minima."""
    at = np.random.default_rng(n).standard_normal(n)
    rows = np.random.default_rng(n + 1).standard_normal((n // 3, n)) / np.sqrt(n)
    on_line = at - rows.T @ np.linalg.solve(rows @ rows.T, rows @ at)
    slopes = np.linspace(1, 3, n - 1)
    one = max((at + 1).sum(), 0) ** 2 / n
    ball = -n - at.sum()

    def squares(x: Floats, centre: Floats) -> Floats:
        return ((x - centre) ** 2).sum(1)

    for w in (1e2, 1e4, 1e6, 1e8):
        yield (
            f"one {w:g}",
            lambda x, w=w: squares(x, at + 1) + w * np.maximum(0, x.sum(1)),
            one,
        )
        yield (
            f"several {w:g}",
            lambda x, w=w: squares(x, at) + w * np.abs(x @ rows.T).sum(1),
            float(((at - on_line) ** 2).sum()),
        )
        yield (
            f"ball {w:g}",
            lambda x, w=w: (x - at).sum(1) + w * np.maximum(0, (x**2).sum(1) - n),
            ball,
        )
        yield (
            f"line {w:g}",
            lambda x, w=w: (x[:, 0] - 3) ** 2 + w * np.abs(x[:, 1:] - slopes * x[:, :1]).sum(1),
            0.0,
        )
    yield "one value", lambda x: np.where(x.sum(1) > 0, 1e10, squares(x, at + 1)), one
    yield "ball, one value", lambda x: np.where((x**2).sum(1) > n, 1e10, (x - at).sum(1)), ball


def main() -> None:
    """Make the runs and print, per strategy and dimension, how many ended how."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--strategy", action="append", choices=list(STRATEGIES))
    parser.add_argument("--dimension", action="append", type=int)
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    warnings.simplefilter("ignore", mmes.errors.MMESWarning)
    print("| strategy | n | success | solved, but no success | not solved, no success | false |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for strategy in given.strategy or STRATEGIES:
        for n in given.dimension or STRATEGIES[strategy]:
            found: Counter[tuple[bool, bool]] = Counter()
            wrong = []
            for name, f, least in problems(n):
                for seed in range(1, given.seeds + 1):
                    r = mmes.minimize(
                        f, np.zeros(n), 0.3, vectorized=True, strategy=strategy, seed=seed,
                        max_evaluations=EVALUATIONS * n,
                    )  # fmt: skip
                    solved = r.fun - least <= CLOSE * (1 + abs(least))
                    found[r.success, solved] += 1
                    if r.success and not solved:
                        wrong.append(f"{name}: {r.fun - least:.1g} above")
            counts = (found[True, True], found[False, True], found[False, False], len(wrong))
            print(f"| {strategy} | {n} | {' | '.join(map(str, counts))} | ", *wrong[:4], flush=True)


if __name__ == "__main__":
    main()
