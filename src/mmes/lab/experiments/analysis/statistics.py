"""The statistics of a comparison: marks, ranks, corrected p-values, running times.

Everything here is plain arrays: no plan, no store. Rank tests are SciPy's. Smaller values are
better throughout, and a run that never reached its target is written as infinity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmes.base.extras import require

Floats = NDArray[np.float64]

EXACT_LIMIT = 25
"""Samples of at most this many values, free of ties, are tested by the exact distribution."""


class Mark(Enum):
    """Verdict of a test of the chosen strategy against a rival, as the paper prints it.

    The value is the word used in the published tables, where the chosen strategy is MMES.
    """

    BETTER = "mmes_better"
    WORSE = "mmes_worse"
    SAME = "no_difference"

    @property
    def symbol(self) -> str:
        """The sign printed next to the rival's value."""
        return {Mark.BETTER: "●", Mark.WORSE: "○", Mark.SAME: "†"}[self]

    @property
    def sentence(self) -> str:
        """What the sign says about the chosen strategy."""
        return {
            Mark.BETTER: "the chosen strategy is significantly better than this one",
            Mark.WORSE: "the chosen strategy is significantly worse than this one",
            Mark.SAME: "no significant difference",
        }[self]


@dataclass(frozen=True)
class Summary:
    """Five numbers of a sample; infinite entries (failed runs) are allowed."""

    count: int
    median: float
    lower_quartile: float
    upper_quartile: float
    smallest: float
    largest: float


def _sample(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be a non-empty list of numbers, not shape {array.shape}")
    if np.isnan(array).any():
        raise ValueError(f"{name} holds NaN; write a failed run as infinity")
    return array


def quantile(values: ArrayLike, q: float) -> float:
    """Return the q-quantile by linear interpolation, correct where some values are infinite."""
    ordered = np.sort(_sample(values, "values"))
    place = q * (ordered.size - 1)
    low, high = math.floor(place), math.ceil(place)
    if low == high or ordered[low] == ordered[high]:
        return float(ordered[low])
    return float(ordered[low] + (place - low) * (ordered[high] - ordered[low]))


def summarize(values: ArrayLike) -> Summary:
    """Return count, median, quartiles and extremes of a sample."""
    sample = _sample(values, "values")
    return Summary(
        count=sample.size,
        median=quantile(sample, 0.5),
        lower_quartile=quantile(sample, 0.25),
        upper_quartile=quantile(sample, 0.75),
        smallest=float(sample.min()),
        largest=float(sample.max()),
    )


def ranks(values: ArrayLike) -> Floats:
    """Return the ranks 1, 2, .. of a sample; equal values share the average of their ranks."""
    return require("scipy.stats").rankdata(_sample(values, "values"))


def normal_tail(z: float) -> float:
    """Return P(Z > z) of a standard normal Z."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def _tied(sample: Floats) -> bool:
    return np.unique(sample).size < sample.size


def rank_sum_test(first: ArrayLike, second: ArrayLike) -> float:
    """Return the two-sided p-value of Wilcoxon's rank-sum test (Mann and Whitney's U).

    The samples are independent, one value per run. Small ones without ties use the exact
    distribution, others the normal approximation with tie and continuity correction.
    """
    a, b = _sample(first, "first"), _sample(second, "second")
    pooled = np.concatenate([a, b])
    if np.unique(pooled).size == 1:
        return 1.0
    exact = not _tied(pooled) and max(a.size, b.size) <= EXACT_LIMIT
    test = require("scipy.stats").mannwhitneyu
    return float(test(a, b, method="exact" if exact else "asymptotic").pvalue)


def signed_rank_test(first: ArrayLike, second: ArrayLike) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test on paired values.

    This is the test for columns of which only medians are known: one pair per problem. Pairs that
    are equal are dropped, as Wilcoxon did.
    """
    a, b = _sample(first, "first"), _sample(second, "second")
    if a.shape != b.shape:
        raise ValueError(f"paired samples must have the same length, not {a.size} and {b.size}")
    with np.errstate(invalid="ignore"):  # two failures differ by inf - inf: no difference
        difference = np.nan_to_num(a - b, nan=0.0, posinf=np.inf, neginf=-np.inf)
    difference = difference[difference != 0.0]
    if difference.size == 0:
        return 1.0
    size = np.abs(difference)
    exact = not _tied(size) and size.size <= 2 * EXACT_LIMIT
    signed = np.copysign(ranks(size), difference)  # all that the test looks at; finite, too
    test = require("scipy.stats").wilcoxon
    return float(test(signed, method="exact" if exact else "approx", correction=not exact).pvalue)


