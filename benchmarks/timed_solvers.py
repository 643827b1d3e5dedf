"""One timed run of one solver to a target, for `time_to_solution.py`, in a separate process.

    python benchmarks/timed_solvers.py '{"solver": "mmes", "problem": "sphere", "n": 100, ...}'

prints one line of JSON. The seconds are processor time of the process without the time spent in the
objective: the cost of the solver itself if an evaluation is free. Imports are not counted, nor is
compilation at the first call: each solver first runs briefly on five variables.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes import problems

Floats = NDArray[np.float64]
TARGET = 1e-8
SIGMA0 = 3.0
LOW, HIGH = -5.0, 5.0
FOREVER = 10**12
LARGEST_MATRIX = 100
"""Up to this number of variables, a rotation is a product with a random matrix."""


def whole_limit(limit: float) -> float:
    """Return the seconds of solver and objective together, where the solver may take `limit`."""
    return 5.0 * limit


class Ended(BaseException):
    """The target was reached or the time is up; no solver's `except Exception` catches it."""


@dataclass
class Task:
    """An objective that keeps the time, and where to start.

    Attributes
    ----------
    problem : mmes.problems.Problem
        The function.
    seed : int
        Seed of the start and of the solver.
    limit : float
        Seconds of the solver after which the run ends.
    """

    problem: problems.Problem
    seed: int
    limit: float
    target: float = TARGET
    evaluations: int = 0
    best: float = math.inf
    inside: float = 0.0
    began: float = field(default_factory=time.process_time)

    def __post_init__(self) -> None:
        self.n = self.problem.dimension
        self.rng = np.random.default_rng(self.seed)

    def start(self) -> Floats:
        """Return a new start, uniform in [-5, 5]^n."""
        return self.rng.uniform(LOW, HIGH, self.n)

    @property
    def whole_limit(self) -> float:
        """Seconds of solver and objective together after which the run ends."""
        return whole_limit(self.limit)

    @property
    def seconds(self) -> float:
        """Processor time of the solver so far."""
        return time.process_time() - self.began - self.inside

    def batch(self, points: Any) -> Floats:
        """Return the values of several points; end the run where it is over."""
        entered = time.process_time()
        values = self.problem.batch(np.asarray(points))
        self.evaluations += len(values)
        self.best = min(self.best, float(values.min()))
        left = time.process_time()
        self.inside += left - entered
        spent = left - self.began
        if self.best <= self.target or spent - self.inside > self.limit or spent > self.whole_limit:
            raise Ended
        return values

    def one(self, x: Any) -> float:
        """Return the value of one point."""
        return float(self.batch(np.asarray(x, dtype=np.float64)[None])[0])


def problem_of(name: str, n: int, seed: int) -> problems.Problem:
    """Return a problem; with many variables, a rotated one takes a tenth of the usual time.

    Most peers ask for one value at a time, for which a product with a matrix of n x n numbers takes
    longer than they do. Here the rotation is, twice, a random change of signs, a random order and a
    cosine transform: its entries are distributed like those of a random rotation.
    """
    kind = name.removeprefix("rotated_")
    if kind == name or n <= LARGEST_MATRIX:
        rotation = {} if kind == name else {"seed": seed}
        return problems.get(name, dimension=n, **rotation)
    from scipy.fft import dct

    rng = np.random.default_rng(seed)
    signs = [rng.choice([-1.0, 1.0], n) for _ in range(2)]
    orders = [rng.permutation(n) for _ in range(2)]
    unrotated = problems.get(kind, dimension=n)

    def batch(points: Floats) -> Floats:
        for sign, order in zip(signs, orders, strict=True):
            points = dct((points * sign)[:, order], norm="ortho", axis=1)
        return unrotated.batch(points)

    return replace(unrotated, name=name, batch=batch, minimizer=None)


# --- Solvers: each runs until the task ends it, with its own restarts ----------------------------


def by_mmes(task: Task) -> None:
    """Run this library's default: no strategy named, one thread, restarts."""
    import mmes

    while True:
        mmes.minimize(
            task.batch, task.start(), SIGMA0, vectorized=True, seed=task.seed, threads=1,
            restarts="unlimited", max_evaluations=FOREVER, target=TARGET,
        )  # fmt: skip


def by_pycma(task: Task, **options: Any) -> None:
    """Run pycma's `fmin2`, with a population twice as large at every restart."""
    import cma

    settings = {"seed": task.seed, "verbose": -9, "maxfevals": FOREVER, **options}
    while True:
        cma.fmin2(
            task.one, task.start(), SIGMA0, settings, restarts=9, parallel_objective=many(task)
        )


def many(task: Task) -> Callable[..., list[float]]:
    """Return the objective of a whole generation as pycma calls it."""
    return lambda points, *_: task.batch(points).tolist()


