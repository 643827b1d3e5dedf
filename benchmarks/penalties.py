"""Penalties for constraints: what is solved, and what is claimed where it is not.

    python benchmarks/penalties.py               # the default and five strategies
    python benchmarks/penalties.py --strategy adaptive --dimension 120
    python benchmarks/penalties.py --smooth      # with what power differences fell without any

Squares, or a linear function, with an exact penalty for leaving a half-space, a subspace, a ball or
a line, with weights from 1e2 to 1e8; and the same high value for all points outside of a half-space
or a ball. Better methods exist: `constraints=`. Here a success must be one: f within 1e-5 of the
minimum, as a share of 1 + its absolute value.

A search that ends on a slope is known by the power of the steps with which the differences within
generations fell. `--smooth` prints it for all strategies on the smooth functions of the library.
"""

from __future__ import annotations

import argparse
import itertools
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

import mmes
from mmes import problems as library
from mmes.strategies import STRATEGIES as ALL

Floats = NDArray[np.float64]
Problem = tuple[str, Callable[[Floats], Floats], float]
STRATEGIES = {
    "auto": (6, 12, 120), "adaptive": (12, 40), "sep-cma": (12, 40), "mmes": (12, 40),
    "lm-ma": (12, 40), "rm-es": (12, 40),
}  # fmt: skip
EVALUATIONS = 4000  # per variable
SMOOTH_DIMENSIONS = (5, 20)
SMOOTH_EVALUATIONS = 20_000  # per variable
POWERS = (0.0, 1.5, 1.7, 2.0, 2.2, 2.4, 3.0, math.inf)
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


def power_of(strategy: str, name: str, n: int, seed: int) -> float | None:
    """Return the power at the end of a search that found the minimum, 0; None of others.

    N.B. also of one that ended as `STAGNATED`: by ask and tell, that is what a low power leads to.
    """
    f, start = library.get(name, dimension=n), np.random.default_rng(seed).uniform(-5, 5, n)
    es = ALL[strategy](start, 3.0, seed=seed)
    while not es.stop(max_evaluations=SMOOTH_EVALUATIONS * n):
        es.tell(f.batch(es.ask()))
    notes = es.state()["arrays"].get("slope_notes", ())
    if es.best_value > CLOSE or len(notes) < 7:
        return None
    (step, difference), (step_now, now) = notes[0], notes[-1]
    return math.log(difference / now) / math.log(step / step_now)


def smooth(seeds: int) -> None:
    """Print, per strategy, how many runs found the minimum, and the powers of these."""
    between = [f"{low:g} to {high:g}" for low, high in itertools.pairwise(POWERS)]
    print("| strategy | solved |", " | ".join(between), "|")
    print("| --- |", "---: | " * (len(POWERS)))
    for strategy in ALL:
        runs = itertools.product(library.names(), SMOOTH_DIMENSIONS, range(1, seeds + 1))
        found = [power_of(strategy, *run) for run in runs if "/" not in run[0]]
        powers = [power for power in found if power is not None]
        counts = np.histogram(powers, POWERS)[0].tolist()
        print(f"| {strategy} | {len(powers)} |", " | ".join(map(str, counts)), "|", flush=True)


def main() -> None:
    """Make the runs and print, per strategy and dimension, how many ended how."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--strategy", action="append", choices=list(STRATEGIES))
    parser.add_argument("--dimension", action="append", type=int)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--smooth", action="store_true", help="functions without penalties")
    given = parser.parse_args()
    warnings.simplefilter("ignore", mmes.errors.MMESWarning)
    if given.smooth:
        smooth(given.seeds)
        return
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
