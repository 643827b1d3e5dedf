"""The one door through which an objective's answers come in: a float, or an error that names what came."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

_REAL_KINDS = "fiu"


def as_value(answer: Any) -> float:
    """Return what an objective returned for one point as a float.

    Real numbers and real arrays of one element are taken; NaN and infinities too, since they rank. Anything else is an
    error: it is far more likely a slip than a value.

    Raises
    ------
    TypeError
        For None, a string, a bool, a complex number or another object.
    ValueError
        For an array that does not have exactly one element.
    """
    if type(answer) is float:
        return answer
    if isinstance(answer, numbers.Real) and not isinstance(answer, bool | np.bool_):
        return float(answer)
    array = _as_array(answer, "one real number")
    if array.size != 1:
        raise ValueError(
            f"the objective must return one real number a point, but returned an array of shape {array.shape}"
        )
    return float(array.reshape(())) if array.ndim == 0 else float(array.ravel()[0])


def as_values(answer: Any, count: int) -> NDArray[np.float64]:
    """Return what a vectorized objective returned for `count` points as a fresh float64 array.

    Shapes (count,), (count, 1) and (1, count) are taken, and any sequence of single values.

    Raises
    ------
    TypeError, ValueError
        As `as_value`; also if the number of values is not `count`.
    """
    if isinstance(answer, list | tuple):
        if len(answer) != count:
            raise ValueError(f"{count} values are expected, but {len(answer)} came")
        return np.array([as_value(item) for item in answer], dtype=np.float64)
    array = _as_array(answer, f"{count} real numbers")
    if array.shape not in ((count,), (count, 1), (1, count)):
        raise ValueError(
            f"{count} values are expected, an array of shape ({count},), but one of shape {array.shape} came"
        )
    return array.astype(np.float64).reshape(count)


def _as_array(answer: Any, expected: str) -> NDArray[Any]:
    refused = answer is None or isinstance(answer, str | bytes | complex | bool | np.bool_)
    # Tensors and other array-likes announce themselves; a bare object or a generator does not.
    array = None if refused or not hasattr(answer, "__array__") else np.asarray(answer)
    if array is None and hasattr(answer, "__float__") and not refused:
        array = np.asarray(float(answer))
    if array is None or array.dtype.kind not in _REAL_KINDS:
        kind = (
            type(answer).__name__ if array is None else f"{type(answer).__name__} of {array.dtype}"
        )
        shown = repr(answer)
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        raise TypeError(
            f"the objective must return {expected}, but returned {shown} (of type {kind})"
        )
    return array
