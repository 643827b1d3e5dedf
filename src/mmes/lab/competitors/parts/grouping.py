"""Groups of variables: random ones, or by differential grouping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmes.base.randomness import Stream
from mmes.evaluate.values import as_value, as_values
from mmes.lab.competitors.parts.draws import Draws, Indices, Vector
from mmes.lab.competitors.parts.setting import WORST, Asking, told
from mmes.spaces.bounds import checked_box

ROWS = 256
"""Points asked at a time: few enough for the cache, enough to hide the cost of a call."""


def random_groups(draws: Draws, n: int, size: int, step: int) -> list[Indices]:
    """Return the variables in random order, cut into groups of `size` (the last may be smaller)."""
    order = draws.permutation(n, Stream.GROUPS, step)
    return [order[first : first + size] for first in range(0, n, size)]


@dataclass(frozen=True)
class Grouping:
    """What differential grouping found."""

    # The groups of variables that interact, each with at least two, in increasing order.
    groups: list[Indices]
    separable: Indices  # The variables that interact with no other.
    evaluations: int  # Number of evaluations.

    @property
    def parts(self) -> list[Indices]:
        """The groups and, if there are any, the separable variables as one more group."""
        return [*self.groups, self.separable] if self.separable.size else self.groups


def differential_grouping(
    fun: Callable[[Any], Any],
    bounds: Any,
    *,
    epsilon: float = 1e-3,
    rounding: float = 0.0,
    vectorized: bool = False,
) -> Grouping:
    """Find which variables of a function interact (Omidvar, Li, Mei, Yao 2014).

    Two variables i and j interact if the effect of moving i from its lower to its upper bound
    changes by more than `epsilon` when j moves from its lower bound to the middle of the box.

    Parameters
    ----------
    fun : callable
        The function, as `mmes.minimize` takes it.
    bounds : tuple or list
        (lower, upper), finite, one entry per variable on at least one side; or one pair per
        variable.
    epsilon : float
        The threshold, an absolute difference of function values. It does not scale with the
        function: a weak interaction is overlooked.
    rounding : float
        A difference must also exceed this fraction of the largest of the four values from which it
        is computed. With 0, as published, the rounding of large values looks like an interaction;
        1e-14 avoids this.
    vectorized : bool
        Whether `fun` takes a (k, n) array and returns k values.

    Returns
    -------
    Grouping
        The groups, the separable variables, and the evaluations spent: 2 for each group or
        separable variable, and 2 for each pair that was tested; n^2 + n if all are separable.

    Raises
    ------
    ValueError
        If the bounds are not finite.
    """
    lower, upper = checked_box(bounds, None, "differential_grouping")

    def values(points: Vector) -> Vector:
        points.flags.writeable = False
        found = (
            as_values(fun(points), len(points))
            if vectorized
            else np.array([as_value(fun(point)) for point in points])
        )
        return np.where(np.isnan(found), WORST, np.clip(found, -WORST, WORST))

    return told(group_by_differences(lower, upper, epsilon, rounding), values)


def group_by_differences(
    lower: Vector, upper: Vector, epsilon: float, rounding: float = 0.0
) -> Asking[Grouping]:
    """Differential grouping as a generator of points; see `differential_grouping`."""
    left = np.arange(lower.size)
    middle = 0.5 * lower + 0.5 * upper
    groups: list[Indices] = []
    separable: list[int] = []
    evaluations = 0
    while left.size:
        first, left = left[0], left[1:]
        base = np.repeat(lower[None, :], 2, axis=0)
        base[1, first] = upper[first]
        values = yield base
        evaluations += 2
        effect, size = values[0] - values[1], np.abs(values).max()
        interacts = np.zeros(left.size, dtype=bool)
        for begin in range(0, left.size, ROWS // 2):
            others = left[begin : begin + ROWS // 2]
            pairs = np.repeat(base[None, :, :], others.size, axis=0)
            pairs[np.arange(others.size), :, others] = middle[others, None]
            values = yield pairs.reshape(-1, lower.size)
            evaluations += values.size
            values = values.reshape(-1, 2)
            changed = values[:, 0] - values[:, 1]
            sizes = np.maximum(np.abs(values).max(axis=1), size)
            threshold = np.maximum(epsilon, rounding * sizes)
            interacts[begin : begin + others.size] = np.abs(effect - changed) > threshold
        if interacts.any():
            groups.append(np.concatenate([[first], left[interacts]]))
        else:
            separable.append(int(first))
        left = left[~interacts]
    return Grouping(groups, np.array(separable, dtype=np.int64), evaluations)
