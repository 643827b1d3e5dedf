"""Evaluations that fail now and then: the search goes on, and no end is called convergence."""

import warnings

import numpy as np
import pytest

import mmes
from mmes.errors import FailedEvaluationWarning
from mmes.strategies.parts.ranking import evenly, rank, sidelined
from mmes.strategies.registry import STRATEGIES
from mmes.strategies.shell.standstill import ValueHistory

N = 50
pytestmark = pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")


class Fails:
    """A sphere that fails for a share of the calls, at random."""

    def __init__(self, share, failure=np.nan):
        self.share, self.failure = share, failure
        self.draws = np.random.Generator(np.random.Philox(7))

    def __call__(self, points):
        values = np.einsum("ij,ij->i", points, points)
        values[self.draws.random(values.size) < self.share] = self.failure
        return values


def minimized(objective, strategy, **options):
    return mmes.minimize(
        objective, np.ones(N), 1.0, strategy=strategy, seed=1, vectorized=True, **options
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_row36_failures_at_random_cost_little(strategy):
    """Failed before: CONVERGED_F after 200 generations, success, far from the optimum.

    The whole table is that of benchmarks/failures.py.
    """
    plain = minimized(Fails(0.0), strategy, target=1e-8)
    assert plain.success
    for share, most in ((0.01, 1.2), (0.05, 1.2), (0.2, 2.0)):
        result = minimized(Fails(share), strategy, target=1e-8, max_evaluations=10 * plain.nfev)
        assert result.reason is mmes.StopReason.TARGET_REACHED
        assert result.nfev <= most * plain.nfev, share


@pytest.mark.parametrize("failure", [np.nan, np.inf])
@pytest.mark.parametrize("strategy", ["mmes", "sep-cma", "lm-ma"])
def test_row36_success_is_true_whatever_share_fails(strategy, failure):
    """Failed before: "mmes" with 80 % NaN ended as CONVERGED_X, success, with 18 of 20."""
    for share in (0.05, 0.2, 0.4, 0.8):
        result = minimized(Fails(share, failure), strategy, max_evaluations=20_000)
        assert not result.success or result.fun < 1e-10, share
        assert result.success or share > 0.2


@pytest.mark.parametrize("failure", [np.nan, np.inf])
def test_row36_equal_values_beside_failures_are_flat(failure):
    """Failed before: CONVERGED_F, success."""

    def half(x):
        return 3.0 if x[0] > 0 else failure

    result = mmes.minimize(half, np.zeros(6), 1.0, seed=1, evaluate_x0=False)
    assert result.reason is mmes.StopReason.FLAT
    assert not result.success


def test_row36_a_generation_that_failed_says_nothing_about_standing_still():
    rule = ValueHistory(window=5)
    for generation, value in enumerate([3.0, 2.0, np.inf, 1.0, np.inf, np.inf, np.inf]):
        rule.observe(generation, 1.0, value, value)
    assert not rule.converged
    assert not rule.flat


def test_row36_values_are_compared_at_the_same_share_of_those_that_did_not_fail():
    values = np.array([np.inf, 6.0, 1.0, 5.0, np.inf, 2.0, 4.0, 3.0])
    ranking = rank(values)
    assert evenly(values, ranking, 2)[ranking].tolist() == [1, 2, 2, 3, 4, 5, 5, 6]
    # As many values as candidates are themselves, and a single one stands for all.
    whole = np.array([3.0, 1.0, 2.0])
    assert evenly(whole, rank(whole), 0).tolist() == whole.tolist()
    alone = np.array([np.inf, 4.0, np.inf])
    assert evenly(alone, rank(alone), 2).tolist() == [4.0] * 3


def test_row36_what_failed_is_neither_a_parent_nor_pushes_the_mean_away():
    ranking = np.array([3, 1, 2, 0, 5, 4, 7, 6])  # the last two failed
    order, values = sidelined(ranking, np.arange(8.0), 2)
    assert order.tolist() == [3, 1, 2, 0, 7, 6, 5, 4]
    assert values[order].tolist() == np.arange(8.0)[ranking].tolist()
    # With fewer values than parents, those that failed come next.
    order, _ = sidelined(ranking, np.arange(8.0), 6)
    assert order.tolist() == ranking.tolist()


@pytest.mark.parametrize("strategy", ["mmes", "sda-es", "rm-es"])
def test_row36_a_start_value_that_failed_is_compared_with_nothing(strategy):
    """Failed before: every candidate was counted as better than a start point that failed."""
    es = STRATEGIES[strategy](np.ones(8), 0.5, seed=1)
    values = np.einsum("ij,ij->i", es.ask(), es.ask())
    values[0] = np.nan
    es.tell(values)
    assert es.sigma == 0.5


def test_row36_one_failure_is_warned_of_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        minimized(Fails(0.1), "mmes", max_evaluations=500)
    assert [w.category for w in caught] == [FailedEvaluationWarning]
