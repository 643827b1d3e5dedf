"""The start point that was given is evaluated first: no result is worse than it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mmes
from mmes.lab.competitors import COMPETITORS
from mmes.strategies import STRATEGIES

N = 40
LOW = -2.0 * np.ones(N)


def sphere(x):
    return float(np.sum((x - 1.0) ** 2))


class Seen:
    """The sphere, which remembers the points it was called with."""

    def __init__(self):
        self.points = []

    def __call__(self, x):
        self.points.append(x.copy())
        return sphere(x)


def good_start(**options):
    """Minimise from the optimum itself: nothing that is sampled is as good."""
    return mmes.minimize(sphere, np.ones(N), 0.5, seed=1, max_evaluations=100, **options)


@pytest.mark.parametrize("name", ["auto", *STRATEGIES, *COMPETITORS])
def test_no_result_is_worse_than_the_start_point(name):
    result = good_start(strategy=name, bounds=(LOW, -LOW))
    assert result.fun == 0.0
    np.testing.assert_array_equal(result.x, np.ones(N))
    assert result.nfev == 100


def test_it_is_the_first_point_and_counts():
    seen = Seen()
    result = mmes.minimize(seen, np.full(N, 3.0), 0.5, max_evaluations=60)
    np.testing.assert_array_equal(seen.points[0], np.full(N, 3.0))
    assert len(seen.points) == result.nfev == 60


@pytest.mark.parametrize("strategy", ["mmes", "sda-es"])
def test_strategies_that_evaluate_it_anyway_do_so_once(strategy):
    seen = Seen()
    mmes.minimize(seen, np.full(N, 3.0), 0.5, strategy=strategy, max_generations=2)
    assert sum(np.array_equal(x, np.full(N, 3.0)) for x in seen.points) == 1


def test_the_search_is_the_same_with_and_without():
    def told(wanted):
        seen, options = Seen(), {"strategy": "adaptive", "seed": 3, "max_generations": 20}
        mmes.minimize(seen, np.full(N, 3.0), 0.5, evaluate_x0=wanted, **options)
        return np.array(seen.points)

    np.testing.assert_array_equal(told(True)[1:], told(False))


def test_without_x0_or_when_refused_it_is_not_evaluated():
    assert good_start(evaluate_x0=False, strategy="adaptive").fun > 0.0
    seen = Seen()
    mmes.minimize(seen, bounds=(LOW, -LOW), max_generations=1)
    assert len(seen.points) == mmes.strategies.ActiveCMA(np.zeros(N), 1.0).population_size


def test_a_start_point_at_the_target_needs_no_search():
    result = good_start(target=1e-9)
    assert (result.nfev, result.nit, result.success) == (2, 0, True)  # it is confirmed
    assert result.reason is mmes.StopReason.TARGET_REACHED
    np.testing.assert_array_equal(result.history["best"], [0.0])


def test_a_start_point_that_fails_is_counted_and_said():
    def fails_first(x):
        return math.nan if np.array_equal(x, np.zeros(N)) else sphere(x)

    with pytest.warns(mmes.errors.FailedEvaluationWarning, match="NaN"):
        result = mmes.minimize(fails_first, np.zeros(N), 0.5, max_evaluations=50, seed=1)
    assert (result.failed, result.nfev) == (1, 50)
    assert math.isfinite(result.fun)


def test_a_resumed_run_does_not_evaluate_it_again(tmp_path):
    path = tmp_path / "run.mmes"
    whole = good_start()
    first = mmes.minimize(
        sphere, np.ones(N), 0.5, seed=1, max_evaluations=50, checkpoint=path, strategy="auto"
    )
    seen = Seen()
    result = mmes.resume(path, seen, max_evaluations=100)
    assert first.fun == result.fun == whole.fun == 0.0
    assert result.nfev == 100
    assert not any(np.array_equal(x, np.ones(N)) for x in seen.points)
    np.testing.assert_array_equal(result.mean, whole.mean)


def test_with_vectorized_objectives_and_processes():
    def batch(points):
        return np.sum((points - 1.0) ** 2, axis=1)

    vectorized = mmes.minimize(batch, np.ones(N), 0.5, seed=1, max_evaluations=100, vectorized=True)
    parallel = good_start(workers=2)
    serial = good_start()
    for result in (vectorized, parallel):
        assert result.fun == serial.fun == 0.0
        np.testing.assert_array_equal(result.mean, serial.mean)


def test_minus_infinity_at_the_start_point_ends_the_run():
    def unbounded(x):
        return -math.inf if np.array_equal(x, np.ones(N)) else sphere(x)

    result = mmes.minimize(unbounded, np.ones(N), 0.5, max_evaluations=100)
    assert (result.reason, result.success) == (mmes.StopReason.UNBOUNDED, False)
    assert (result.nfev, result.fun) == (1, -math.inf)


def test_an_error_at_the_start_point_says_so_and_leaves_no_history():
    def fails(x):
        raise ValueError("no licence")

    with pytest.raises(mmes.EvaluationError) as caught:
        mmes.minimize(fails, np.ones(N), 0.5, max_evaluations=100)
    assert "start point x0" in "".join(caught.value.__notes__)
    assert caught.value.result.history["best"].size == 0
