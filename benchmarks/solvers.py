"""One task, four solvers: ours without options, pycma, and two of SciPy, with the same budget."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mmes

Vector = NDArray[np.float64]
SECONDS = 60
"""A run of pycma is given so long."""
FULL_MATRIX = 200
"""pycma, with its full matrix, is not run in more variables."""


@dataclass(frozen=True)
class Task:
    """What is to be minimised.

    Attributes
    ----------
    batch : callable
        The objective, one value per row.
    start : ndarray or None
        The start point; None where the box says it.
    sigma0 : float
        The mutation strength.
    budget : int
        Evaluations.
    target : float
        A value at or below it has solved the task; -inf where the value at the end counts.
    truth : callable or None
        The value of one point without noise; None: the objective itself.
    box : tuple or None
        Lower and upper bounds.
    """

    batch: Callable[[Vector], Vector]
    start: Vector | None
    sigma0: float
    budget: int
    target: float = -math.inf
    truth: Callable[[Vector], float] | None = None
    box: tuple[Vector, Vector] | None = None

    @property
    def n(self) -> int:
        """The number of variables."""
        place = self.start if self.start is not None else self.box[0] if self.box else np.empty(0)
        return place.size

    def value(self, x: Vector) -> float:
        """Return the value of a point without noise."""
        return float(self.batch(x[None])[0]) if self.truth is None else self.truth(x)


@dataclass(frozen=True)
class Outcome:
    """What a solver left: evaluations to the target (or inf) and the true value at its point."""

    evaluations: float
    value: float


class _Spent(Exception):
    pass


class Counted:
    """The objective with a budget; it knows the best point, and when the target was reached."""

    def __init__(self, task: Task):
        self.task, self.calls, self.reached = task, 0, math.inf
        self.best, self.point = math.inf, task.start

    def rows(self, points: Vector) -> Vector:
        """Return one value per row; raise when target or budget is reached."""
        left = self.task.budget - self.calls
        if left <= 0:
            raise _Spent
        values = self.task.batch(points[:left])
        hit = np.flatnonzero(values <= self.task.target)
        if hit.size:
            self.reached = self.calls + int(hit[0]) + 1
        self.calls += values.size
        best = int(np.argmin(values))
        if values[best] < self.best:
            self.best, self.point = float(values[best]), points[best].copy()
        if hit.size or values.size < len(points):
            raise _Spent
        return values

    def one(self, x: Vector) -> float:
        """Return the value of one point."""
        return float(self.rows(np.asarray(x)[None])[0])

    def outcome(self, x: Vector | None = None) -> Outcome:
        """Return what was reached; by default at the best point seen."""
        place = self.point if x is None else x
        return Outcome(self.reached, math.nan if place is None else self.task.value(place))


def ours(task: Task, seed: int, **options: Any) -> mmes.Result:
    """Run `minimize` with nothing but bounds, target and budget."""
    start = () if task.start is None else (task.start, task.sigma0)
    return mmes.minimize(
        task.batch,
        *start,
        bounds=task.box,
        target=None if task.target == -math.inf else task.target,
        max_evaluations=task.budget,
        vectorized=True,
        seed=seed,
        **options,
    )


def by_mmes(task: Task, seed: int, **options: Any) -> Outcome:
    """Return the outcome of `ours`; options are for the rivals in this library."""
    r = ours(task, seed, **options)
    solved = r.best_seen <= task.target
    return Outcome(r.nfev if solved else math.inf, task.value(r.x))


def by_pycma(task: Task, seed: int) -> Outcome:
    """Run `cma.fmin2`; from the middle of the box where no start is given."""
    import cma

    if task.n > FULL_MATRIX:
        return Outcome(math.inf, math.nan)

    f, (lower, upper), start = Counted(task), _box(task), _start(task)
    options: dict[str, Any] = {
        "seed": seed + 1,
        "verbose": -9,
        "maxfevals": task.budget,
        "timeout": SECONDS,
    }
    if task.box is not None:
        options["bounds"] = [lower.tolist(), upper.tolist()]
    x = None
    with contextlib.suppress(_Spent), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x, _ = cma.fmin2(f.one, start, _sigma(task), options)
    noisy = task.truth is not None
    return f.outcome(x if noisy and x is not None else None)


def by_differential_evolution(task: Task, seed: int) -> Outcome:
    """Run SciPy's; its box is x0 +- 5 sigma0 where the task has none."""
    from scipy.optimize import differential_evolution

    f = Counted(task)
    with contextlib.suppress(_Spent):
        differential_evolution(
            lambda columns: f.rows(np.ascontiguousarray(columns.T)),
            list(zip(*_box(task), strict=True)),
            rng=seed,
            maxiter=10**9,
            vectorized=True,
            updating="deferred",
            polish=False,
        )
    return f.outcome()


def by_lbfgsb(task: Task, seed: int) -> Outcome:
    """Run SciPy's L-BFGS-B, whose gradients are finite differences here."""
    from scipy.optimize import minimize

    f, box = Counted(task), None
    if task.box is not None:
        box = list(zip(*task.box, strict=True))
    with contextlib.suppress(_Spent), np.errstate(all="ignore"):
        minimize(f.one, _start(task), method="L-BFGS-B", bounds=box, options={"maxfun": 10**9})
    return f.outcome()


RIVALS = {"pycma": by_pycma, "DE": by_differential_evolution, "L-BFGS-B": by_lbfgsb}


def _start(task: Task) -> Vector:
    if task.start is not None:
        return task.start
    lower, upper = _box(task)
    return (lower + upper) / 2


def _sigma(task: Task) -> float:
    if task.start is not None:
        return task.sigma0
    lower, upper = _box(task)
    return 0.3 * float((upper - lower).mean())


def _box(task: Task) -> tuple[Vector, Vector]:
    if task.box is not None:
        return task.box
    start = _start(task)
    return start - 5 * task.sigma0, start + 5 * task.sigma0