def by_pycma_diagonal(task: Task) -> None:
    """Run pycma with a diagonal covariance matrix."""
    by_pycma(task, CMA_diagonal=True)


def by_cmaes(task: Task, kind: str = "CMA") -> None:
    """Run cmaes as its documentation restarts it: twice the population at a new point."""
    import cmaes

    make = getattr(cmaes, kind)
    es = make(mean=task.start(), sigma=SIGMA0, seed=task.seed)
    while True:
        points = [es.ask() for _ in range(es.population_size)]
        es.tell(list(zip(points, task.batch(points).tolist(), strict=True)))
        if es.should_stop():
            size = 2 * es.population_size
            es = make(mean=task.start(), sigma=SIGMA0, seed=task.seed, population_size=size)


def by_cmaes_separable(task: Task) -> None:
    """Run cmaes' separable strategy."""
    by_cmaes(task, "SepCMA")


def by_nevergrad(task: Task) -> None:
    """Run NGOpt, which chooses an algorithm by the number of variables and the budget."""
    import nevergrad as ng

    while True:
        place = ng.p.Array(init=task.start()).set_mutation(sigma=SIGMA0)
        place.random_state.seed(task.seed)
        ng.optimizers.NGOpt(parametrization=place, budget=10_000 * task.n).minimize(task.one)


def by_pypop7(task: Task) -> None:
    """Run pypop7's MMES with its restarts."""
    from pypop7.optimizers.es.mmes import MMES

    box = {"lower_boundary": np.full(task.n, LOW), "upper_boundary": np.full(task.n, HIGH)}
    problem = {"fitness_function": task.one, "ndim_problem": task.n, **box}
    while True:
        options = {"seed_rng": task.seed, "mean": task.start(), "sigma": SIGMA0, "verbose": 0}
        MMES(problem, options | {"max_function_evaluations": FOREVER}).optimize()


def by_lbfgsb(task: Task) -> None:
    """Run SciPy's L-BFGS-B with finite differences; again from its end, or else from a new start.

    It uses gradients, if only estimated ones, so it is shown beside the others and not ranked.
    """
    from scipy.optimize import minimize

    options = {"maxiter": FOREVER, "maxfun": FOREVER, "ftol": 0.0, "gtol": 0.0}
    while True:
        x, before = task.start(), math.inf
        while True:
            result = minimize(task.one, x, method="L-BFGS-B", options=options)
            if not result.fun < 0.9 * before:
                break
            x, before = result.x, result.fun


@dataclass(frozen=True)
class Solver:
    """A column of the table: what runs it, and the package it needs."""

    run: Callable[[Task], None]
    package: str
    ranked: bool = True


SOLVERS = {
    "mmes": Solver(by_mmes, "mmes"),
    "pycma": Solver(by_pycma, "cma"),
    "pycma diagonal": Solver(by_pycma_diagonal, "cma"),
    "cmaes": Solver(by_cmaes, "cmaes"),
    "cmaes separable": Solver(by_cmaes_separable, "cmaes"),
    "Nevergrad NGOpt": Solver(by_nevergrad, "nevergrad"),
    "pypop7 MMES": Solver(by_pypop7, "pypop7"),
    "L-BFGS-B": Solver(by_lbfgsb, "scipy", ranked=False),
}


def timed(solver: str, problem: str, n: int, seed: int, limit: float) -> dict[str, Any]:
    """Carry out one run and return what came of it; ImportError where the package is missing."""
    run = SOLVERS[solver].run
    task, error = carried_out(run, Task(problems.get("sphere", dimension=5), 1, 0.5, target=1e-4))
    if not error:
        task, error = carried_out(run, Task(problem_of(problem, n, seed), seed, limit))
    return {
        "reached": task.best <= TARGET,
        "seconds": round(task.seconds, 4),
        "objective_seconds": round(task.inside, 4),
        "evaluations": task.evaluations,
        "best": task.best if math.isfinite(task.best) else None,
        "error": error,
        "version": version(SOLVERS[solver].package),
    }


def carried_out(run: Callable[[Task], None], task: Task) -> tuple[Task, str]:
    """Run a solver until the task ends it; return the task and what failed."""
    try:
        run(task)
    except Ended:
        return task, ""
    except ImportError:
        raise
    except Exception as error:  # a peer that fails is a result, and no end of the table
        return task, f"{type(error).__name__}: {error}"
    return task, "the solver ended by itself"


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the peers' own
    asked = json.loads(sys.argv[1])
    # A solver that hangs without evaluating is ended by the system.
    cap = int(whole_limit(asked["limit"])) + 60
    resource.setrlimit(resource.RLIMIT_CPU, (cap, cap))
    try:
        found = timed(**asked)
    except ImportError as missing:
        found = {"missing": str(missing.name)}
    print(json.dumps(found))
