"""The step size of AdaptiveMMES: smooth functions, kinks, penalties, rugged and rough ones.

    python benchmarks/step_size.py                  # all rows, medians of 5 seeds: about two hours
    python benchmarks/step_size.py --only 150       # rows whose name has "150" in it: minutes
    python benchmarks/step_size.py --seeds 1 --rule paired
    python benchmarks/step_size.py --only Ellipsoid --rule fast     # also: fixed

A row is a problem with a goal; a cell is the median of the evaluations to the target or, if it was
missed, the median of the values at the end. `paired` is the rule before this one: the paired test
alone, with c_s = 0.3 and damping 4, and no growth. `fast` and `fixed` are the default with other
learning rates of the scales. "false" counts the runs that ended above their
goal with ``success=True``. Rows of smooth functions run without the tests that end a run, as the
tables of the paper do; all others are calls of `minimize` as a user makes them.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mmes

Points = NDArray[np.float64]
Objective = Callable[[Points], Points]

RULES: dict[str, dict[str, Any]] = {
    "forces": {},
    "paired": {
        "step_size": "paired",
        "c_s": 0.3,
        "damping": 4.0,
        "noise": "no",
        "scale_rate": "fixed",
    },
    "fast": {"scale_rate": "fast"},
    "fixed": {"scale_rate": "fixed"},
}
# Runs to the target or to the end of the budget.
TO_THE_END: dict[str, Any] = {"stagnation_window": "off", "xtol": 0.0, "noise": "no"}


@dataclass(frozen=True)
class Row:
    """A problem with its goal.

    Attributes
    ----------
    name : str
    make : callable
        Returns the objective of n variables.
    n, budget : int
    target : float
        The value that counts as solved.
    goal : float
        Evaluations to the target; inf: the target within the budget.
    options : dict
        Further arguments of `minimize`.
    most_seeds : int
    """

    name: str
    make: Callable[[int], Objective]
    n: int
    budget: float
    target: float = 1e-8
    goal: float = math.inf
    options: dict[str, Any] = field(default_factory=dict)
    most_seeds: int = 5


def rotation(n: int) -> Points:
    """Return an orthogonal matrix."""
    return np.linalg.qr(np.random.default_rng(3).standard_normal((n, n)))[0]


def rotated(make: Callable[[int], Objective]) -> Callable[[int], Objective]:
    """Return the same problem in turned coordinates."""

    def turned(n: int) -> Objective:
        f, q = make(n), rotation(n)
        return lambda x: f(x @ q)

    return turned


def sphere(n: int) -> Objective:
    """Sum of squares."""
    return lambda x: (x * x).sum(1)


def cigar(n: int) -> Objective:
    """One long axis."""
    return lambda x: x[:, 0] ** 2 + 1e6 * (x[:, 1:] ** 2).sum(1)


def discus(n: int) -> Objective:
    """One short axis."""
    return lambda x: 1e6 * x[:, 0] ** 2 + (x[:, 1:] ** 2).sum(1)


def ellipsoid(n: int) -> Objective:
    """Axes from 1 to 1000."""
    return lambda x: (x * x) @ np.logspace(0, 6, n)


def different_powers(n: int) -> Objective:
    """Powers from 2 to 6."""
    return lambda x: (np.abs(x) ** np.linspace(2, 6, n)).sum(1)


def sum_of_kinks(n: int) -> Objective:
    """Sum of absolute values, as in least absolute deviations."""
    return lambda x: np.abs(x - 1).sum(1)


def largest(n: int) -> Objective:
    """The largest absolute value, as in minimax."""
    return lambda x: np.abs(x).max(1)


def lasso(n: int) -> Objective:
    """sum (x - c)^2 + sum abs(x), less its optimum."""
    c = np.random.default_rng(2).uniform(-2, 2, n)
    best = np.sign(c) * np.maximum(np.abs(c) - 0.5, 0)

    def f(x: Points) -> Points:
        return ((x - c) ** 2).sum(1) + np.abs(x).sum(1)

    optimum = f(best[None])[0]
    return lambda x: f(x) - optimum


def penalty(n: int) -> Objective:
    """A weight with an exact penalty; the optimum is n, at ones."""
    return lambda x: x.sum(1) * (1 + 10 * np.maximum(0, (1 / x).mean(1) - 1))


BARS = 200


def truss(n: int) -> Objective:
    """Weight of a truss with an exact penalty on the displacement of its tip, over its optimum.

    A statically determinate truss: bar i has the length l_i, the force N_i under the load and n_i
    under a unit load at the tip, so that the tip moves by sum N_i n_i l_i / (E a_i). The optimum is
    a_i = max(smallest, sqrt(m N_i n_i / E)), with the multiplier m found by bisection.
    """
    rng = np.random.default_rng(11)
    length, share = rng.uniform(0.5, 2.0, n), rng.uniform(0.05, 3.0, n)
    smallest, allowed = 0.1, float((length * share).sum() / 2.0)

    def best(multiplier: float) -> Points:
        return np.maximum(np.sqrt(multiplier * share), smallest)

    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        moved = float((share * length / best(middle)).sum())
        low, high = (middle, high) if moved > allowed else (low, middle)
    optimum = float((length * best(high)).sum())

    def f(area: Points) -> Points:
        excess = np.maximum(0.0, (share * length / area).sum(1) / allowed - 1)
        return (area @ length) * (1 + 10 * excess) / optimum

    return f


def rastrigin(n: int) -> Objective:
    """Many local optima."""
    return lambda x: (x * x + 10 * (1 - np.cos(2 * np.pi * x))).sum(1)


HIDDEN, INPUTS = 35, 18


def misclassified(n: int) -> Objective:
    """The share of 500 points that a tanh network of about 700 weights takes for the other kind."""
    rng = np.random.default_rng(5)
    points, teacher = rng.standard_normal((500, INPUTS)), rng.standard_normal((INPUTS, 3))
    labels = np.tanh(points @ teacher).sum(1) > 0

    def f(x: Points) -> Points:
        shares = []
        for weights in x:
            first = weights[: INPUTS * HIDDEN].reshape(INPUTS, HIDDEN)
            bias, second = np.split(weights[INPUTS * HIDDEN :], [HIDDEN])
            shares.append(np.mean((np.tanh(points @ first + bias) @ second > 0) != labels))
        return np.array(shares)

    return f


def smooth(n: int, goals: dict[str, float], budget: float) -> Iterator[Row]:
    """Return rows of smooth functions, with evaluations to 1e-8 as goals."""
    makers = {
        "Sphere": sphere,
        "Cigar": cigar,
        "RotCigar": rotated(cigar),
        "Discus": discus,
        "DiffPow": different_powers,
        "Ellipsoid": ellipsoid,
        "RotDiscus": rotated(discus),
    }
    for name, goal in goals.items():
        few = 3 if name == "RotDiscus" else 1 if n > 1000 else 5
        made = makers[name]
        yield Row(f"{name} {n}", made, n, budget, 1e-8, goal, TO_THE_END, few)


def rows() -> list[Row]:
    """Return all rows."""
    within = {"bounds": (0.1, 20.0)}
    return [
        *smooth(
            150,
            {"Sphere": 1.1e4, "Cigar": 2.8e4, "Discus": 4.6e4, "Ellipsoid": 2.5e5},
            4e5,
        ),
        *smooth(150, {"RotDiscus": 6.9e5}, 1.2e6),
        Row("sum abs(x - 1) 150", sum_of_kinks, 150, 1e5),
        Row("sum abs(x - 1) 500", sum_of_kinks, 500, 1e6),
        Row("max abs(x) 150", largest, 150, 4e5, 1e-6),
        Row("max abs(x) 500", largest, 500, 1e6, 0.5),
        Row("penalty 150, 500 n", penalty, 150, 500 * 150, 150 * 1.001, options=within),
        Row("penalty 400, 500 n", penalty, 400, 500 * 400, 400 * 1.01, options=within),
        Row("sum (x - c)^2 + sum abs(x) 150", lasso, 150, 4e5, 1e-5),
        Row("truss of 200 bars", truss, BARS, 500 * BARS, 1.002, options={"bounds": (0.1, 10.0)}),
        Row(
            "0/1 loss of a network",
            misclassified,
            INPUTS * HIDDEN + 2 * HIDDEN,
            20_000,
            0.08,
            options={"x0": None, "sigma0": 0.5},
        ),
        Row("Rastrigin 150", rastrigin, 150, 4e5, 300.0),
        *smooth(
            1000,
            {
                "Sphere": 5.6e4,
                "Cigar": 1.40e5,
                "RotCigar": 1.45e5,
                "Discus": 1.35e5,
                "DiffPow": 2.75e5,
                "Ellipsoid": 1.40e6,
                "RotDiscus": 1.72e6,
            },
            2.5e6,
        ),
        *smooth(10_000, {"Sphere": 6e5, "Cigar": 2e6, "Discus": 2e6}, 3e6),
    ]


def run(row: Row, seed: int, rule: str) -> mmes.Result:
    """Return one run."""
    options = row.options | RULES[rule]
    x0 = np.random.default_rng(seed).uniform(-5, 5, row.n)
    place: dict[str, Any] = {"x0": x0, "sigma0": 3.0}
    if "bounds" in options:
        place = {"bounds": [options["bounds"]] * row.n}  # bounds alone
        options = {name: value for name, value in options.items() if name != "bounds"}
    elif "x0" in options:
        options = {name: value for name, value in options.items() if name != "x0"}
        place = {"x0": np.zeros(row.n)}
    return mmes.minimize(
        row.make(row.n),
        **place,
        **options,
        strategy="adaptive",
        vectorized=True,
        max_evaluations=int(row.budget),
        target=row.target if row.options is TO_THE_END else None,
        seed=seed,
        threads=1,
    )


def reached(row: Row, result: mmes.Result) -> float:
    """Return the evaluations after which the target was reached, inf if never."""
    if not result.best_seen <= row.target:
        return math.inf
    history = result.history
    return float(history["evaluations"][np.argmax(history["best"] <= row.target)])


def line(row: Row, seeds: int, rule: str) -> str:
    """Run a row and return its line of the table."""
    begin = time.perf_counter()
    results = [run(row, seed, rule) for seed in range(1, min(seeds, row.most_seeds) + 1)]
    spent = float(np.median([reached(row, r) for r in results]))
    value = float(np.median([r.best_seen for r in results]))
    false = sum(r.success and r.best_seen > row.target for r in results)
    cell = f"{spent:.3g}" if math.isfinite(spent) else f"ends at {value:.6g}"
    asked = f"{row.target:g} within {min(row.goal, row.budget):.3g}"
    verdict = "met" if spent <= min(row.goal, row.budget) else "missed"
    seconds = time.perf_counter() - begin
    cells = row.name, asked, cell, verdict, str(false), str(len(results)), f"{seconds:.0f}"
    return "| " + " | ".join(cells).replace("e+0", "e") + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rule", choices=list(RULES), default="forces")
    arguments = parser.parse_args()
    print(f"| {arguments.rule} | goal | median | verdict | false | runs | seconds |")
    print("| --- " * 7 + "|")
    for row in rows():
        if arguments.only in row.name:
            print(line(row, arguments.seeds, arguments.rule), flush=True)


if __name__ == "__main__":
    main()
