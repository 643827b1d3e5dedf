"""Checks of bounds: the user's bounds become (lower, upper), with one entry per variable."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.arrays import Vector
from mmes.base.tensors import to_numpy

# What can be computed with: a run may still grow by 1e20 before it counts as running away, and
# squares of that are still numbers.
LARGEST = 1e100
SMALLEST_STEP = 1e-100


def checked_bounds(bounds: Any, n: int | None) -> tuple[Vector, Vector] | None:
    """Return (lower, upper), one entry per variable each, or None if there are no bounds.

    Accepted are a tuple (lower, upper) of numbers or arrays, n pairs (low, high) with None for no
    bound, and an object with attributes `lb` and `ub` such as SciPy's Bounds. Infinite entries mean
    no bound. A tuple of two pairs for two variables is read as pairs, as in SciPy, unless only
    (lower, upper) gives a valid box. Without `n` the bounds say how many variables there are.
    """
    if bounds is None:
        return None
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        bounds = (bounds.lb, bounds.ub)
    if isinstance(bounds, tuple) and len(bounds) == 2 and not _two_pairs(bounds, n):
        sides = [_side(bounds[0], -np.inf), _side(bounds[1], np.inf)]
    else:
        try:
            pairs = [(low, high) for low, high in bounds]
        except (TypeError, ValueError):
            raise ValueError(
                "bounds must be a tuple (lower, upper), or a list with one pair (low, high) per "
                f"variable, not {short_repr(bounds)}"
            ) from None
        sides = [
            _side([pair[0] for pair in pairs], -np.inf),
            _side([pair[1] for pair in pairs], np.inf),
        ]
    if any(side.size == 0 for side in sides):
        raise ValueError(
            "bounds are empty; they must be a tuple (lower, upper), or a list with one pair "
            "(low, high) per variable"
        )
    if n is None:
        n = max(side.size for side in sides)
        if all(side.ndim == 0 for side in sides):
            raise ValueError(
                "without x0 the bounds must give the number of variables: one side must be an array"
            )
    for side, word in zip(sides, ("lower", "upper"), strict=True):
        if side.ndim > 1 or (side.ndim == 1 and side.size != n):
            raise ValueError(
                f"the {word} bounds must be one number or {n} of them, one per variable, "
                f"not of shape {side.shape}"
            )
    lower, upper = (np.ascontiguousarray(np.broadcast_to(side, (n,))) for side in sides)
    # Also true for NaN.
    if (at := first_of(~(lower <= upper))) is not None:
        raise ValueError(
            "a lower bound must not exceed the upper one, "
            f"but variable {at} has [{lower[at]}, {upper[at]}]"
        )
    for side, word in ((lower, "lower"), (-upper, "upper")):
        if (at := first_of(side > LARGEST)) is not None:
            raise ValueError(f"{word} bound {at} is beyond ±{LARGEST:g}")
    if (at := first_of((lower < upper) & (upper - lower < SMALLEST_STEP))) is not None:
        raise ValueError(
            f"bounds must be equal or at least {SMALLEST_STEP:g} apart, but variable {at} has "
            f"[{lower[at]}, {upper[at]}]"
        )
    # A bound that no candidate can reach is none.
    return np.where(lower < -LARGEST, -np.inf, lower), np.where(upper > LARGEST, np.inf, upper)


def checked_box(bounds: Any, n: int | None, who: str) -> tuple[Vector, Vector]:
    """Return copies of (lower, upper) for an algorithm that needs a box, finite on all sides."""
    box = checked_bounds(bounds, n)
    if box is None:
        raise ValueError(f"{who} searches a box: give bounds=(lower, upper), finite on all sides")
    lower, upper = (np.array(side) for side in box)
    if (at := first_of(~(np.isfinite(lower) & np.isfinite(upper)))) is not None:
        raise ValueError(
            f"{who} searches a box: the bounds must be finite on all sides and at most "
            f"{LARGEST:g} in size, but variable {at} has [{lower[at]}, {upper[at]}]"
        )
    return lower, upper


def checked_inside(x: Vector, lower: Vector, upper: Vector, name: str = "x0") -> None:
    """Raise ValueError if a start point lies outside the box."""
    if (at := first_of((x < lower) | (x > upper))) is not None:
        raise ValueError(
            f"{name} must lie inside the bounds, but {name}[{at}] = {x[at]} "
            f"is outside [{lower[at]}, {upper[at]}]"
        )


def first_of(bad: NDArray[np.bool_]) -> int | None:
    """Return the first variable that is marked, None if there is none."""
    return int(bad.argmax()) if bad.any() else None


def _two_pairs(bounds: tuple[Any, Any], n: int | None) -> bool:
    """Return whether a tuple that could be (lower, upper) is read as one pair per variable."""
    listed = all(isinstance(side, list | tuple) and len(side) == 2 for side in bounds)
    if not listed or n not in (None, 2):
        return False
    try:
        first, second = ([_side(row[0], -np.inf), _side(row[1], np.inf)] for row in bounds)
        across = [
            (_side(low, -np.inf), _side(high, np.inf)) for low, high in zip(*bounds, strict=True)
        ]
    except TypeError:  # no numbers: the message comes later
        return False
    pairs_fit = all((low <= high).all() for low, high in (first, second))
    pairs_wide = all((low < high).all() for low, high in (first, second))
    sides_wide = all((low < high).all() for low, high in across)
    return pairs_fit and (pairs_wide or not sides_wide)


def _side(values: Any, missing: float) -> Vector:
    if values is None:
        values = missing
    elif isinstance(values, list | tuple):
        values = [missing if value is None else value for value in values]
    # A copy: the user's own may change, and one that maps a checkpoint would keep the file.
    return np.array(real_array(values, "bounds"), dtype=np.float64)


def real_array(values: Any, name: str) -> NDArray[Any]:
    """Return an array of real numbers, or raise TypeError with its name."""
    try:
        array = np.asarray(to_numpy(values))
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold real numbers, not {short_repr(values)}")
    return array


def short_repr(value: Any) -> str:
    """Return a value and its type for an error message, shortened if it is long."""
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} (a {type(value).__name__})"
