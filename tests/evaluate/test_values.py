"""The door for an objective's answers."""

from __future__ import annotations

import decimal
import fractions

import numpy as np
import pytest

import mmes
from mmes.evaluate.values import as_value, as_values

GOOD = [
    (1.5, 1.5),
    (2, 2.0),
    (np.float32(0.5), 0.5),
    (np.int8(-3), -3.0),
    (np.array(4.0), 4.0),
    (np.array([5.0]), 5.0),
    (np.array([[6]]), 6.0),
    (fractions.Fraction(1, 4), 0.25),
    (decimal.Decimal("0.5"), 0.5),
    (float("inf"), np.inf),
    (float("-inf"), -np.inf),
]
BAD = [
    (None, TypeError, "None"),
    ("1.0", TypeError, "'1.0'"),
    (b"1", TypeError, "b'1'"),
    (True, TypeError, "True"),
    (np.bool_(False), TypeError, "False"),
    (1 + 2j, TypeError, "complex"),
    (np.array([1 + 2j]), TypeError, "complex128"),
    (np.array(["a"]), TypeError, "<U1"),
    (np.array([None]), TypeError, "object"),
    ([1.0], TypeError, r"\[1.0\]"),
    ((1.0, 2.0), TypeError, "tuple"),
    ({}, TypeError, "dict"),
    (object(), TypeError, "object"),
    (np.array([1.0, 2.0]), ValueError, r"shape \(2,\)"),
    (np.empty(0), ValueError, r"shape \(0,\)"),
    (10**400, ValueError, "returned an integer that does not fit into a float"),
    (fractions.Fraction(10**400), ValueError, "returned a Fraction that does not fit into a float"),
    (np.array([10**400]), TypeError, "object"),
]


@pytest.mark.parametrize(("answer", "expected"), GOOD, ids=repr)
def test_values_are_taken(answer, expected: float) -> None:
    found = as_value(answer)
    assert type(found) is float
    assert found == expected


def test_nan_is_a_value() -> None:
    assert np.isnan(as_value(np.nan))


@pytest.mark.parametrize(
    "answer",
    [np.ma.masked, np.ma.array(-9.0, mask=True), np.ma.array([-9], mask=[True])],
    ids=["constant", "scalar", "integer"],
)
def test_a_masked_value_is_nan(answer) -> None:
    """Failed before: it was 0.0, or the number that the mask hides."""
    assert np.isnan(as_value(answer))
    assert np.isnan(as_values([answer, 1.0], 2)[0])
    assert as_value(np.ma.array([2.0])) == 2.0


def test_masked_values_of_a_batch_are_nan() -> None:
    found = as_values(np.ma.array([1, -9, 3], mask=[False, True, False]), 3)
    np.testing.assert_array_equal(found, [1.0, np.nan, 3.0])
    with pytest.raises(TypeError, match="bool"):
        as_value(np.ma.array([True], mask=[True]))


@pytest.mark.parametrize(("answer", "error", "named"), BAD)
def test_anything_else_is_named_and_refused(answer, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        as_value(answer)


@pytest.mark.parametrize(
    "answer",
    [
        [1, 2.0, np.float64(3)],
        (1, 2, 3),
        np.array([1, 2, 3]),
        np.array([[1.0], [2.0], [3.0]]),
        np.array([[1.0, 2.0, 3.0]]),
        [np.array([1.0]), np.array(2.0), 3],
    ],
    ids=["list", "tuple", "integers", "column", "row", "arrays"],
)
def test_batches_are_taken(answer) -> None:
    found = as_values(answer, 3)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("answer", "error", "named"),
    [
        ([1.0, 2.0], ValueError, "the objective must return 3 values, one per row, but returned 2"),
        ([1.0, 2.0, 10**400], ValueError, "an integer that does not fit into a float"),
        (np.zeros(4), ValueError, r"shape \(4,\)"),
        (np.zeros((3, 2)), ValueError, r"shape \(3, 2\)"),
        (1.0, ValueError, "array of shape .3,., one per row, but returned a single number"),
        (None, TypeError, "None"),
        ([1.0, None, 2.0], TypeError, "None"),
        ([1.0, "2", 2.0], TypeError, "'2'"),
        (np.array([True, False, True]), TypeError, "bool"),
        ("abc", TypeError, "'abc'"),
        (np.zeros(3, dtype=complex), TypeError, "complex128"),
    ],
    ids=lambda x: repr(x)[:30],
)
def test_bad_batches_are_named_and_refused(answer, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=named):
        as_values(answer, 3)


class Trouble:
    def __float__(self) -> float:
        raise RuntimeError("the file is gone")


class TroubleOfArrays:
    def __array__(self, *arguments, **options) -> None:
        raise OSError("the file is gone")


@pytest.mark.parametrize("answer", [Trouble(), TroubleOfArrays()])
def test_what_raises_when_it_is_converted_is_refused(answer) -> None:
    """Failed before: the error came through as it was, without `.result`."""
    words = f"the {type(answer).__name__} it returned raised .*Error when it was converted: the"
    with pytest.raises(TypeError, match=words):
        as_value(answer)
    with pytest.raises(TypeError, match="when it was converted: the file is gone"):
        as_values([1.0, answer], 2)
    with pytest.raises(TypeError, match=words) as caught:
        mmes.minimize(lambda x: answer if x[0] != 1 else 1.0, np.ones(3), 1.0, seed=1)
    assert caught.value.result.nfev == 1


def test_what_cannot_be_shown_is_refused_all_the_same() -> None:
    """Python refuses to write integers of so many digits."""
    with pytest.raises(TypeError, match="returned something that cannot be shown"):
        as_value(np.array([10**9999]))


def test_one_value_is_singular() -> None:
    with pytest.raises(ValueError, match="must return 1 value in an array of shape"):
        as_values(3.0, 1)


def test_a_batch_is_a_copy() -> None:
    mine = np.zeros(3)
    as_values(mine, 3)[0] = 7
    assert mine[0] == 0


def test_an_objective_that_changes_x_is_told_to_copy_it() -> None:
    """Failed before: the message of numpy stood alone."""

    def sets(x):
        x[0] = 0.0
        return float(x @ x)

    with pytest.raises(mmes.EvaluationError, match=r"read-only; if .* a copy: x = x\.copy\(\)"):
        mmes.minimize(sets, [1.0, 2.0], 0.5)


def test_an_error_at_a_later_point_names_the_option_that_goes_on() -> None:
    """Failed before: nothing said that there is `catch`."""

    def fails(x):
        if x[0] < 0.5:
            raise ArithmeticError("no solution")
        return float(x @ x)

    with pytest.raises(mmes.EvaluationError, match=r"no solution; .* give catch=ArithmeticError$"):
        mmes.minimize(fails, [9.0, 9.0], 0.5, seed=1)


def test_an_error_at_the_first_points_is_a_mistake_rather() -> None:
    def broken(x):
        return 1 / 0

    with pytest.raises(mmes.EvaluationError) as caught:
        mmes.minimize(broken, [9.0, 9.0], 0.5, seed=1)
    assert str(caught.value).endswith(": division by zero")