def mark(chosen: ArrayLike, rival: ArrayLike, level: float = 0.05) -> Mark:
    """Return the rank-sum verdict on the chosen strategy against a rival at the given level."""
    if rank_sum_test(chosen, rival) >= level:
        return Mark.SAME
    joint = ranks(np.concatenate([_sample(chosen, "chosen"), _sample(rival, "rival")]))
    size = np.size(chosen)
    return Mark.BETTER if joint[:size].mean() < joint[size:].mean() else Mark.WORSE


@dataclass(frozen=True)
class RankTable:
    """Friedman's ranks of k strategies on N problems."""

    strategies: tuple[str, ...]  # Names of the columns.
    ranks: Floats  # Rank of each strategy on each problem, ties averaged, of shape (N, k).

    @property
    def average(self) -> dict[str, float]:
        """Average rank of each strategy."""
        return dict(zip(self.strategies, self.ranks.mean(axis=0).tolist(), strict=True))

    def p_values(self, control: str) -> dict[str, float]:
        """Return Bonferroni-corrected p-values of every other strategy against the control.

        The difference of two average ranks is taken as normal with variance 2 s^2 / N, where s^2
        is the mean over problems of the variance of the ranks within a problem: k(k+1)/12 without
        ties, less with them (the printed p-values need this correction). The p-value is multiplied
        by the number of all k(k-1)/2 pairs, not only the k-1 pairs with the control, as the paper
        does.
        """
        if control not in self.strategies:
            raise ValueError(f"control {control!r} is not one of {', '.join(self.strategies)}")
        problems, k = self.ranks.shape
        if k < 2:
            return {}
        deviation = math.sqrt(2.0 * float(self.ranks.var(axis=1, ddof=1).mean()) / problems)
        average = self.average
        found: dict[str, float] = {}
        for name in self.strategies:
            if name != control:
                gap = abs(average[name] - average[control])
                p = 2.0 * normal_tail(gap / deviation) if deviation > 0.0 else 1.0
                found[name] = min(1.0, p * k * (k - 1) / 2)
        return found


def friedman(strategies: Sequence[str], values: ArrayLike) -> RankTable:
    """Rank strategies on every problem.

    `values` has one row per problem and one column per strategy: usually medians; infinity where a
    strategy failed.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] == 0 or table.shape[1] != len(strategies):
        raise ValueError(
            f"values must have one row per problem and {len(strategies)} columns, not {table.shape}"
        )
    return RankTable(tuple(strategies), np.vstack([ranks(row) for row in table]))


def expected_running_time(evaluations: ArrayLike, reached: ArrayLike) -> float:
    """Return the expected evaluations to the target when failed runs are started again.

    All evaluations spent, by successful and failed runs alike, over the number of successes;
    infinite when no run reached the target.
    """
    spent = _sample(evaluations, "evaluations")
    success = np.asarray(reached, dtype=bool)
    if success.shape != spent.shape:
        raise ValueError(f"evaluations and reached differ in length: {spent.size}, {success.size}")
    return float(spent.sum() / success.sum()) if success.any() else math.inf


def first_hits(evaluations: ArrayLike, best: ArrayLike, targets: ArrayLike) -> Floats:
    """Return the evaluations at which a run first had best <= target, infinity where never.

    `evaluations` and `best` are the convergence trace; targets may be in any order.
    """
    spent = np.asarray(evaluations, dtype=np.float64)
    falling = np.minimum.accumulate(np.asarray(best, dtype=np.float64))
    if spent.shape != falling.shape or spent.ndim != 1:
        raise ValueError(f"evaluations and best must match: {spent.shape}, {falling.shape}")
    goals = np.asarray(targets, dtype=np.float64)
    place = np.searchsorted(-falling, -goals, side="left")
    return np.append(spent, np.inf)[np.minimum(place, spent.size)]


def ecdf(runtimes: ArrayLike) -> tuple[Floats, Floats]:
    """Return the steps of the empirical distribution of runtimes: (runtime, fraction solved).

    Infinite runtimes (unsolved pairs of run and target) count in the denominator only.
    """
    times = np.asarray(runtimes, dtype=np.float64).ravel()
    if times.size == 0:
        raise ValueError("runtimes must not be empty")
    solved = np.sort(times[np.isfinite(times)])
    return solved, np.arange(1, solved.size + 1) / times.size


def log_log_slope(x: ArrayLike, y: ArrayLike) -> float:
    """Return the least-squares slope of log y against log x: the empirical order of growth."""
    a, b = np.log(_sample(x, "x")), np.log(_sample(y, "y"))
    if a.size < 2 or a.shape != b.shape:
        raise ValueError(f"a slope needs two or more points of both, not {a.size} and {b.size}")
    return float(np.polyfit(a, b, 1)[0])
