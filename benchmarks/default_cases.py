"""The cases of `benchmarks/defaults.py`: typical problems of users, each with its goal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from solvers import Outcome, Task, Vector, by_mmes

from mmes.problems import get


@dataclass(frozen=True)
class Case:
    """A row of the table.

    Attributes
    ----------
    group, name : str
        What `--only` takes, and the row's name.
    make : callable
        Makes the task for a seed; noise has a stream of its own per seed.
    limit : float
        The median of the evaluations, or of the values at the end, is at most this.
    by : str
        ``"evaluations"`` or ``"value"``.
    every : bool
        Whether every seed must reach the limit, not the median alone.
    rival : callable or None
        What ours is held against where the goal is another solver's value.
    few : int
        Seeds at most, where a run takes a minute.
    options : dict
        What ours is told besides; nothing but in rows about other strategies.
    """

    group: str
    name: str
    make: Callable[[int], Task]
    limit: float
    by: str = "evaluations"
    every: bool = False
    rival: Callable[[Task, int], Outcome] | None = None
    few: int = 5
    options: dict[str, Any] = field(default_factory=dict)


def rows_of(f: Callable[[Vector], Vector]) -> Callable[[int], Callable[[Vector], Vector]]:
    """Return what makes the objective for a seed, where it is always the same."""
    return lambda seed: f


# --- Optima on walls (section 2 of the specification) ------------------------------------------

WALLS = (20, 200, 1000)
# Evaluations: to a gap of 1e-4 by a wrapper of MMES, and to 1e-6 by a prototype of AdaptiveMMES;
# the smaller one counts.
TABLE = {
    "all on the wall": (1.4e3, 1.1e4, 5.4e4),
    "half on the wall": (1.6e3, 1.7e4, 7.9e4),
    "sum(x) on [0, 1]": (1.4e3, 1.2e4, 5.7e4),
    "half, weights 1..1e3": (3.6e3, 7.0e4, 4.9e5),
    "inside, condition 1e3": (8.6e3, 8.5e4, 3.9e5),
}
GAP = 1e-6


def wall_task(kind: str, n: int, budget: float) -> Task:
    """Return a problem with a known optimum in a box."""
    sides = (0.0, 1.0) if kind.startswith("sum") else (-1.0, 1.0)
    weights, centre = np.ones(n), np.full(n, 2.0)
    if kind.startswith("half"):
        centre[1::2] = 0.3
    if kind.startswith("inside"):
        centre[:] = 0.3
    if "1e3" in kind:
        weights = np.logspace(0, 3, n)
    if kind.startswith("sum"):
        batch, least = (lambda points: points.sum(1)), 0.0
    else:

        def batch(points: Vector) -> Vector:
            return (points - centre) ** 2 @ weights

        least = float(weights @ (centre - np.clip(centre, *sides)) ** 2)
    box = np.full(n, sides[0]), np.full(n, sides[1])
    # N.B. the values lie near `least`: a gap of 1e-6 is far above their resolution.
    return Task(batch, None, 0.0, int(budget), least + GAP, None, box)


def walls() -> Iterator[Case]:
    """Every wall problem in 10 to 1000 variables, within three times the table."""
    for kind, known in TABLE.items():
        for n in (10, 20, 50, 200, 1000):
            log = np.interp(math.log(n), np.log(WALLS), np.log(known))
            most = 3 * math.exp(float(log)) * min(1.0, n / WALLS[0])
            yield Case(
                "walls",
                f"{kind}, n = {n}",
                lambda seed, kind=kind, n=n, most=most: wall_task(kind, n, most),
                most,
                few=3 if n == 1000 else 5,
            )


# --- Noise --------------------------------------------------------------------------------------


def noisy_sphere(n: int, relative: float, absolute: float, budget: float, seed: int) -> Task:
    """Return a sphere from x = 3 everywhere, with noise of its own per seed."""
    rng = np.random.default_rng([n, seed])

    def batch(points: Vector) -> Vector:
        true, normal = (points**2).sum(1), rng.standard_normal(len(points))
        return true * (1 + relative * normal) + absolute * normal

    return Task(batch, np.full(n, 3.0), 1.0, int(budget), truth=lambda x: float((x**2).sum()))


def noise() -> Iterator[Case]:
    """Multiplicative and additive noise, and a network on minibatches."""
    for n, budget in ((10, 1e5), (50, 2e5), (100, 3e5), (1000, 2e6)):
        yield Case(
            "noise",
            f"sphere with 10 % noise, n = {n}",
            lambda seed, n=n, b=budget: noisy_sphere(n, 0.1, 0.0, b, seed),
            9 * n * 1e-4,
            by="value",
            few=3 if n == 1000 else 5,
        )
    for n, budget, most in ((20, 1e5, 0.2), (100, 3e5, 0.6), (1000, 1e6, 4.0)):
        yield Case(
            "noise",
            f"sphere + noise of sd 1, n = {n}",
            lambda seed, n=n, b=budget: noisy_sphere(n, 0.0, 1.0, b, seed),
            most,
            by="value",
            few=3 if n == 1000 else 5,
        )
    for word, shared in (("one each", False), ("one per generation", True)):
        yield Case(
            "noise",
            f"net of 4,810 weights, minibatches {word} (goal: sep-CMA's)",
            lambda seed, shared=shared: minibatch_net(seed, shared),
            math.nan,
            by="value",
            few=3,
            rival=lambda task, seed: by_mmes(task, seed, strategy="sep-cma", noise="no"),
        )


def minibatch_net(seed: int, shared: bool = False) -> Task:
    """Return the cross-entropy of a net 64-64-10 for written digits, on minibatches of 256.

    Parameters
    ----------
    seed : int
        Seed of the start point and of the minibatches.
    shared : bool
        Whether the candidates of a generation share their minibatch, or each has one of its own.
    """
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images = images / 16.0
    rng = np.random.default_rng(seed)
    sizes = ((64, 64), (64,), (64, 10), (10,))
    edges = np.cumsum([0, *(math.prod(s) for s in sizes)])

    def loss(x: Vector, rows: Any) -> float:
        cuts = zip(pairwise(edges), sizes, strict=True)
        w1, b1, w2, b2 = (x[low:high].reshape(shape) for (low, high), shape in cuts)
        scores = np.tanh(images[rows] @ w1 + b1) @ w2 + b2
        scores -= scores.max(1, keepdims=True)
        sums = np.log(np.exp(scores).sum(1))
        return float((sums - scores[np.arange(len(scores)), labels[rows]]).mean())

    def batch(points: Vector) -> Vector:
        one = rng.choice(len(labels), 256, replace=False)
        rows = [one if shared else rng.choice(len(labels), 256, replace=False) for _ in points]
        return np.array([loss(*pair) for pair in zip(points, rows, strict=True)])

    start = 0.1 * np.random.default_rng([4810, seed]).standard_normal(int(edges[-1]))
    return Task(batch, start, 0.1, 20_000, truth=lambda x: loss(x, slice(None)))


# --- Small, rounded, shifted, rotated -------------------------------------------------------------


def rounded() -> Iterator[Case]:
    """A sphere of rounded variables: plateaus everywhere."""
    for n, budget in ((2, 1e4), (10, 5e4), (50, 2e5)):
        for sigma0 in (0.5, 1.0):
            yield Case(
                "rounded",
                f"sum((round(x) - 2)^2), n = {n}, sigma0 = {sigma0}",
                lambda seed, n=n, s=sigma0, b=budget: Task(
                    lambda p: ((np.round(p) - 2) ** 2).sum(1), np.full(n, -2.0), s, int(b), 0.0
                ),
                0.0,
                by="value",
                every=True,
            )


def shifted() -> Iterator[Case]:
    """Values far from zero, n = 160; rows of other strategies that failed with 0.1.0."""
    for strategy, offset, most in (
        ("auto", 100.0, 2.8e4),
        ("mmes", 100.0, 2.8e4),
        ("lm-cma", 79.48, 3.2e5),
        ("sep-cma", 79.48, 3.2e5),
    ):
        yield Case(
            "shifted",
            f"sphere + {offset:g} to 1e-8, n = 160, {strategy}",
            lambda seed, b=offset, most=most: Task(
                lambda p: (p**2).sum(1) + b, np.full(160, 3.0), 1.0, int(most), b + 1e-8
            ),
            most,
            options={"strategy": strategy},
        )


def rotated() -> Iterator[Case]:
    """The rotated ellipsoid: 0.1.0 took 96,891 and 1.42e6, its CMA-ES 5,880 and 3.98e5."""
    for n, most in ((10, 7e3), (100, 4.4e5)):
        yield Case(
            "rotated",
            f"rotated ellipsoid to 1e-8, n = {n}",
            lambda seed, n=n, most=most: Task(
                get("rotated_ellipsoid", dimension=n).batch, np.full(n, 3.0), 2.0, int(most), 1e-8
            ),
            most,
            few=5 if n == 10 else 2,
        )


def tuning() -> Iterator[Case]:
    """A support vector classifier in two variables, 200 evaluations, and eight seeds."""
    yield Case(
        "tuning",
        "SVC: log C, log gamma, 200 evaluations (error)",
        svc,
        0.03,  # a grid finds 0.023
        by="value",
        every=True,
        few=8,
    )


def svc(seed: int) -> Task:
    """Return the error of a classifier of digits on held-out ones, from log C = log gamma = 0.

    There, and far around, it calls every digit the same.
    """
    from sklearn.datasets import load_digits
    from sklearn.svm import SVC

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    learn, judge = order[:300], order[300:900]

    def one(x: Vector) -> float:
        c, gamma = 10.0 ** np.clip(x, -9, 9)
        made = SVC(C=c, gamma=gamma).fit(images[learn], labels[learn])
        return 1 - float(made.score(images[judge], labels[judge]))

    return Task(lambda p: np.array([one(x) for x in p]), np.zeros(2), 1.0, 200)


CASES: tuple[Callable[[], Iterator[Case]], ...] = (
    walls,
    noise,
    rounded,
    shifted,
    rotated,
    tuning,
)
