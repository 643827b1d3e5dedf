"""The laws of `benchmarks/defaults.py`: cases other than speed, each with its goal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from solvers import Vector

import mmes
from mmes.problems import get
from mmes.strategies import STRATEGIES


@dataclass(frozen=True)
class Law:
    """A row without rivals: what is measured, and whether the goal is met."""

    group: str
    name: str
    goal: str
    measure: Callable[[int, bool], tuple[str, bool]]


def first_steps(seeds: int, quick: bool) -> tuple[str, bool]:
    """Return the range of the first generation's RMS step over sigma0; MMES is the exception."""
    found: dict[tuple[str, int], float] = {}
    for name, strategy in STRATEGIES.items():
        if name == "mmes":
            continue
        for n in (2, 10, 100, 1000) if quick else (2, 3, 5, 10, 30, 100, 1000, 10_000, 100_000):
            if name in ("cma-es", "active-cma") and n > 1000:
                continue
            squares = []
            for seed in range(max(2, min(300, 3000 // n))):
                es = strategy(np.zeros(n), 2.0, seed=seed, threads=1)
                squares.append(float((es.ask()[-es.population_size :] ** 2).mean()))
            found[name, n] = math.sqrt(float(np.mean(squares))) / 2.0
    low, high = min(found, key=found.__getitem__), max(found, key=found.__getitem__)
    words = " .. ".join(f"{found[k]:.3f} ({k[0]}, n = {k[1]})" for k in (low, high))
    return words, found[low] >= 0.8 and found[high] <= 1.05


def flat(seeds: int, quick: bool) -> tuple[str, bool]:
    """Return when a constant objective ends, over all strategies."""
    latest, met = 0, True
    for name in ("auto", *STRATEGIES):
        for n in (5, 50) if quick else (5, 50, 300):
            r = mmes.minimize(
                lambda p: np.full(len(p), 7.0), np.zeros(n), 1.0, vectorized=True, seed=1,
                strategy=name, max_evaluations=10**6,
            )  # fmt: skip
            late = r.nit - max(n, 200)
            latest = max(latest, late)
            met &= r.reason is mmes.StopReason.FLAT and not r.success and late <= 100
    return f"{latest} generations after the window", met


def small_ellipsoid(seeds: int, quick: bool) -> tuple[str, bool]:
    """Return where, and when, the ellipsoid in ten variables ends without a target."""
    import cma

    problem = get("ellipsoid", dimension=10)
    ends, spent, theirs = [], [], []
    for seed in range(1, seeds + 1):
        r = mmes.minimize(problem.batch, np.full(10, 3.0), 2.0, vectorized=True, seed=seed)
        ends.append(r.fun)
        spent.append(r.nfev)
        options = {"seed": seed, "verbose": -9}
        _, es = cma.fmin2(
            lambda x: float(problem.batch(x[None])[0]), np.full(10, 3.0), 2.0, options
        )
        theirs.append(es.result.evaluations)
    ours, pycma = float(np.median(spent)), float(np.median(theirs))
    met = max(ends) < 1e-12 and ours <= 2 * pycma
    return f"{max(ends):.0e} after {ours:.0f} (pycma {pycma:.0f})", met


def transformed(seeds: int, quick: bool) -> tuple[str, bool]:
    """Return the worst end of the transformed objectives, over all strategies."""
    n, parted, worst = 12, 0.0, 0.0  # the largest value at which points ever differed
    weights = np.logspace(0, 1, n)
    maps = {"f": (1.0, 0.0), "f + 1e3": (1.0, 1e3), "f - 1e3": (1.0, -1e3), "1e-6 f": (1e-6, 0.0),
            "1e6 f": (1e6, 0.0)}  # fmt: skip
    for name in ("auto", *STRATEGIES):
        traces = {}
        for word, (a, b) in maps.items():
            points: list[Vector] = []

            def batch(p: Vector, a: float = a, b: float = b, kept: list[Vector] = points) -> Vector:
                kept.append(p.copy())
                return a * (p**2 @ weights) + b

            r = mmes.minimize(
                batch, np.full(n, 3.0), 1.0, vectorized=True, seed=1, strategy=name,
                max_evaluations=20_000,
            )  # fmt: skip
            traces[word] = points
            gap = float(r.x**2 @ weights)
            allowed = 1e3 * math.ulp(abs(b)) if b else 0.0
            worst = max(worst, gap - allowed)
        base = traces["f"]
        for points in traces.values():
            equal = [
                p.shape == q.shape and (p == q).all() for p, q in zip(base, points, strict=False)
            ]
            if False in equal:
                parted = max(parted, float((base[equal.index(False)] ** 2 @ weights).min()))
    words = f"same points until f = {parted:.0e} or below; worst end {worst:.0e}"
    return words, parted <= 1e-9 and worst <= 1e-6


def questions(seeds: int, quick: bool) -> tuple[str, bool]:
    """Return the evaluations that a deterministic run spends on asking about noise."""
    most = 0
    for name, n in (
        ("sphere", 20),
        ("cigar", 20),
        ("rosenbrock", 20),
        ("discus", 200),
        ("cigar", 200),
    ):
        problem = get(name, dimension=n)
        for seed in range(1, seeds + 1):
            run = mmes.Run(
                problem.batch, np.full(n, 3.0), 1.0, vectorized=True, seed=seed,
                max_evaluations=200 * n if quick else 3000 * n,
            )  # fmt: skip
            run.run()
            most = max(most, run.state()["noise"]["evaluations"])
    return f"{most} evaluations", most <= 10


def standing(seeds: int, quick: bool) -> tuple[str, bool]:
    """Return how many runs on long plateaus ended as STAGNATED before their budget."""
    runs = false = 0
    cells = [("cigar", 150, 6e4), ("rosenbrock", 150, 2e5), ("cigar", 1000, 1.4e5)]
    if not quick:
        cells += [("rosenbrock", 1000, 4e5)]
    for name, n, budget in cells:
        for seed in range(1, 4 * seeds + 1):
            r = mmes.minimize(
                get(name, dimension=n).batch, np.random.default_rng(seed).uniform(-5, 5, n), 3.0,
                vectorized=True, seed=seed, max_evaluations=budget, target=1e-8,
            )  # fmt: skip
            runs += 1
            false += mmes.StopReason.STAGNATED in r.reasons
    return f"{false} of {runs} runs", false == 0


LAWS = (
    Law("steps", "first generation's RMS step / sigma0", "0.8 .. 1.05", first_steps),
    Law("flat", "constant objective", "FLAT, no success, <= 100", flat),
    Law("end", "ellipsoid n = 10 without target", "< 1e-12, <= 2 x pycma", small_ellipsoid),
    Law(
        "invariance",
        "f, f +- 1e3, 1e+-6 f, every strategy",
        "same points; end <= 1e-6",
        transformed,
    ),
    Law("questions", "evaluations on noise, deterministic f", "<= 10", questions),
    Law("plateau", "false STAGNATED on Cigar and Rosenbrock", "none", standing),
)
