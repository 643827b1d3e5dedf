"""Linear constraints are satisfied to rounding at the end of a run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mmes
from mmes.constraints import Constraints
from mmes.constraints.linear import exact_point

RNG = np.random.default_rng(1)
ROWS, MORE = RNG.standard_normal((2, 6)), RNG.standard_normal((3, 6))
EQUAL = SimpleNamespace(A=ROWS, lb=ROWS @ np.ones(6), ub=ROWS @ np.ones(6))
BELOW = SimpleNamespace(A=MORE, lb=-np.inf, ub=MORE @ np.ones(6) - 0.5)


def fun(x: Any) -> float:
    return float(np.sum((x - 0.3) ** 2) + x[0] ** 4)


def violation(x: Any) -> float:
    return max(np.abs(ROWS @ x - EQUAL.lb).max(), (MORE @ x - BELOW.ub).max())


@pytest.mark.parametrize("strategy", ["auto", "adaptive"])
@pytest.mark.parametrize("bounds", [None, (-0.5, 1.2)])
def test_a_run_ends_exactly_on_linear_constraints(strategy: str, bounds: Any) -> None:
    result = mmes.minimize(
        fun,
        np.full(6, 0.5),
        0.3,
        constraints=[EQUAL, BELOW],
        bounds=bounds,
        strategy=strategy,
        seed=1,
        max_evaluations=20_000,
    )
    assert result.success
    assert violation(result.x) < 1e-14
    assert result.constraint_violation is not None
    assert result.constraint_violation < 1e-14
    assert result.fun == fun(result.x)
    if bounds is not None:
        assert result.x.min() >= bounds[0]
        assert result.x.max() <= bounds[1]


def test_the_optimum_is_that_of_quadratic_programming() -> None:
    # min |x|^2 with a'x = 1: x = a / |a|^2.
    a = np.arange(1.0, 9.0)
    plane = SimpleNamespace(A=a[None], lb=1.0, ub=1.0)
    result = mmes.minimize(lambda x: float(x @ x), np.ones(8), 0.5, constraints=plane, seed=1)
    assert result.success
    assert abs(result.fun - 1.0 / (a @ a)) < 1e-12
    assert abs(a @ result.x - 1.0) < 1e-14


def test_other_constraints_still_count() -> None:
    plane = SimpleNamespace(A=np.ones((1, 4)), lb=2.0, ub=2.0)
    result = mmes.minimize(
        lambda x: float(x @ x), np.ones(4), 0.5, constraints=[plane, lambda x: 1.0 - x[0]], seed=1
    )
    assert result.success
    assert abs(result.fun - (1.0 + 3 / 9)) < 1e-5
    assert abs(result.x.sum() - 2.0) < 1e-15
    assert result.x[0] >= 1.0 - 1e-6


@pytest.mark.slow
def test_integers_keep_their_values() -> None:
    plane = SimpleNamespace(A=np.array([[1.0, 1.0, 3.0]]), lb=5.3, ub=9.0)
    result = mmes.minimize(
        lambda x: float(x @ x), np.ones(3), 1.0, constraints=plane, integers=[0], seed=1
    )
    assert result.x[0] == np.rint(result.x[0])
    assert result.x @ plane.A[0] >= 5.3 - 1e-14


def test_a_point_that_satisfies_them_is_left_alone() -> None:
    given = Constraints.checked([BELOW])
    assert given is not None
    assert exact_point(np.linalg.lstsq(MORE, BELOW.ub - 1.0)[0], given.parts) is None


def test_no_point_is_found_where_there_is_none() -> None:
    wrong = SimpleNamespace(A=np.ones((2, 2)), lb=[0.0, 1.0], ub=[0.0, 1.0])
    given = Constraints.checked([wrong])
    assert given is not None
    assert exact_point(np.zeros(2), given.parts) is None


def test_bounds_hold_where_the_nearest_point_is_outside() -> None:
    plane = Constraints.checked([SimpleNamespace(A=np.ones((1, 3)), lb=2.5, ub=2.5)])
    assert plane is not None
    found = exact_point(np.array([0.9, 0.2, 0.2]), plane.parts, (np.zeros(3), np.ones(3)))
    assert found is not None
    assert found.max() <= 1.0
    assert abs(found.sum() - 2.5) < 1e-15
