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
    with pytest.raises(TypeError, match=r"must return \(value, constraints\)"):
        minimized(returns_constraints=True)


REFUSED: dict[str, tuple[Any, str]] = {
    "words": (lambda x: "no", "must return real numbers"),
    "nothing": (lambda x: None, "must return real numbers, but returned None"),
    "bool": (lambda x: x[0] < 1.0, "must return real numbers, but returned"),
    "bool in a list": (lambda x: [True], "constraints must return one real number"),
    "complex": (lambda x: x * 1j, "must return real numbers, but returned"),
    "matrix": (lambda x: np.ones((1, 2)), r"must return a vector, but returned .* \(1, 2\)"),
    "no values": (lambda x: [], "constraints must return at least one value"),
    "limits": (SimpleNamespace(fun=lambda x: x, lb=[1, 2], ub=9), "2 limits, but .* 4 values"),
}


@pytest.mark.parametrize("workers", [None, 1])
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_value_is_refused_even_if_errors_are_caught(name: str, workers: Any) -> None:
    """It was an error of the objective, and a failed evaluation with `catch`."""
    given, said = REFUSED[name]
    if workers and name != "words":
        return  # one of them tells
    with pytest.raises((TypeError, ValueError), match=said) as caught:
        minimized(constraints=given, catch=(Exception,), workers=workers)
    assert caught.value.result.nfev == 0  # type: ignore[attr-defined]
    assert "mmes: this was candidate 0 of generation 0" in caught.value.__notes__


VECTORIZED: dict[str, tuple[Any, str]] = {
    "rows": (lambda X: X[:0, :1], r"shape \(1, m\), one row per point, .* \(0, 1\)"),
    "one number": (lambda X: 1.0, r"must return an array of shape \(1, m\)"),
    "one point": (lambda x: 1 - x[0], r"but returned one of shape \(4,\)"),
    "bool": (lambda X: X < 1.0, "must return real numbers, but returned"),
    "no values": (lambda X: X[:, :0], "must return at least one value"),
    "lengths": (
        {"type": "ineq", "fun": lambda x: np.zeros(1 + int(x[0] > 3.0))},
        "the same number of values at every point, not 1 and 2",
    ),
}


@pytest.mark.parametrize("name", VECTORIZED)
def test_what_is_no_table_is_refused(name: str) -> None:
    given, said = VECTORIZED[name]
    with pytest.raises((TypeError, ValueError), match=said) as caught:
        mmes.minimize(
            lambda X: (X**2).sum(axis=1),
            np.full(4, 3.0),
            1.0,
            constraints=given,
            vectorized=True,
            seed=1,
        )
    assert caught.value.result is not None  # type: ignore[attr-defined]


def test_a_table_may_be_masked_or_a_list() -> None:
    for given in (
        lambda X: np.ma.masked_array(X[:, :2], [[False, True], [False, False]]),
        lambda X: [[row[0], np.nan if row[0] == 3.0 else row[1]] for row in X],
    ):
        found = Constraints.checked(given)
        assert found is not None
        rows = found.objective(lambda X: X.sum(axis=1), True)(np.array([[3.0, 0.0], [1.0, 1.0]]))
        assert np.isnan(rows[0].row[2])
        assert rows[1].row.tolist() == [2.0, 1.0, 1.0]


def test_arrays_that_are_used_again_keep_their_values() -> None:
    buffer = np.zeros(1)

    def filled(value: float) -> Any:
        buffer[0] = value
        return buffer

    found = Constraints.checked([lambda x: filled(x[0]), {"type": "eq", "fun": first}])
    assert found is not None
    row = found.objective(lambda x: filled(7.0), False)(np.array([3.0, 0.0])).row
    assert row.tolist() == [7.0, 1.0, 3.0, 2.0]


def test_dicts_are_read_as_scipy_reads_them() -> None:
    given = {"type": "INEQ", "fun": lambda x, a, b: x[0] - a * b, "args": [2.0, 1.0], "jac": None}
    assert measured(given, [3.0, 0.0]) == [-1.0]


def test_what_limits_nothing_is_no_constraint() -> None:
    free = SimpleNamespace(A=np.ones((1, 4)), lb=-np.inf, ub=np.inf)
    assert Constraints.checked([free]) is None
    found = Constraints.checked([free, first])
    assert found is not None
    assert [part.name for part in found.parts] == ["constraints[1]"]
    assert minimized(constraints=[free]).multipliers is None
    assert minimized(constraints=[]).multipliers is None


@pytest.mark.parametrize("entry", [np.nan, np.inf])
def test_matrices_and_limits_make_sense(entry: float) -> None:
    with pytest.raises(ValueError, match="the matrix of constraints must be finite"):
        Constraints.checked(SimpleNamespace(A=np.full((1, 4), entry), lb=0.0, ub=1.0))
    with pytest.raises(ValueError, match="cannot be satisfied: a lower limit is inf"):
        Constraints.checked(SimpleNamespace(fun=first, lb=np.inf, ub=np.inf))


def test_a_factory_that_raises_ends_the_run_before_it_begins() -> None:
    """With `catch` every evaluation failed instead."""

    def broken() -> Any:
        raise OSError("no licence")

    with pytest.raises(mmes.EvaluationError, match="the factory broken raised OSError"):
        mmes.minimize(mmes.Factory(broken), np.ones(4), 1.0, constraints=first, catch=(Exception,))
