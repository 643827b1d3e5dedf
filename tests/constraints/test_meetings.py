"""Constraints where they meet other features: interruptions, infinities, huge numbers.

All of these failed before, but where a docstring says otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmes
from features import too_small
from mmes import StopReason
from mmes.constraints import Constraints, Handling
from mmes.errors import EvaluationError, FailedEvaluationWarning

OPTIONS: dict[str, Any] = {
    "x0": np.ones(4),
    "sigma0": 0.5,
    "seed": 3,
    "xtol": 1e-2,
    "stagnation_window": 20,
}


class Sphere:
    """A sphere that can be told to break at a call."""

    def __init__(self, last: int | None = None):
        self.calls, self.last = 0, last

    def __call__(self, x: Any) -> float:
        self.calls += 1
        if self.last is not None and self.calls > self.last:
            raise RuntimeError("broken")
        return float(np.sum((x - 0.25) ** 2))


@pytest.mark.parametrize("restarts", [0, 1])
def test_an_interruption_at_the_end_changes_nothing(tmp_path: Path, restarts: int) -> None:
    """The question about noise, and the look at the mean, were left out by the resumed run."""
    options: dict[str, Any] = OPTIONS | {"restarts": restarts}
    fun = Sphere()
    whole = mmes.minimize(fun, constraints=too_small, **options)
    for last in range(fun.calls - 6, fun.calls):
        path = tmp_path / str(last)
        with pytest.raises(EvaluationError):
            mmes.minimize(Sphere(last), constraints=too_small, checkpoint=path, **options)
        result = mmes.resume(path, Sphere(), constraints=too_small)
        assert (result.reason, result.success) == (whole.reason, whole.success)
        assert (result.nfev, result.fun) == (whole.nfev, whole.fun)
        assert result.mean.tobytes() == whole.mean.tobytes()


def test_a_question_for_which_the_budget_was_too_small_is_asked_with_a_larger_one(
    tmp_path: Path,
) -> None:
    options: dict[str, Any] = OPTIONS | {
        "noise": "yes",
        "strategy": "sep-cma",
        "evaluate_x0": False,
    }
    options |= {"reevaluations": 0, "population_size": 8}
    whole = mmes.minimize(Sphere(), max_evaluations=400, **options)
    path = tmp_path / "run.mmes"
    mmes.minimize(Sphere(), max_evaluations=8, checkpoint=path, **options)
    result = mmes.resume(path, Sphere(), max_evaluations=400)
    for name, column in whole.history.items():
        np.testing.assert_array_equal(result.history[name], column)


EXTREMES: dict[str, tuple[Any, Any]] = {
    "infinite": (1.0, lambda x: np.inf),
    "infinite at first": (1.0, lambda x: np.inf if x[0] == 1.0 else 0.5 - x[0]),
    "infinite in a region": (1.0, lambda x: [np.inf if x[0] < 0.9 else -1.0, 0.75 - x[2]]),
    "infinite equality": (1.0, mmes.Equality(lambda x: np.inf if x[0] > 1 else x[0] - x[1] ** 2)),
    "fulfilled for ever": (1.0, lambda x: -np.inf),
    "one fulfilled for ever": (1.0, lambda x: [-np.inf, 0.75 - x[2]]),
    "huge": (1.0, lambda x: 1e200 * (0.75 - x[2])),
    "huge and constant": (1.0, lambda x: 1e308),
    "huge objective": (2e307, too_small),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_extreme_constraints_give_no_warning_and_can_be_resumed(name: str, tmp_path: Path) -> None:
    factor, constraint = EXTREMES[name]

    def fun(x: Any) -> float:
        return factor * float(np.sum((x - 0.25) ** 2))

    options: dict[str, Any] = {
        "x0": np.ones(4),
        "sigma0": 0.5,
        "seed": 3,
        "constraints": constraint,
    }
    whole = mmes.minimize(fun, max_evaluations=300, **options)
    path = tmp_path / "run.mmes"
    mmes.minimize(fun, max_evaluations=30, checkpoint=path, **options)
    result = mmes.resume(path, fun, constraints=constraint, max_evaluations=300)
    assert (result.fun, result.nfev, result.reason) == (whole.fun, whole.nfev, whole.reason)
    assert result.constraint_violation == whole.constraint_violation


def test_an_infinite_violation_ranks_last() -> None:
    """A constraint that was never finite where it was violated had no weight."""

    def constraint(x: Any) -> float:
        return np.inf if x[0] < 0.9 else -1.0

    options: dict[str, Any] = {"x0": np.ones(4), "sigma0": 0.5, "seed": 3}
    result = mmes.minimize(Sphere(), constraints=constraint, max_evaluations=3000, **options)
    assert result.mean[0] >= 0.9 - 1e-3
    assert result.fun == pytest.approx(0.65**2, abs=1e-3)
    assert result.reason is not StopReason.INFEASIBLE


def test_a_constraint_that_holds_by_infinity_does_not_stop_the_others() -> None:
    options: dict[str, Any] = {"x0": np.ones(4), "sigma0": 0.5, "seed": 3, "max_evaluations": 3000}
    result = mmes.minimize(Sphere(), constraints=lambda x: [-np.inf, 0.75 - x[2]], **options)
    assert result.fun == pytest.approx(0.25, abs=1e-4)
    assert result.multipliers == pytest.approx([0.0, 1.0], abs=0.05)


def noisy(strength: float, seed: int) -> tuple[Any, list[int]]:
    """Return a noisy constraint, x[0] >= 1, and a list of how often it was called."""
    calls, drawn = [0], np.random.default_rng(seed)

    def constraint(x: Any) -> float:
        calls[0] += 1
        return 1.0 - x[0] + strength * drawn.standard_normal()

    return constraint, calls


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["auto", "yes"])
def test_a_noisy_constraint_is_met_on_the_average(noise: str) -> None:
    """The multipliers saw the parents alone: those whose violation was measured too small."""
    found, infeasible = [], 0
    for seed in range(1, 6):
        constraint, calls = noisy(0.1, seed)
        result = mmes.minimize(
            lambda x: float(x @ x),
            np.full(8, 3.0),
            1.0,
            constraints=constraint,
            seed=seed,
            noise=noise,
            max_evaluations=3000,
        )
        assert result.noisy
        assert result.nfev == calls[0] <= 3000
        infeasible += result.reason is StopReason.INFEASIBLE
        assert len(set(result.reasons)) == len(result.reasons)
        found.append(1.0 - result.mean[0])
    # It was 0.12 before; the seeds are fixed. On the border an average exceeds two standard errors
    # now and then.
    assert np.median(found) < 0.05
    assert infeasible <= 1


def test_noise_of_the_constraints_alone_is_noise() -> None:
    constraint, _ = noisy(0.1, 1)
    options: dict[str, Any] = {
        "noise": "yes",
        "max_evaluations": 300,
        "seed": 1,
        "constraints": constraint,
    }
    result = mmes.minimize(lambda x: float(x @ x), np.full(8, 3.0), 1.0, **options)
    assert result.noisy


@pytest.mark.parametrize("budget", [40, 41, 43, 47, 60])
def test_a_small_budget_holds_though_the_mean_is_measured_too(budget: int) -> None:
    """No repair: what was added must keep to the budget."""
    constraint, calls = noisy(0.1, 1)
    options: dict[str, Any] = {
        "noise": "yes",
        "reevaluations": 0,
        "seed": 1,
        "constraints": constraint,
    }
    result = mmes.minimize(
        lambda x: float(x @ x), np.full(8, 3.0), 1.0, max_evaluations=budget, **options
    )
    assert result.nfev == calls[0] == budget


def test_many_noisy_constraints_are_not_infeasible_by_chance() -> None:
    """Two standard errors are exceeded by one of fifty averages in seven runs of ten."""
    drawn = np.random.default_rng(5)
    given = Constraints.checked(lambda x: x)
    assert given is not None
    handling = Handling(given, 1e-6, 8)
    excess = [
        handling.averaged(np.column_stack((np.zeros(10), 0.1 * drawn.standard_normal((10, 50)))))[1]
        for _ in range(200)
    ]
    # Of 200 tries at a level of 2.3 %, with ten values each; far fewer than the 140 of before.
    assert np.count_nonzero(excess) < 60


@pytest.mark.parametrize("failing", [3, 4])
def test_calls_that_fail_before_the_constraints_are_known(failing: int) -> None:
    """A question about noise joined a table of one column with one of three."""
    calls = [0]

    def fun(X: Any) -> Any:
        calls[0] += 1
        if calls[0] <= failing:
            raise ArithmeticError("no")
        return np.sum(X * X, axis=1) + calls[0] % 2

    with pytest.warns(FailedEvaluationWarning):
        result = mmes.minimize(
            fun,
            np.full(4, 3.0),
            1.0,
            constraints=lambda X: 1.0 - X[:, :2],
            vectorized=True,
            catch=(ArithmeticError,),
            noise="yes",
            evaluate_x0=False,
            max_evaluations=60,
            seed=1,
        )
    assert result.failed == 1 + 8 + failing - 2
    assert result.constraint_violation is not None


def test_a_budget_without_a_look_at_the_mean_is_not_infeasible() -> None:
    """It was called so, with a feasible point and a violation of 0."""
    whole = mmes.minimize(Sphere(), constraints=too_small, **OPTIONS)
    budgets = range(whole.nfev - 3, whole.nfev)
    for budget in budgets:
        result = mmes.minimize(Sphere(), constraints=too_small, max_evaluations=budget, **OPTIONS)
        assert result.constraint_violation == 0.0
        assert result.reason in (StopReason.CONVERGED_X, StopReason.MAX_EVALUATIONS)
        assert result.success == (result.reason is StopReason.CONVERGED_X)
