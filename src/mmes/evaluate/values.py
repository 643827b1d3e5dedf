"""Calls of the objective, and conversion of its return value to a float or an error."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from mmes.base.arrays import Vector
from mmes.base.options import is_real
from mmes.base.tensors import to_numpy
from mmes.errors import in_words

_REAL_KINDS = "fiu"
_FLOAT64 = np.dtype(np.float64)

RETURNED = "{} must return {{}}, one per row, but returned {{}}"
"""The message about a wrong number of values, with the name of who returned them first."""


# Forks on the way from the first process to this one. Asking for the process number takes longer
# than all the rest of a call.
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


def answer_of(objective: Callable[[Any], Any], x: Any) -> Any:
    """Return what the objective returns for x.

    If it forks and the child process returns too, the child ends here: otherwise it would continue
    as a second copy of the run, with the same pipes and the same checkpoint.
    """
    before = _forks
    try:
        return objective(x)
    finally:
        if _forks != before:
            _end_child()


def _end_child() -> None:
    with contextlib.suppress(OSError):
        os.write(
            2,
            b"mmes: the objective called os.fork() and returned in the child process too; "
            b"the child ends here. End it with os._exit() inside the objective\n",
        )
    os._exit(1)


class Measured:
    """The values of one point with constraints: `row` has that of the objective first."""

    __slots__ = ("row",)

    def __init__(self, row: Vector):
        self.row = row


class Refused:
    """In place of the values of points with constraints: why something returned is no value.

    The error is raised where values are checked, and not where the objective is called: `catch`
    would take it for a failure there.
    """

    __slots__ = ("error",)

    def __init__(self, error: Exception):
        self.error = error


def as_value(answer: Any) -> Any:
    """Return what an objective returned for one point as a float.

    Values with constraints (`Measured`) were checked before and are returned unchanged.

    Real numbers and real arrays of one element are accepted, including NaN and infinities, which
    can be ranked. Anything else is far more likely a mistake than a value: TypeError is raised for
    None, a string, a bool, a complex number or another object, and ValueError for an array that
    does not have exactly one element and an integer that does not fit into a float.
    """
    if type(answer) is float or type(answer) is Measured:
        return answer
    if type(answer) is Refused:
        raise answer.error
    with _conversion(answer):
        return _converted(answer)


def _converted(answer: Any, whose: str = "the objective") -> float:
    if is_real(answer):
        return _as_float(answer, whose)
    array = _as_array(answer, "one real number", whose)
    if array.size != 1:
        raise ValueError(
            f"{whose} must return one real number per point, "
            f"but returned an array of shape {array.shape}"
        )
    return float(array.reshape(())) if array.ndim == 0 else float(array.ravel()[0])


def as_values(answer: Any, count: int, message: str = RETURNED.format("the objective")) -> Vector:
    """Return what a vectorized objective returned for `count` points as a fresh float64 array.

    Shapes (count,), (count, 1) and (1, count) are accepted, and any sequence of single values.
    Errors are those of `as_value`, and ValueError if their number is not `count`: `message` with
    the expected and the actual number.
    """
    if type(answer) is np.ndarray and answer.dtype is _FLOAT64 and answer.shape == (count,):
        return answer.copy()
    if type(answer) is Refused:
        raise answer.error
    with _conversion(answer):
        return _all_converted(answer, count, message)


def _all_converted(answer: Any, count: int, message: str) -> Vector:
    answer = to_numpy(answer)
    if isinstance(answer, list | tuple):
        if len(answer) != count:
            raise ValueError(message.format(_values(count), len(answer)))
        return together([as_value(item) for item in answer])
    array = _as_array(answer, f"{count} real numbers")
    if array.shape not in ((count,), (count, 1), (1, count)):
        shape = "a single number" if array.ndim == 0 else f"an array of shape {array.shape}"
        expected = f"{_values(count)} in an array of shape ({count},)"
        raise ValueError(message.format(expected, shape))
    return array.astype(np.float64).reshape(count)


@contextlib.contextmanager
def _conversion(answer: Any) -> Iterator[None]:
    """Turn any exception during the conversion into a TypeError about the returned object."""
    try:
        yield
    except (TypeError, ValueError):
        raise
    except Exception as error:
        raise TypeError(
            f"the objective must return a real number, but the {type(answer).__name__} it "
            f"returned raised {type(error).__name__} when it was converted: {in_words(error)}"
        ) from error


def as_vector(answer: Any, whose: str) -> Vector:
    """Return one or several real numbers as a new vector; errors name `whose` they are.

    Raises TypeError or ValueError if they are not real numbers, or an array with several axes.
    """
    if isinstance(answer, list | tuple):
        with _conversion(answer):
            return np.array([_converted(item, whose) for item in answer], dtype=np.float64)
    array = _as_array(answer, "real numbers", whose)
    if array.ndim > 1:
        raise ValueError(
            f"{whose} must return a vector, but returned an array of shape {array.shape}"
        )
    return array.astype(np.float64).reshape(-1)


def as_table(answer: Any, count: int, whose: str) -> Vector:
    """Return one or several real numbers for each of `count` points as a table, a row per point.

    Errors as in `as_vector`; also if the number of rows is not `count`, or they differ in length.
    """
    answer = to_numpy(answer)
    if isinstance(answer, list | tuple):
        rows = [as_vector(row, whose) for row in answer]
        _check_widths(whose, {row.size for row in rows})
        table = np.array(rows)
    else:
        table = _as_array(answer, "real numbers", whose)
        if table.shape == (count,):
            table = table[:, None]
    if table.ndim != 2 or len(table) != count:
        raise ValueError(
            f"{whose} must return an array of shape ({count}, m), one row per point, but returned "
            f"one of shape {table.shape}"
        )
    return table.astype(np.float64)


def as_rows(answer: Any) -> Vector:
    """Return a table of values, one row per point: of the objective, then of the constraints.

    A vector of NaN stands for points that all failed. Raises TypeError or ValueError if it is not
    such a table.
    """
    table = _as_array(answer, "an array with one row per point", "the evaluator")
    if table.ndim == 1 and np.isnan(table).all():
        return table.astype(np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(
            "with constraints the evaluator must return one row per point, the value and then the "
            f"constraints, not an array of shape {table.shape}"
        )
    return table.astype(np.float64)


def joined(parts: Sequence[Vector]) -> Vector:
    """Return the values of several calls as one array; a call that failed has no rows."""
    widths = {part.shape[1] for part in parts if part.ndim == 2}
    if not widths:
        return np.concatenate([np.empty(0), *parts])
    _check_widths("the constraints", widths, 1)
    failed = (np.full((part.size, *widths), np.nan) for part in parts if part.ndim == 1)
    return np.concatenate([part if part.ndim == 2 else next(failed) for part in parts])


def together(values: Sequence[Any] | NDArray[Any]) -> Vector:
    """Return the values of points as one array: a vector, or rows if a point has several values.

    All entries in the row of a failed point are NaN.

    Raises ValueError if the rows have different lengths.
    """
    widths = {value.row.size for value in values if type(value) is Measured}
    if not widths:
        return np.array(values, dtype=np.float64)
    _check_widths("the constraints", widths, 1)
    table = np.full((len(values), *widths), np.nan)
    for row, value in zip(table, values, strict=True):
        if type(value) is Measured:
            row[:] = value.row
    return table


def _check_widths(whose: str, widths: set[int], besides: int = 0) -> None:
    """Raise unless all points have as many values; `besides` are not those of the constraints."""
    if len(widths) > 1:
        counts = " and ".join(str(width - besides) for width in sorted(widths))
        raise ValueError(
            f"{whose} must return the same number of values at every point, not {counts}"
        )


def _as_array(answer: Any, expected: str, whose: str = "the objective") -> NDArray[Any]:
    array = None
    answer = to_numpy(answer)
    if not isinstance(answer, bool | np.bool_):
        # Tensors and other array-likes announce themselves; a bare object or a generator does not.
        if isinstance(answer, np.ma.MaskedArray) and answer.dtype.kind in _REAL_KINDS:
            array = np.ma.filled(answer.astype(np.float64), np.nan)  # a masked value is not a value
        elif hasattr(answer, "__array__"):
            array = np.asarray(answer)
        elif isinstance(answer, SupportsFloat):
            array = np.asarray(_as_float(answer, whose))
    if array is None or array.dtype.kind not in _REAL_KINDS:
        kind = (
            type(answer).__name__ if array is None else f"{type(answer).__name__} of {array.dtype}"
        )
        raise TypeError(
            f"{whose} must return {expected}, but returned {_in_text(answer)} (a {kind})"
        )
    return array


def _values(count: int) -> str:
    return f"{count} value{'' if count == 1 else 's'}"


def _as_float(answer: SupportsFloat, whose: str = "the objective") -> float:
    try:
        return float(answer)
    except OverflowError:
        kind = "an integer" if isinstance(answer, int) else f"a {type(answer).__name__}"
        raise ValueError(
            f"{whose} must return a real number, but returned {kind} that does not fit into a float"
        ) from None


def _in_text(answer: Any) -> str:
    try:
        text = repr(answer)
    except Exception:  # a user's class, or an integer with too many digits
        return "something that cannot be shown"
    return text if len(text) <= 60 else text[:57] + "..."
