"""What users give as constraints: forms, signs, errors."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mmes
from mmes.constraints import Constraints


def measured(given: Any, x: list[float], vectorized: bool = False, fun: Any = None) -> Any:
    found = Constraints.checked(given)
    assert found is not None
    objective = found.objective(fun or (lambda x: float(np.sum(x))), vectorized)
    row = objective(np.array(x)).row
    return row[len(found.parts) :].tolist()


def first(x: Any) -> Any:
    return x[0] - 1.0


def test_a_callable_is_feasible_where_it_is_not_positive() -> None:
    assert measured(first, [3.0, 0.0]) == [2.0]


def test_a_dict_of_scipy_has_the_other_sign() -> None:
    assert measured({"type": "ineq", "fun": first}, [3.0, 0.0]) == [-2.0]
    given = {"type": "eq", "fun": lambda x, a: x[0] - a, "args": (1.0,)}
    assert measured(given, [3.0, 0.0]) == [2.0]


def test_scipys_objects_are_known_by_their_attributes() -> None:
    limits = SimpleNamespace(fun=lambda x: x, lb=[0.0, 1.0, -np.inf], ub=[2.0, 1.0, 5.0])
    # The equality first, then upper limits, then lower ones.
    assert measured(limits, [3.0, 4.0, 6.0]) == [3.0, 1.0, 1.0, -3.0]
    linear = SimpleNamespace(A=[[1.0, 2.0]], lb=-np.inf, ub=4.0)
    assert measured(linear, [1.0, 2.0]) == [1.0]


def test_several_constraints_follow_one_another() -> None:
    given = [first, mmes.Equality(lambda x: [x[1], x[0]])]
    found = Constraints.checked(given)
    assert found is not None
    row = found.objective(lambda x: 0.0, False)(np.array([3.0, 4.0])).row
    f, g, counts = found.split(row[None])
    assert (f.tolist(), g.tolist(), counts) == ([0.0], [[2.0, 4.0, 3.0]], [1])
    assert found.equalities(3, counts)[0].tolist() == [False, True, True]


def test_a_vectorized_constraint_gives_a_row_per_point() -> None:
    found = Constraints.checked([lambda X: X[:, 0] - 1.0, {"type": "ineq", "fun": first}])
    assert found is not None
    rows = found.objective(lambda X: X.sum(axis=1), True)(np.array([[3.0, 0.0], [1.0, 1.0]]))
    assert [row.row.tolist() for row in rows] == [[3.0, 1.0, 2.0, -2.0], [2.0, 1.0, 0.0, -0.0]]


def test_a_constrained_objective_travels_to_workers() -> None:
    found = Constraints.checked(first)
    assert found is not None
    objective = pickle.loads(pickle.dumps(found.objective(np.sum, False)))
    assert objective(np.array([3.0, 0.0])).row.tolist() == [3.0, 2.0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3.0, "must be a function g"),
        ([first, "x"], r"constraints\[1\] must be a function g"),
        ({"type": "less", "fun": first}, "'type' \\('ineq' or 'eq'\\)"),
        (SimpleNamespace(fun=first, lb=2.0, ub=1.0), "contradicts itself"),
        (SimpleNamespace(fun=first, lb=np.nan, ub=1.0), "must not be NaN"),
    ],
)
def test_what_is_no_constraint_is_refused(given: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        Constraints.checked(given)


def test_an_equality_has_a_positive_tolerance() -> None:
    with pytest.raises(ValueError, match="tol of Equality must be a number > 0, not 0"):
        mmes.Equality(first, 0)
    with pytest.raises(TypeError, match="must be callable"):
        mmes.Equality(3)  # type: ignore[arg-type]


def minimized(**more: Any) -> mmes.Result:
    given: dict[str, Any] = {"seed": 1, "max_evaluations": 200} | more
    return mmes.minimize(lambda x: float(x @ x), np.full(4, 3.0), 1.0, **given)


def test_a_changing_number_of_values_is_refused() -> None:
    with pytest.raises(ValueError, match="the same number of values at every point"):
        minimized(constraints=lambda x: np.zeros(1 + int(x[0] > 3.0)))


def test_contradictory_linear_constraints_are_found_before_the_run() -> None:
    pytest.importorskip("scipy")
    given = [SimpleNamespace(A=np.ones((1, 4)), lb=5.0, ub=9.0)]
    given.append(SimpleNamespace(A=np.ones((1, 4)), lb=-np.inf, ub=4.0))
    with pytest.raises(ValueError, match="contradict each other: no point satisfies all of them"):
        minimized(constraints=given)
    with pytest.raises(ValueError, match="no point satisfies all of them within the bounds"):
        mmes.minimize(lambda x: 0.0, np.zeros(4), 1.0, constraints=given[0], bounds=(-4.0, 1.0))


def test_a_matrix_has_a_column_per_variable() -> None:
    with pytest.raises(ValueError, match="must have 4 columns, one per variable, not 3"):
        minimized(constraints=SimpleNamespace(A=np.ones((1, 3)), lb=0.0, ub=1.0))


def test_competitors_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be combined with the strategy 'decc-g'"):
        minimized(constraints=first, strategy="decc-g", bounds=(-5.0, 5.0))


def test_an_objective_that_returns_constraints_returns_a_pair() -> None:
    with pytest.raises(mmes.EvaluationError, match=r"must return \(value, constraints\)"):
        minimized(returns_constraints=True)


def test_words_are_no_constraints() -> None:
    with pytest.raises(mmes.EvaluationError, match="constraints must return real numbers"):
        minimized(constraints=lambda x: "no")
