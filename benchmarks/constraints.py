"""Constrained problems: ours without options beside pycma's fmin_con2 and SciPy's SLSQP and COBYQA.

    python benchmarks/constraints.py                                all cases, 5 seeds
    python benchmarks/constraints.py --solver pycma --seeds 1       a peer
    python benchmarks/constraints.py hostile                        failures, noise, no solution

A line per case: evaluations to the goal (median), relative error and violation at the end, how many
of the seeds reached the goal, and how many said success. A point counts if it violates inequalities
by at most 1e-6 and equalities by at most 1e-4. Peers count each point once, and each of their runs
may take `--seconds` of processor time.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from constraint_cases import Case, g_functions, klee_minty, sphere, truss, weight

import mmes

TOLERANCE = 1e-6
EQUALITY = 1e-4
SECONDS = 60.0
"""A run of a peer is given so long, unless the command says otherwise."""


class Outcome(NamedTuple):
    """What a solver left: evaluations to the goal, error and violation at the end, its claim."""

    evaluations: float
    error: float
    violation: float
    success: bool


class Counted:
    """Measures one point after the other, and knows when the goal was reached."""

    def __init__(self, case: Case):
        self.case, self.calls, self.reached = case, 0, math.inf
        self.began, self.best = time.process_time(), (math.inf, math.inf)
        self._newest: tuple[bytes, Any] = b"", None

    def __call__(self, x: Any) -> tuple[float, Any, Any]:
        case, X = self.case, np.array(x, dtype=float)[None]
        if X.tobytes() == self._newest[0]:  # f and g of one point are one evaluation
            return self._newest[1]
        if self.calls >= case.budget or time.process_time() - self.began > SECONDS:
            raise TimeoutError
        self.calls += 1
        f, g = float(case.f(X)[0]), case.g(X)[0]
        h = np.empty(0) if case.h is None else case.h(X)[0]
        worst = violation(g, h)
        # Feasible values by themselves, others by their violation.
        if worst < self.best[0] or (worst == self.best[0] and f < self.best[1]):
            self.best = worst, f
        if worst <= 0 and case.error(f) <= case.goal:
            self.reached = min(self.reached, self.calls)
        self._newest = X.tobytes(), (f, g, h)
        return f, g, h

    def outcome(self, success: bool) -> Outcome:
        """Return what was found."""
        return Outcome(self.reached, self.case.error(self.best[1]), self.best[0], success)


def violation(g: Any, h: Any) -> float:
    """Return the largest violation beyond the tolerance; 0 where there is none."""
    worst = float(np.max(g - TOLERANCE, initial=0.0))
    return max(worst, float(np.max(np.abs(h) - EQUALITY, initial=0.0)), 0.0)


def ours(case: Case, seed: int) -> Outcome:
    """Run `mmes.minimize` as a user would."""
    reached = [math.inf]

    def watch(progress: mmes.Progress) -> None:
        if math.isinf(reached[0]) and case.error(progress.best_value) <= case.goal:
            reached[0] = progress.evaluations

    constraints: list[Any] = [case.g]
    if case.h is not None:
        constraints.append(mmes.Equality(case.h, EQUALITY))
    # The search goes on to its own end, or the target where restarts look for the best optimum.
    goal = case.optimum + 0.9 * case.goal * max(abs(case.optimum), 1.0)
    result = mmes.minimize(
        case.f,
        case.start,
        case.sigma0,
        bounds=case.box,
        constraints=constraints,
        vectorized=True,
        seed=seed,
        max_evaluations=case.budget,
        restarts=case.restarts,
        target=goal if case.restarts else None,
        constraint_tolerance=TOLERANCE,
        callback=watch,
    )
    worst = result.constraint_violation
    allowed = TOLERANCE if case.h is None else EQUALITY
    if case.error(result.fun) <= case.goal and worst is not None and worst <= allowed:
        reached[0] = min(reached[0], result.nfev)
    else:
        reached[0] = math.inf  # what was seen on the way is not what is returned
    return Outcome(reached[0], case.error(result.fun), float(worst or 0.0), result.success)


def pycma(case: Case, seed: int) -> Outcome:
    """Run pycma's fmin_con2, with restarts until the budget is spent."""
    import cma  # pyright: ignore[reportMissingImports]

    counted = Counted(case)

    def g(x: Any) -> list[float]:
        _, found, h = counted(x)
        return [*found, *(np.abs(h) - EQUALITY)]

    rng, success = np.random.default_rng(seed), False
    with contextlib.suppress(TimeoutError), contextlib.redirect_stdout(io.StringIO()):
        for start in range(case.restarts + 1):
            x0, sigma0, options = (
                case.start,
                case.sigma0,
                {"verbose": -9, "seed": seed + 100 * start},
            )
            if case.box is not None:
                low, high = case.box
                x0, sigma0 = low + rng.random(case.n) * (high - low), 0.3
                options |= {"bounds": [low, high], "CMA_stds": high - low}
            _, es = cma.fmin_con2(
                lambda x: counted(x)[0], x0, sigma0, constraints=g, options=options
            )
            success = bool(es.stop()) and counted.best[0] <= 0
            if math.isfinite(counted.reached):
                break
    return counted.outcome(success)


