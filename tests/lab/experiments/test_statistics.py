"""Hand-computed cases, scipy as the oracle, and the laws each statistic obeys."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mmes.lab.experiments.analysis import statistics
from mmes.lab.experiments.analysis.statistics import Mark

small_numbers = st.integers(-5, 5).map(float)


def test_summary_by_hand():
    found = statistics.summarize([4.0, 1.0, 3.0, 2.0])
    assert (found.count, found.median, found.smallest, found.largest) == (4, 2.5, 1.0, 4.0)
    assert (found.lower_quartile, found.upper_quartile) == (1.75, 3.25)


def test_a_minority_of_failed_runs_leaves_the_median_finite():
    assert statistics.summarize([1.0, 2.0, math.inf]).median == 2.0
    assert statistics.summarize([1.0, math.inf]).median == math.inf
    assert statistics.summarize([math.inf, math.inf]).median == math.inf


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(0.0, 1.0))
def test_quantile_is_numpys(values, q):
    assert statistics.quantile(values, q) == pytest.approx(np.quantile(values, q), abs=1e-6)


def test_ranks_by_hand():
    assert statistics.ranks([10.0, 20.0, 10.0, math.inf]).tolist() == [1.5, 3.0, 1.5, 4.0]


@given(st.lists(small_numbers, min_size=1))
def test_ranks_are_scipys(values):
    assert statistics.ranks(values).tolist() == stats.rankdata(values).tolist()


def test_rank_sum_by_hand():
    # Complete separation of 3 and 3: 2 of the 20 arrangements are as extreme.
    assert statistics.rank_sum_test([1, 2, 3], [4, 5, 6]) == pytest.approx(0.1)


@pytest.mark.parametrize(("first", "second"), [(3, 4), (10, 10), (20, 20), (25, 7), (1, 2)])
def test_exact_rank_sum_is_scipys(first, second):
    rng = np.random.default_rng(first * 100 + second)
    a, b = rng.normal(size=first), rng.normal(0.4, size=second)
    expected = stats.mannwhitneyu(a, b, method="exact").pvalue
    assert statistics.rank_sum_test(a, b) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("sizes", [(20, 20), (40, 30), (5, 60)])
def test_approximate_rank_sum_is_scipys_with_ties(sizes):
    rng = np.random.default_rng(sum(sizes))
    a, b = rng.integers(0, 9, sizes[0]).astype(float), rng.integers(1, 10, sizes[1]).astype(float)
    expected = stats.mannwhitneyu(a, b, method="asymptotic").pvalue
    assert statistics.rank_sum_test(a, b) == pytest.approx(expected, rel=1e-9)


def test_equal_samples_are_not_different():
    assert statistics.rank_sum_test([1.0, 1.0], [1.0, 1.0]) == 1.0
    assert statistics.signed_rank_test([1.0, 2.0], [1.0, 2.0]) == 1.0
    assert statistics.signed_rank_test([math.inf], [math.inf]) == 1.0


def test_signed_rank_by_hand():
    # Four differences of one sign: 2 of 16 sign patterns are as extreme.
    assert statistics.signed_rank_test([1, 2, 3, 4], [2, 4, 6, 8]) == pytest.approx(0.125)


@pytest.mark.parametrize("count", [4, 10, 20])
def test_exact_signed_rank_is_scipys(count):
    rng = np.random.default_rng(count)
    a, b = rng.normal(size=count), rng.normal(0.3, size=count)
    expected = stats.wilcoxon(a, b, method="exact").pvalue
    assert statistics.signed_rank_test(a, b) == pytest.approx(expected, rel=1e-9)


def test_approximate_signed_rank_is_scipys_with_ties():
    rng = np.random.default_rng(3)
    a = rng.integers(0, 6, 40).astype(float)
    b = rng.integers(1, 8, 40).astype(float)
    expected = stats.wilcoxon(a, b, method="asymptotic", correction=True).pvalue
    assert statistics.signed_rank_test(a, b) == pytest.approx(expected, rel=1e-9)


def test_marks_point_the_right_way():
    low, high = np.arange(10.0), np.arange(20.0, 30.0)
    assert statistics.mark(low, high) is Mark.BETTER
    assert statistics.mark(high, low) is Mark.WORSE
    assert statistics.mark(low, low + 0.5) is Mark.SAME
    assert statistics.mark([1.0] * 5, [math.inf] * 5) is Mark.BETTER


def test_friedman_by_hand():
    table = statistics.friedman(["a", "b", "c"], [[1, 2, 3], [1, 1, 5], [3, 2, 1]])
    assert table.average == pytest.approx({"a": 5.5 / 3, "b": 5.5 / 3, "c": 7 / 3})
    # Mean within-problem variance (1 + 0.75 + 1)/3, two averages over N = 3 problems.
    z = (7 / 3 - 5.5 / 3) / math.sqrt(2 * (2.75 / 3) / 3)
    assert table.p_values("a")["c"] == pytest.approx(min(1.0, 3 * 2 * stats.norm.sf(z)))
    assert table.p_values("a")["b"] == 1.0


def test_p_values_correct_for_all_pairs():
    # k = 5, N = 20 without ties: standard error 0.5; 10 pairs.
    rows = [[1, 2, 3, 4, 5]] * 14 + [[2, 1, 3, 4, 5]] * 6
    table = statistics.friedman(list("abcde"), rows)
    gap = table.average["c"] - table.average["a"]
    expected = 10 * 2 * stats.norm.sf(gap / 0.5)
    assert table.p_values("a")["c"] == pytest.approx(expected)


def test_friedman_refuses_a_foreign_control_and_ragged_input():
    with pytest.raises(ValueError, match="control 'z' is not one of a, b"):
        statistics.friedman(["a", "b"], [[1, 2]]).p_values("z")
    with pytest.raises(ValueError, match="2 columns"):
        statistics.friedman(["a", "b"], [[1, 2, 3]])


def test_expected_running_time_by_hand():
    assert statistics.expected_running_time([100, 300, 200], [True, False, True]) == 300.0
    assert statistics.expected_running_time([100], [False]) == math.inf


def test_first_hits_by_hand():
    hits = statistics.first_hits([10, 20, 30], [5.0, 7.0, 1.0], [6.0, 5.0, 1.0, 0.5])
    assert hits.tolist() == [10.0, 10.0, 30.0, math.inf]


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30), st.floats(0, 10))
def test_first_hits_is_the_plain_definition(best, target):
    evaluations = np.arange(1, len(best) + 1) * 7.0
    expected = next((e for e, b in zip(evaluations, best, strict=True) if b <= target), math.inf)
    assert statistics.first_hits(evaluations, best, [target])[0] == expected


def test_ecdf_counts_unsolved_pairs():
    times, fraction = statistics.ecdf([3.0, math.inf, 1.0, 2.0])
    assert times.tolist() == [1.0, 2.0, 3.0]
    assert fraction.tolist() == [0.25, 0.5, 0.75]


def test_slope_of_a_power_law():
    n = np.array([10.0, 100.0, 1000.0])
    assert statistics.log_log_slope(n, 3 * n**1.5) == pytest.approx(1.5)


@pytest.mark.parametrize("bad", [[], [math.nan], [[1.0]]])
def test_bad_samples_are_refused(bad):
    with pytest.raises(ValueError):
        statistics.summarize(bad)
