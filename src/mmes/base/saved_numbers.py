"""Numbers of checkpoints, checked as they are restored: those of runs, constraints, strategies."""

from __future__ import annotations

from typing import Any

import numpy as np

# Of generations and evaluations: far beyond what any run can reach, and safe in any arithmetic.
LARGEST_COUNT = 2**53


def checked_scalar(
    name: str, stored: Any, fresh: Any, low: float = -np.inf, high: float = np.inf
) -> Any:
    """Return a stored number: finite, of the expected type, and not negative if it is an int.

    It must also lie in `low` .. `high`.

    Raises TypeError or ValueError if it is not.
    """
    if isinstance(stored, bool) or not isinstance(
        stored, int if type(fresh) is int else float | int
    ):
        raise TypeError(f"{name} must be {type(fresh).__name__}, not {stored!r}")
    number = type(fresh)(stored)
    if number != number or abs(number) == np.inf:
        raise ValueError(f"{name} must be finite, not {stored!r}")
    if isinstance(number, int) and not 0 <= number < LARGEST_COUNT:
        raise ValueError(f"{name} must lie in 0..{LARGEST_COUNT - 1}, not {stored!r}")
    if not low <= number <= high:
        raise ValueError(f"{name} must lie in {low}..{high}, not {stored!r}")
    return number


def checked_value(name: str, stored: Any) -> float:
    """Return a stored value of an objective, which may be infinite.

    Raises TypeError or ValueError if it is not a number, or NaN.
    """
    if isinstance(stored, bool) or not isinstance(stored, float | int):
        raise TypeError(f"{name} must be a number, not {stored!r}")
    if stored != stored:
        raise ValueError(f"{name} must be a number, not nan")
    return float(stored)
