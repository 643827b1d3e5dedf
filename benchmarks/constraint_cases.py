"""The problems of `benchmarks/constraints.py`: objective, constraints, box, and known optimum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """A problem with a known optimum.

    Attributes
    ----------
    name : str
        What tables call it.
    f, g : callable
        Objective and inequalities g <= 0 of rows of points.
    optimum : float
        The least value.
    goal : float
        Relative error that solves it.
    budget : int
        Evaluations.
    n : int
        The number of variables.
    start : ndarray or None
        The start point; None where the box says it.
    sigma0 : float or None
        The first mutation strength; None where the box says it.
    box : tuple or None
        Lower and upper bounds.
    h : callable or None
        Equalities h = 0, within 1e-4.
    restarts : int
        How often a search may begin anew.
    """

    name: str
    f: Callable[[Vector], Vector]
    g: Callable[[Vector], Vector]
    optimum: float
    goal: float
    budget: int
    n: int
    start: Vector | None = None
    sigma0: float | None = None
    box: tuple[Vector, Vector] | None = None
    h: Callable[[Vector], Vector] | None = None
    restarts: int = 0

    def error(self, value: float) -> float:
        """Return the relative error of a value; absolute where the optimum is small."""
        return abs(value - self.optimum) / max(abs(self.optimum), 1.0)


def sphere(n: int, m: int) -> Case:
    """Return x'x / 2 under m active linear constraints with multipliers between 1 and 2."""
    rng = np.random.default_rng(0)
    rows = np.eye(m, n) if m >= n // 2 else rng.standard_normal((m, n)) / math.sqrt(n)
    best = rows.T @ (1.0 + rng.random(m))
    limits = rows @ best
    return Case(
        f"sphere n={n} m={m}",
        lambda X: 0.5 * np.sum(X * X, axis=1),
        lambda X: limits - X @ rows.T,
        0.5 * float(best @ best),
        1e-6,
        (600 if m < n // 2 else 1500) * n if n < 200 else 300 * n + (300 * n if m > 99 else 0),
        n,
        start=best + 0.5,
        sigma0=0.3,
    )


def weight(n: int = 400) -> Case:
    """Return sum(x) under mean(1 / x) <= 1; the optimum is x = 1."""
    box = np.full(n, 0.1), np.full(n, 20.0)
    return Case(
        f"weight n={n}",
        lambda X: X.sum(axis=1),
        lambda X: (1.0 / X).mean(axis=1)[:, None] - 1.0,
        float(n),
        1e-4,
        500 * n,
        n,
        box=box,
    )


def truss(n: int = 200) -> Case:
    """Return the weight of a truss of n bars whose tip may move by a quarter of what it would.

    The forces of a statically determinate truss do not depend on the areas: the tip moves by
    sum_i s_i^2 L_i / (E a_i). The optimum is found by bisection on the multiplier.
    """
    rng = np.random.default_rng(3)
    lengths, forces = 1.0 + rng.random(n), 3.0 * rng.standard_normal(n)
    share = np.maximum(forces**2, 0.01) * lengths
    limit, low, high = share.sum() / 4.0, 0.05, 50.0

    def areas(multiplier: float) -> Vector:
        return np.clip(np.sqrt(multiplier * share / lengths), low, high)

    small, large = 1e-12, 1e12
    for _ in range(300):
        middle = math.sqrt(small * large)
        small, large = (middle, large) if (share / areas(middle)).sum() > limit else (small, middle)
    return Case(
        f"truss of {n} bars",
        lambda X: X @ lengths,
        lambda X: ((1.0 / X) @ share)[:, None] / limit - 1.0,
        float(lengths @ areas(large)),
        1e-3,
        500 * n,
        n,
        box=(np.full(n, low), np.full(n, high)),
    )


def klee_minty(n: int = 50) -> Case:
    """Return the cube of Klee and Minty: max x_n, e x_{j-1} <= x_j <= 1 - e x_{j-1}, e = 1/3."""

    def g(X: Vector) -> Vector:
        before = np.column_stack((np.zeros(len(X)), X[:, :-1])) / 3.0
        return np.column_stack((before - X, X - 1.0 + before))

    start = np.full(n, 0.5)
    return Case(f"Klee-Minty n={n}", lambda X: -X[:, -1], g, -1.0, 1e-4, 4000 * n, n, start, 0.2)


def g_functions() -> list[Case]:
    """Return the functions of the CEC 2006 set with inequalities and g13's number or less."""

    def full(low: float, high: float, n: int) -> tuple[Vector, Vector]:
        return np.full(n, low), np.full(n, high)

    def g01(X: Vector) -> Vector:
        a, b, c = X[:, 0], X[:, 1], X[:, 2]
        p, q, r = X[:, 9], X[:, 10], X[:, 11]
        return np.column_stack(
            (
                2 * a + 2 * b + p + q - 10,
                2 * a + 2 * c + p + r - 10,
                2 * b + 2 * c + q + r - 10,
                p - 8 * a,
                q - 8 * b,
                r - 8 * c,
                p - 2 * X[:, 3] - X[:, 4],
                q - 2 * X[:, 5] - X[:, 6],
                r - 2 * X[:, 7] - X[:, 8],
            )
        )

    def f02(X: Vector) -> Vector:
        c = np.cos(X)
        top = np.abs(np.sum(c**4, axis=1) - 2.0 * np.prod(c**2, axis=1))
        return -top / np.sqrt(np.maximum(np.sum(np.arange(1, 21) * X * X, axis=1), 1e-300))

    def g04(X: Vector) -> Vector:
        a, b, c, d, e = X.T
        u = 85.334407 + 0.0056858 * b * e + 0.0006262 * a * d - 0.0022053 * c * e
        v = 80.51249 + 0.0071317 * b * e + 0.0029955 * a * b + 0.0021813 * c * c
        w = 9.300961 + 0.0047026 * c * e + 0.0012547 * a * c + 0.0019085 * c * d
        return np.column_stack((u - 92, -u, v - 110, 90 - v, w - 25, 20 - w))

    def h05(X: Vector) -> Vector:
        a, b, c, d = X.T
        return np.column_stack(
            (
                1000 * np.sin(-c - 0.25) + 1000 * np.sin(-d - 0.25) + 894.8 - a,
                1000 * np.sin(c - 0.25) + 1000 * np.sin(c - d - 0.25) + 894.8 - b,
                1000 * np.sin(d - 0.25) + 1000 * np.sin(d - c - 0.25) + 1294.8,
            )
        )

    def f07(X: Vector) -> Vector:
        a, b, c, d, e, p, q, r, s, t = X.T
        return (
            a**2 + b**2 + a * b - 14 * a - 16 * b + (c - 10) ** 2 + 4 * (d - 5) ** 2 + (e - 3) ** 2
        ) + (
            2 * (p - 1) ** 2 + 5 * q**2 + 7 * (r - 11) ** 2 + 2 * (s - 10) ** 2 + (t - 7) ** 2 + 45
        )

    def g07(X: Vector) -> Vector:
        a, b, c, d, e, p, q, r, s, t = X.T
        return np.column_stack(
            (
                -105 + 4 * a + 5 * b - 3 * q + 9 * r,
                10 * a - 8 * b - 17 * q + 2 * r,
                -8 * a + 2 * b + 5 * s - 2 * t - 12,
                3 * (a - 2) ** 2 + 4 * (b - 3) ** 2 + 2 * c**2 - 7 * d - 120,
                5 * a**2 + 8 * b + (c - 6) ** 2 - 2 * d - 40,
                a**2 + 2 * (b - 2) ** 2 - 2 * a * b + 14 * e - 6 * p,
                0.5 * (a - 8) ** 2 + 2 * (b - 4) ** 2 + 3 * e**2 - p - 30,
                -3 * a + 6 * b + 12 * (s - 8) ** 2 - 7 * t,
            )
        )

    def f08(X: Vector) -> Vector:
        a, b = np.maximum(X[:, 0], 1e-9), X[:, 1]
        return -(np.sin(2 * np.pi * a) ** 3) * np.sin(2 * np.pi * b) / (a**3 * (a + b))

    def f09(X: Vector) -> Vector:
        a, b, c, d, e, p, q = X.T
        return (
            (a - 10) ** 2 + 5 * (b - 12) ** 2 + c**4 + 3 * (d - 11) ** 2 + 10 * e**6 + 7 * p**2
        ) + (q**4 - 4 * p * q - 10 * p - 8 * q)

    def g09(X: Vector) -> Vector:
        a, b, c, d, e, p, q = X.T
        return np.column_stack(
            (
                -127 + 2 * a**2 + 3 * b**4 + c + 4 * d**2 + 5 * e,
                -282 + 7 * a + 3 * b + 10 * c**2 + d - e,
                -196 + 23 * a + b**2 + 6 * p**2 - 8 * q,
                4 * a**2 + b**2 - 3 * a * b + 2 * c**2 + 5 * p - 11 * q,
            )
        )

    def g10(X: Vector) -> Vector:
        a, b, c, d, e, p, q, r = X.T
        return np.column_stack(
            (
                -1 + 0.0025 * (d + p),
                -1 + 0.0025 * (e + q - d),
                -1 + 0.01 * (r - e),
                -a * p + 833.33252 * d + 100 * a - 83333.333,
                -b * q + 1250 * e + b * d - 1250 * d,
                -c * r + 1250000 + c * e - 2500 * e,
            )
        )

    def g12(X: Vector) -> Vector:
        centre = np.clip(np.round(X), 1.0, 9.0)
        return np.sum((X - centre) ** 2, axis=1)[:, None] - 0.0625

    def case(name: str, f: Any, g: Any, optimum: float, box: Any, h: Any = None) -> Case:
        n = box[0].size
        return Case(name, f, g, optimum, 1e-4, 20_000 * n, n, box=box, h=h, restarts=20)

    wide = np.array([1.0] * 9 + [100.0] * 3 + [1.0])
    low10, high10 = np.array([100.0, 1e3, 1e3] + [10.0] * 5), np.array([1e4] * 3 + [1e3] * 5)
    return [
        case(
            "g01",
            lambda X: 5 * X[:, :4].sum(1) - 5 * (X[:, :4] ** 2).sum(1) - X[:, 4:].sum(1),
            g01,
            -15.0,
            (np.zeros(13), wide),
        ),
        case(
            "g02",
            f02,
            lambda X: np.column_stack((0.75 - X.prod(axis=1), X.sum(axis=1) - 150.0)),
            -0.80361910412559,
            full(0.0, 10.0, 20),
        ),
        case(
            "g04",
            lambda X: (
                5.3578547 * X[:, 2] ** 2
                + 0.8356891 * X[:, 0] * X[:, 4]
                + 37.293239 * X[:, 0]
                - 40792.141
            ),
            g04,
            -30665.53867178332,
            (np.array([78.0, 33, 27, 27, 27]), np.array([102.0, 45, 45, 45, 45])),
        ),
        case(
            "g05",
            lambda X: 3 * X[:, 0] + 1e-6 * X[:, 0] ** 3 + 2 * X[:, 1] + 2e-6 / 3 * X[:, 1] ** 3,
            lambda X: np.column_stack((X[:, 2] - X[:, 3] - 0.55, X[:, 3] - X[:, 2] - 0.55)),
            5126.4967140071,
            (np.array([0, 0, -0.55, -0.55]), np.array([1200, 1200, 0.55, 0.55])),
            h05,
        ),
        case(
            "g06",
            lambda X: (X[:, 0] - 10) ** 3 + (X[:, 1] - 20) ** 3,
            lambda X: np.column_stack(
                (
                    100 - (X[:, 0] - 5) ** 2 - (X[:, 1] - 5) ** 2,
                    (X[:, 0] - 6) ** 2 + (X[:, 1] - 5) ** 2 - 82.81,
                )
            ),
            -6961.81387558015,
            (np.array([13.0, 0.0]), np.array([100.0, 100.0])),
        ),
        case("g07", f07, g07, 24.30620906818, full(-10.0, 10.0, 10)),
        case(
            "g08",
            f08,
            lambda X: np.column_stack(
                (X[:, 0] ** 2 - X[:, 1] + 1, 1 - X[:, 0] + (X[:, 1] - 4) ** 2)
            ),
            -0.0958250414180359,
            full(0.0, 10.0, 2),
        ),
        case("g09", f09, g09, 680.630057374402, full(-10.0, 10.0, 7)),
        case("g10", lambda X: X[:, :3].sum(axis=1), g10, 7049.24802052867, (low10, high10)),
        case(
            "g12",
            lambda X: -(100 - np.sum((X - 5.0) ** 2, axis=1)) / 100,
            g12,
            -1.0,
            full(0.0, 10.0, 3),
        ),
    ]
