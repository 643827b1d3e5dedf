"""Runs with constraints: results, ends, checkpoints, workers, noise, failures, restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmes
from mmes import StopReason
from mmes.errors import FailedEvaluationWarning


def sphere(x: Any) -> float:
    return float(x @ x)


def above_one(x: Any) -> Any:
    return 1.0 - x[:2]


def both(x: Any) -> tuple[float, Any]:
    return sphere(x), above_one(x)


def run(fun: Any = sphere, constraints: Any = above_one, n: int = 8, **more: Any) -> mmes.Result:
    given: dict[str, Any] = {"seed": 1} | more
    return mmes.minimize(fun, np.full(n, 3.0), 1.0, constraints=constraints, **given)


def same(one: mmes.Result, other: mmes.Result) -> bool:
    return np.array_equal(one.x, other.x) and (one.fun, one.nfev) == (other.fun, other.nfev)


@pytest.mark.parametrize("strategy", ["active-cma", "adaptive", "mmes", "lm-ma", "sep-cma"])
def test_a_sphere_beside_a_wall_is_solved(strategy: str) -> None:
    result = run(strategy=strategy, max_evaluations=40_000)
    assert abs(result.fun - 2.0) < 1e-4
    assert result.constraint_violation is not None
    assert result.constraint_violation <= 1e-6
    assert result.active is not None
    assert result.active.tolist() == [True, True]


def test_the_result_says_what_holds_it_back() -> None:
    result = run(constraints=[above_one, lambda x: x[2] - 100.0])
    assert result.success
    assert result.reason.converged
    assert result.multipliers is not None
    assert result.active is not None
    assert np.allclose(result.multipliers, [2.0, 2.0, 0.0], atol=1e-4)
    assert result.active.tolist() == [True, True, False]


def test_without_constraints_nothing_is_said() -> None:
    result = run(constraints=None)
    assert result.constraint_violation is result.multipliers is result.active is None


def test_an_infeasible_problem_says_so() -> None:
    result = run(constraints=[above_one, lambda x: x[0] + 1.0])
    assert not result.success
    assert result.reason is StopReason.INFEASIBLE
    assert "g(x) <= 0" in result.message
    assert result.constraint_violation is not None
    assert 0.9 < result.constraint_violation < 1.5


def test_a_feasible_x_is_not_said_to_violate_constraints() -> None:
    """Of a constraint in steps: the centre violates it, and the best point does not."""
    result = mmes.minimize(
        lambda x: float((x - 1) @ (x - 1)),
        np.zeros(4),
        0.3,
        constraints=lambda x: float(x[0] + x[1] > 1.0),
        seed=1,
    )
    assert (result.reason, result.success) == (StopReason.INFEASIBLE, False)
    assert result.constraint_violation == 0.0
    assert "centre" in result.message
    assert "x does not" in result.message


def test_a_budget_that_ends_before_a_feasible_point_is_no_success() -> None:
    result = run(constraints=lambda x: 1e3 - x[0], max_evaluations=50)
    assert result.reason is StopReason.INFEASIBLE
    assert StopReason.MAX_EVALUATIONS in result.reasons
    assert result.message.startswith(StopReason.MAX_EVALUATIONS.sentence)
    assert result.nfev == 50


def test_only_feasible_points_reach_the_target() -> None:
    result = run(target=2.5)
    assert result.reason is StopReason.TARGET_REACHED
    assert result.success
    assert 2.0 - 1e-5 < result.fun <= 2.5
    assert result.x[:2].min() >= 1.0 - 1e-6
    missed = run(target=1.5, max_evaluations=5_000)
    assert not missed.success
    assert missed.fun > 1.9


def test_an_equality_is_met_within_its_tolerance() -> None:
    result = run(constraints=mmes.Equality(lambda x: x[0] - 2.0, 1e-3))
    assert result.success
    assert abs(result.fun - 4.0) < 1e-2
    assert result.multipliers is not None
    assert abs(result.multipliers[0] + 4.0) < 1e-3


def test_boxes_stay_exact() -> None:
    seen = []

    def fun(x: Any) -> float:
        seen.append(np.array(x))
        return sphere(x)

    result = run(fun, bounds=(0.5, 10.0))
    assert min(x.min() for x in seen) >= 0.5
    assert abs(result.fun - (2.0 + 6 * 0.25)) < 1e-3


def test_values_and_constraints_may_come_together() -> None:
    assert same(run(both, None, returns_constraints=True), run())


def test_a_vectorized_run_is_the_same() -> None:
    batch = run(
        lambda X: np.array([sphere(x) for x in X]), lambda X: 1.0 - X[:, :2], vectorized=True
    )
    assert same(batch, run())


def test_workers_and_executors_change_nothing() -> None:
    from concurrent.futures import ThreadPoolExecutor

    alone = run(max_generations=20)
    assert same(run(max_generations=20, workers=2), alone)
    with ThreadPoolExecutor(2) as executor:
        assert same(run(max_generations=20, workers=executor), alone)


def test_an_evaluator_of_ones_own_returns_rows() -> None:
    class Own:
        def evaluate(self, points: Any, generation: int, keep_going: Any) -> Any:
            return np.array([[sphere(x), *above_one(x)] for x in points])

        def close(self) -> None: ...

    own = run(None, None, workers=Own(), returns_constraints=True, max_generations=20)
    assert same(own, run(max_generations=20))
    with pytest.raises(ValueError, match="must return the constraints itself"):
        run(None, workers=Own())


def test_a_resumed_run_is_the_same_to_the_bit(tmp_path: Path) -> None:
    path, whole = tmp_path / "run.mmes", run(max_generations=60)
    run(max_generations=25, checkpoint=path)
    rest = mmes.resume(path, sphere, constraints=above_one, max_generations=60)
    assert same(rest, whole)
    assert rest.multipliers is not None
    assert whole.multipliers is not None
    assert np.array_equal(rest.multipliers, whole.multipliers)
    with pytest.raises(mmes.CheckpointError, match="it had constraints; give constraints= as then"):
        mmes.resume(path, sphere)


def test_a_checkpoint_without_constraints_takes_none(tmp_path: Path) -> None:
    path = tmp_path / "run.mmes"
    run(constraints=None, max_generations=5, checkpoint=path)
    with pytest.raises(mmes.CheckpointError, match="it had no constraints"):
        mmes.resume(path, sphere, constraints=above_one)


def test_a_constraint_that_fails_now_and_then_is_no_harm() -> None:
    rng = np.random.default_rng(3)

    def failing(x: Any) -> Any:
        return np.full(2, np.nan) if rng.random() < 0.05 else above_one(x)

    with pytest.warns(FailedEvaluationWarning):
        result = run(constraints=failing, noise="no")
    assert abs(result.fun - 2.0) < 1e-4
    assert result.failed > 0


def test_caught_exceptions_of_a_constraint_fail_the_candidate() -> None:
    calls = []

    def raising(x: Any) -> Any:
        calls.append(None)
        if len(calls) % 20 == 5:
            raise ArithmeticError("no")
        return above_one(x)

    with pytest.warns(FailedEvaluationWarning):
        result = run(
            constraints=raising, catch=(ArithmeticError,), max_evaluations=3_000, noise="no"
        )
    assert result.failed > 50
    assert abs(result.fun - 2.0) < 1e-2


def test_noise_in_a_constraint_is_averaged() -> None:
    rng = np.random.default_rng(1)

    def noisy(x: Any) -> Any:
        return above_one(x) + 0.01 * rng.standard_normal(2)

    result = run(constraints=noisy, max_evaluations=12_000)
    assert result.noisy
    assert result.fun_std == 0.0
    # Not the luckiest single observation, whose violation is 3 standard deviations.
    assert np.all(above_one(result.x) < 0.025)
    assert abs(result.fun - 2.0) < 0.15


@pytest.mark.slow
def test_restarts_keep_the_best_feasible_point() -> None:
    def wavy(x: Any) -> float:
        return float(np.sum(x * x - 4.0 * np.cos(5.0 * x) + 4.0))

    one = run(wavy, n=4)
    several = run(wavy, n=4, restarts=3)
    assert several.starts > 1
    assert several.fun <= one.fun + 1e-6


def test_the_start_point_counts_where_it_is_feasible() -> None:
    result = run(constraints=lambda x: 3.0 - x[:1], max_evaluations=1)
    assert result.nfev == 1
    assert result.fun == 72.0
    assert result.constraint_violation == 0.0


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_constraint_whose_curvature_outweighs_that_of_f_is_met(seed: int) -> None:
    """Its gradient vanishes at 0, where the search converged before the penalty factor had grown.

    Without a penalty factor above 2/9 the Lagrangian has no minimum at x_0 = 1.
    """
    result = run(constraints=lambda x: 1.0 - x[0] ** 3, n=4, seed=seed, max_evaluations=12_000)
    assert result.success
    assert abs(result.fun - 1.0) < 1e-5
    assert result.multipliers is not None
    assert abs(result.multipliers[0] - 2 / 3) < 0.01


def test_many_active_constraints_have_a_feasible_point() -> None:
    """Of 40 constraints in 8 variables every candidate violated one, up to the end."""
    rows = np.random.default_rng(1).standard_normal((40, 8))
    rows[:, 0] = -np.abs(rows[:, 0])  # a cone around the first axis, with its tip at 0
    result = mmes.minimize(
        lambda x: float(x[0] + 0.1 * np.sum(x * x)),
        np.full(8, 2.0),
        1.0,
        constraints=lambda x: 1e4 * (rows @ x),
        seed=1,
        max_evaluations=2_500,
    )
    assert result.constraint_violation is not None
    assert result.constraint_violation <= 1e-6
    assert abs(result.fun) < 1e-3


@pytest.mark.slow
def test_values_that_keep_moving_by_less_than_the_tolerance_have_converged() -> None:
    """The cube of Klee and Minty: its first variables matter less than the tolerance."""

    def g(X: Any) -> Any:
        before = np.column_stack((np.zeros(len(X)), X[:, :-1])) / 3.0
        return np.column_stack((before - X, X - 1.0 + before))

    result = mmes.minimize(
        lambda X: -X[:, -1],
        np.full(20, 0.5),
        0.2,
        constraints=g,
        vectorized=True,
        seed=1,
        max_evaluations=60_000,
    )
    assert result.success
    assert abs(result.fun + 1.0) < 1e-4