def scipy_with(method: str) -> Callable[[Case, int], Outcome]:
    """Return a run of one of SciPy's methods, with finite differences and restarts."""

    def solve(case: Case, seed: int) -> Outcome:
        from scipy.optimize import Bounds, minimize

        counted, rng, success = Counted(case), np.random.default_rng(seed), False
        box = None if case.box is None else Bounds(*case.box)
        constraints: list[dict[str, Any]] = [{"type": "ineq", "fun": lambda x: -counted(x)[1]}]
        if case.h is not None:
            constraints.append({"type": "eq", "fun": lambda x: counted(x)[2]})
        with contextlib.suppress(TimeoutError), np.errstate(all="ignore"):
            for _ in range(case.restarts + 1):
                x0 = case.start
                if case.box is not None:
                    x0 = case.box[0] + rng.random(case.n) * (case.box[1] - case.box[0])
                found = minimize(
                    lambda x: counted(x)[0], x0, method=method, bounds=box, constraints=constraints
                )
                success = bool(found.success)
                if math.isfinite(counted.reached):
                    break
        return counted.outcome(success)

    return solve


SOLVERS: dict[str, Callable[[Case, int], Outcome]] = {
    "mmes": ours,
    "pycma": pycma,
    "SLSQP": scipy_with("SLSQP"),
    "COBYQA": scipy_with("COBYQA"),
}


def hostile(seeds: int) -> None:
    """Print how often a sphere, n = 20, under x_0 >= 1 ends as it should; the optimum is 1."""
    print("| constraint | error | violation of the true constraint | ended as it should |")
    print("| --- | --- | --- | --- |")
    for name in ("fails in 5 % of calls", "noise 0.1", "no feasible point"):
        errors, violations, right = [], [], 0
        for seed in range(1, seeds + 1):
            rng = np.random.default_rng(seed)

            def g(x: Any, rng: Any = rng, name: str = name) -> Any:
                if name.startswith("fails"):
                    return math.nan if rng.random() < 0.05 else 1.0 - x[0]
                if name.startswith("noise"):
                    return 1.0 - x[0] + 0.1 * rng.standard_normal()
                return [1.0 - x[0], 1.0 + x[0]]

            result = mmes.minimize(
                lambda x: float(x @ x),
                np.full(20, 3.0),
                1.0,
                constraints=g,
                seed=seed,
                max_evaluations=20_000,
            )
            errors.append(abs(result.fun - 1.0))
            violations.append(max(1.0 - float(result.x[0]), 0.0))
            none, said = name.startswith("no f"), result.reason is mmes.StopReason.INFEASIBLE
            right += said if none else not said and errors[-1] < (0.25 if result.noisy else 1e-4)
        error, violated = statistics.median(errors), statistics.median(violations)
        print(f"| {name} | {error:.1e} | {violated:.1e} | {right}/{seeds} |", flush=True)


def cases(names: list[str]) -> Iterator[Case]:
    """Yield the cases of the groups named."""
    for name in names:
        if name == "sphere":
            for n in (40, 200, 1000):
                yield from (sphere(n, m) for m in (1, 10, n // 2))
        elif name == "g":
            yield from g_functions()
        else:
            yield {"weight": weight, "truss": truss, "klee-minty": klee_minty}[name]()


def main() -> None:
    """Print a table."""
    global SECONDS
    parser = argparse.ArgumentParser(description=__doc__)
    every = ["sphere", "weight", "truss", "klee-minty", "g"]
    parser.add_argument("groups", nargs="*", default=every)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--solver", choices=SOLVERS, action="append", help="default: mmes")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="processor time of a peer's run"
    )
    parser.add_argument("--only", help="cases whose name contains this")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    SECONDS = given.seconds
    if given.groups == ["hostile"]:
        hostile(given.seeds)
        return
    print("| case | solver | to the goal | error | violation | solved | success |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for case in cases(given.groups):
        if given.only and given.only not in case.name:
            continue
        for name in given.solver or ["mmes"]:
            found = [SOLVERS[name](case, seed) for seed in range(1, given.seeds + 1)]
            median = statistics.median(one.evaluations for one in found)
            error = statistics.median(one.error for one in found)
            worst = statistics.median(one.violation for one in found)
            solved = sum(math.isfinite(one.evaluations) for one in found)
            claims = sum(one.success for one in found)
            print(
                f"| {case.name} | {name} | {median:.3g} | {error:.1e} | {worst:.1e} | "
                f"{solved}/{len(found)} | {claims}/{len(found)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
