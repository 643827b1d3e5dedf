"""Noise, minibatches and ceilings: the true value of what the default call returns.

    python benchmarks/noise.py                     # all rows, two seeds (cart-pole: seven)
    python benchmarks/noise.py --only minibatch --rule paired

`paired` is the rule for sigma before 0.2.0. Cells are the true values of the result and of the
mean, one per seed; for cart-pole, their mean rewards over 500 new starts.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mmes

Points = NDArray[np.float64]
RULES: dict[str, dict[str, Any]] = {
    "default": {},
    "paired": {"step_size": "paired", "c_s": 0.3, "damping": 4.0},
}
EQUATIONS, BATCH = 5000, 64
CAP, STARTS = 300, 500


@dataclass(frozen=True)
class Row:
    """A noisy problem.

    Attributes
    ----------
    name : str
    make : callable
        Returns the objective, with noise of its own per seed, and the true value of a point.
    n, budget : int
    start, sigma0 : float
        The start point is `start` in every variable.
    options : dict
    seeds : int
    """

    name: str
    make: Callable[[int, int], tuple[Callable[[Any], Any], Callable[[Points], float]]]
    n: int
    budget: int
    start: float
    sigma0: float
    options: dict[str, Any]
    seeds: int = 2


def noisy_sphere(relative: float, absolute: float) -> Callable[[int, int], Any]:
    """Return what makes a sphere with noise in proportion to its value, or of a fixed size."""

    def make(n: int, seed: int) -> tuple[Any, Any]:
        rng = np.random.default_rng(seed)

        def f(points: Points) -> Points:
            true, normal = (points**2).sum(1), rng.standard_normal(len(points))
            return true * (1 + relative * normal) + absolute * normal

        return f, lambda x: float(x @ x)

    return make


def least_squares(shared: bool) -> Callable[[int, int], Any]:
    """Return what makes least squares on 64 of 5000 equations, per generation or per candidate."""

    def make(n: int, seed: int) -> tuple[Any, Any]:
        rng = np.random.default_rng(seed)
        matrix = np.random.default_rng(5).standard_normal((EQUATIONS, n))
        right = matrix @ np.random.default_rng(6).standard_normal(n)

        def f(points: Points) -> Any:
            rows = rng.integers(0, EQUATIONS, BATCH)
            return ((points @ matrix[rows].T - right[rows]) ** 2).mean(-1)

        def single(x: Points) -> float:
            return float(f(x))

        return (f if shared else single), lambda x: float(((matrix @ x - right) ** 2).mean())

    return make


def balanced(weights: Points, rng: np.random.Generator) -> int:
    """Return for how many steps a linear policy balances a pole on a cart, from a random start."""
    x, v, angle, turn = rng.uniform(-0.2, 0.2, 4)
    for step in range(CAP):
        force = 10.0 if weights @ (x, v, angle, turn) > 0 else -10.0
        sine, cosine = math.sin(angle), math.cos(angle)
        pushed = (force + 0.05 * turn * turn * sine) / 1.1
        turning = (9.8 * sine - cosine * pushed) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
        v, x = v + 0.02 * (pushed - 0.05 * turning * cosine / 1.1), x + 0.02 * v
        turn, angle = turn + 0.02 * turning, angle + 0.02 * turn
        if abs(x) > 2.4 or abs(angle) > 0.21:
            return step
    return CAP


def cart_pole(n: int, seed: int) -> tuple[Any, Any]:
    """Return the negative reward of one start, and the mean reward over new starts."""
    rng = np.random.default_rng(seed)

    def true(weights: Points) -> float:
        fresh = np.random.default_rng(99)
        return float(np.mean([balanced(weights, fresh) for _ in range(STARTS)]))

    return (lambda weights: -float(balanced(weights, rng))), true


def rows() -> Iterator[Row]:
    """Give all rows."""
    whole = {"vectorized": True}
    for n, budget in ((200, 60_000), (1000, 300_000)):
        short = budget if n == 200 else 100_000
        yield Row(f"sphere + N(0, 1), {n}", noisy_sphere(0.0, 1.0), n, budget, 2.0, 1.0, whole)
        yield Row(f"sphere, 10 % noise, {n}", noisy_sphere(0.1, 0.0), n, budget, 2.0, 1.0, whole)
        yield Row(f"minibatch per generation, {n}", least_squares(True), n, short, 0.0, 0.5, whole)
        if n == 200:
            yield Row(f"minibatch each, {n}", least_squares(False), n, short, 0.0, 0.5, {})
    yield Row("cart-pole, capped at 300", cart_pole, 4, 3000, 0.0, 1.0, {}, seeds=7)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    parser.add_argument("--rule", choices=list(RULES), default="default")
    parser.add_argument("--seeds", type=int, help="how many, instead of 2, or 7 for cart-pole")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| problem | evaluations | true values at the result | at the mean | success |\n"
        "| --- | ---: | --- | --- | ---: |"
    )
    for row in rows():
        if arguments.only not in row.name:
            continue
        options = row.options | ({} if row.n <= 100 else RULES[arguments.rule])
        results, means, successes = [], [], 0
        for seed in range(1, (arguments.seeds or row.seeds) + 1):
            f, true = row.make(row.n, seed)
            start = np.full(row.n, row.start)
            r = mmes.minimize(
                f, start, row.sigma0, seed=seed, max_evaluations=row.budget, **options
            )
            for cells, point in ((results, r.x), (means, r.mean)):
                cells.append(f"{true(np.asarray(point)):.3g}")
            successes += r.success
        cells = f"{', '.join(results)} | {', '.join(means)} | {successes}"
        print(f"| {row.name} | {row.budget:.0e} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
