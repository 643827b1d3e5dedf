"""Population size, recombination weights and ranking of all strategies."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def default_population_size(n: int) -> int:
    """Return lambda = 4 + floor(3 ln n)."""
    return 4 + math.floor(3 * math.log(n))


def log_weights(mu: int) -> NDArray[np.float64]:
    """Return w_1 .. w_mu, proportional to ln(mu + 1/2) - ln i, with sum 1."""
    raw = [math.log(mu + 0.5) - math.log(i) for i in range(1, mu + 1)]
    return np.array(raw) / math.fsum(raw)


def effective_size(weights: NDArray[np.float64]) -> float:
    """Return mu_eff = 1 / sum w_i^2."""
    return 1.0 / math.fsum(weights * weights)


def rank(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the candidates from best to worst: ties by index, +inf after all numbers, NaN last."""
    return values.argsort(kind="stable")


def evenly(
    values: NDArray[np.float64], ranking: NDArray[np.int64], failures: int
) -> NDArray[np.float64]:
    """Return values by which generations can be compared even if candidates failed.

    Each rank has the value at the same quantile of those that did not fail: with 6 values of 8
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

    If the worst candidates push the mean away, only candidates known to be bad must do so.
    """
    size = ranking.size
    seen = size - failures
    parents = min(size // 2, seen)
    order = np.concatenate((ranking[:parents], ranking[seen:], ranking[parents:seen]))
    moved = np.empty(size)
    moved[order] = values[ranking]
    return order, moved


# Beyond these, steps vanish or overflow in double precision, whatever limits a user sets.
SMALLEST_SIGMA, LARGEST_SIGMA = 1e-300, 1e280


def bounded_sigma(sigma: float) -> float:
    """Return sigma limited to a valid range; the stop rules end the run long before."""
    return min(max(sigma, SMALLEST_SIGMA), LARGEST_SIGMA)
