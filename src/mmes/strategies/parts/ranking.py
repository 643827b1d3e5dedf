"""The ranking of a generation, with ties, infinite values and NaN."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def rank(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the candidates from best to worst: ties by index, +inf after all numbers, NaN last."""
    return values.argsort(kind="stable")


def evenly(
    values: NDArray[np.float64], ranking: NDArray[np.int64], failures: int
) -> NDArray[np.float64]:
    """Return values to compare generations with, although some candidates failed.

    Each rank has the value at the same share of those that did not fail: with 6 values of 8
    candidates the ranks 1 .. 8 have the 1st, 2nd, 2nd, 3rd, 4th, 5th, 5th and 6th. So a failure is
    neither a win nor a loss against a generation without failures. The ranking does not change.
    """
    size, seen = ranking.size, ranking.size - failures
    shares = (2 * np.arange(size) + 1) * seen // (2 * size)
    spread = np.empty(size)
    spread[ranking] = values[ranking[shares]]
    return spread


def sidelined(
    ranking: NDArray[np.int64], values: NDArray[np.float64], failures: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the ranking with the failed candidates behind the parents, and values sorted by it.

    In strategies where the worst candidates push the mean away, failed candidates must not.
    """
    size = ranking.size
    seen = size - failures
    parents = min(size // 2, seen)
    order = np.concatenate((ranking[:parents], ranking[seen:], ranking[parents:seen]))
    moved = np.empty(size)
    moved[order] = values[ranking]
    return order, moved
