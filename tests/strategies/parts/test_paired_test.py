"""Paired test adaptation: the statistic and its law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from mmes.strategies.parts import step_size
from mmes.strategies.parts.recombination import effective_size, log_weights


def test_success_share_counts_a_win_as_one_and_a_tie_as_one_half() -> None:
    weights = np.array([0.5, 0.3, 0.2])
    share = step_size.success_share
    assert share(np.array([1, 2, 3]), np.array([2, 2, 4]), weights) == pytest.approx(0.85)
    assert share(np.array([1, 1, 1]), np.array([1, 1, 1]), weights) == pytest.approx(0.5)
    assert share(np.array([3, 3, 3]), np.array([1, 1, 1]), weights) == 0


def test_average_and_growth_follow_their_formulas() -> None:
    assert step_size.smoothed(0.5, 1.0, 7.0, 0.3) == pytest.approx(0.35 + math.sqrt(0.51 * 7))
    for w in (-3.0, 0.0, 0.7, 4.0):
        expected = math.exp((stats.norm.cdf(w) - 1 + 0.05) / 2.5)
        assert step_size.paired_growth(w, 0.05, 2.5) == pytest.approx(expected, rel=1e-14)


def test_growth_is_bounded() -> None:
    """Per generation sigma moves between exp(-0.95) and exp(0.05) at damping 1."""
    assert step_size.paired_growth(-1e9, 0.05, 1.0) == pytest.approx(math.exp(-0.95))
    assert step_size.paired_growth(1e9, 0.05, 1.0) == pytest.approx(math.exp(0.05))


def test_the_statistic_is_normalised_for_independent_coin_tosses() -> None:
    """Independent fair pairs: mean 0, variance 1 (5 standard errors; false alarm 1e-6)."""
    weights = log_weights(12)
    mu_eff = effective_size(weights)
    rng = np.random.default_rng(7)
    w, seen = 0.0, []
    for _ in range(40_000):
        w = step_size.smoothed(w, float(weights @ (rng.random(12) < 0.5)), mu_eff, 0.3)
        seen.append(w)
    late = np.array(seen[100:])
    independent = late.size * 0.3 / 1.7  # effective number under the autocorrelation 0.7^k
    assert abs(late.mean()) < 5 / math.sqrt(independent)
    assert abs(late.var() - 1) < 5 * math.sqrt(2 / independent)
