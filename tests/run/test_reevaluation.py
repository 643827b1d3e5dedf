"""What is evaluated beside the candidates: the mean when asked about noise, two points at the end.

Each test failed before the fault that it describes was repaired.
"""

import math
import time

import numpy as np
import pytest

import mmes
from mmes.errors import FailedEvaluationWarning
from mmes.kernels.reference import ReferenceKernel
from mmes.run.noise import MeanAverage, NoiseWatch
from mmes.run.reevaluation import Reevaluation


class Drawn:
    """The sphere with normal noise, which counts its calls."""

    def __init__(self, size: float = 1.0):
        self.size, self.calls, self.rng = size, 0, np.random.default_rng(1)

    def __call__(self, x):
        self.calls += 1
        return float(x @ x) + self.size * self.rng.standard_normal()


def sphere(x):
    return float(x @ x)


START = np.full(5, 3.0), 0.5


def test_a_point_whose_evaluations_failed_is_not_the_result():
    rng = np.random.default_rng(1)

    def f(x):
        r = float(x @ x)
        return math.nan if r < 4 else r + rng.normal()

    with pytest.warns(FailedEvaluationWarning):
        r = mmes.minimize(f, np.full(5, 1.5), 2.0, noise="yes", max_evaluations=60, seed=1)
    assert np.isnan(r.reevaluated["mean"]).all()
    assert r.fun == pytest.approx(np.mean(r.reevaluated["x"]))
    assert float(r.x @ r.x) >= 4
    assert r.failed >= 10


NAN, INF = math.nan, math.inf


def test_an_average_is_compared_where_both_points_have_values() -> None:
    """Failed before: a RuntimeWarning where a noisy objective returned inf for both."""
    x, average = np.array([5.0, INF, 5.0, 6.0]), np.array([1.0, INF, 1.5, INF])
    assert Reevaluation(x, x, average=average).better()[0] == "average"
    assert Reevaluation(average, x, average=x).better()[0] == "x"


@pytest.mark.parametrize(
    ("x", "mean", "name", "average"),
    [
        ([1, 2, 3], [1, 1, 1], "mean", 1.0),
        ([1, 1, 1], [1, 1, 1], "x", 1.0),
        ([5, 5, 5], [NAN, NAN, NAN], "x", 5.0),
        ([NAN, NAN, NAN], [5, 5, 5], "mean", 5.0),
        ([NAN, NAN, NAN], [NAN, INF, NAN], "x", INF),
        ([5, 5, 5], [INF, INF, 1], "x", 5.0),  # failed more often than not
        ([5, 5, 5], [NAN, 4, 4], "mean", 4.0),
        ([], [], "x", INF),
    ],
)
def test_the_better_of_two(x, mean, name, average):
    found = Reevaluation(np.array(x, float), np.array(mean, float)).better()
    assert found[0] == name
    assert found[1] == average


@pytest.mark.parametrize(
    ("x", "average", "name"),
    [
        ([1, 1, 1], [1, 1, 1], "average"),
        ([1, 2, 3], [2, 3, 3], "average"),  # not surely worse
        ([1, 2, 3], [2, 3, 4.1], "x"),  # by the differences within a call
        ([NAN, NAN, 1], [5, 5, 5], "average"),
        ([5, 5, 5], [NAN, NAN, 1], "x"),
        ([1.7e308] * 3, [-1.7e308] * 3, "average"),
        ([-1.7e308] * 3, [1.7e308] * 3, "x"),
        ([2], [3], "average"),  # one value of each says nothing
    ],
)
def test_the_average_is_returned_unless_another_point_is_surely_better(x, average, name):
    worse = np.full(len(x), 1.7e308)
    again = Reevaluation(np.array(x, float), worse, average=np.array(average, float))
    found = again.better()
    assert found[0] == name
    assert again.evaluations == 3 * len(x)
    assert Reevaluation(**again.arrays()).better()[:2] == found[:2]


def test_newer_means_weigh_more_in_the_average():
    """The weight of the t-th of k means is in proportion to t (t + 1) (t + 2) (t + 3)."""
    kernel, k = ReferenceKernel(), 30
    average = MeanAverage(True)
    for t in range(k):
        average.take(np.eye(k)[t], kernel)
    t = np.arange(1.0, k + 1)
    weights = t * (t + 1) * (t + 2) * (t + 3)
    np.testing.assert_allclose(average.point, weights / weights.sum(), rtol=1e-12)


@pytest.mark.parametrize("given", [None, 3])
def test_the_evaluations_at_the_end_fit_into_the_budget(given):
    for budget in range(8, 70, 3):
        f = Drawn()
        r = mmes.minimize(
            f, *START, noise="yes", reevaluations=given, max_evaluations=budget, seed=1
        )
        assert r.nfev == f.calls <= budget


def test_integers_are_not_averaged():
    r = mmes.minimize(Drawn(), *START, integers=[0], noise="yes", max_evaluations=600, seed=1)
    assert set(r.reevaluated) == {"x", "mean"}
    assert r.x[0] == np.round(r.x[0])


def test_evaluations_that_show_noise_are_believed():
    r = mmes.minimize(Drawn(), *START, reevaluations=10, max_evaluations=400, seed=1)
    assert r.noisy
    averages = [np.mean(values) for values in r.reevaluated.values()]
    assert r.fun == pytest.approx(min(averages))
    assert r.fun_std is not None
    assert r.best_seen < r.fun


@pytest.mark.parametrize("strategy", ["auto", "mos"])
def test_who_says_that_it_is_noisy_gets_averages(strategy):
    options = {"noise": "yes", "strategy": strategy, "seed": 1, "bounds": (-5, 5)}
    f = Drawn()
    r = mmes.minimize(f, *START, max_evaluations=1500, **options)
    assert (r.noisy, r.nfev) == (True, f.calls)
    averages = {name: np.mean(values) for name, values in r.reevaluated.items()}
    assert r.fun == pytest.approx(averages.get("average", min(averages.values())))
    still = Drawn(0.0)
    r = mmes.minimize(still, *START, max_evaluations=1500, **options)
    assert (r.noisy, r.fun_std, r.nfev) == (False, 0.0, still.calls)
    assert r.fun == float(r.x @ r.x)


@pytest.mark.parametrize("n", [2, 20])
def test_the_result_is_the_best_point_that_was_evaluated(n):
    weights = np.logspace(0, 2, n)
    for seed in range(8):
        values = []

        def f(x, values=values):
            values.append(float(weights @ (x * x)))
            return values[-1]

        r = mmes.minimize(f, np.full(n, 3.0), 0.5, seed=seed)
        assert (r.fun, r.nfev) == (min(values), len(values))
        assert r.fun == float(weights @ (r.x * r.x))
        assert r.history["best"][-1] == r.fun


def test_the_target_may_be_met_where_noise_is_asked_about():
    """The mean of a converged run is better than its candidates."""
    free = mmes.minimize(lambda x: float(x @ x), *START, seed=1)
    line = free.history["best"]
    assert line[-1] < line[-2]  # by the mean alone
    r = mmes.minimize(lambda x: float(x @ x), *START, seed=1, target=float(line[-1]))
    assert r.reason is mmes.StopReason.TARGET_REACHED
    assert r.success


def test_a_run_that_had_ended_is_resumed_without_an_evaluation(tmp_path):
    f, path = Drawn(), tmp_path / "run.mmes"
    first = mmes.minimize(f, *START, noise="yes", max_evaluations=594, checkpoint=path, seed=1)
    assert f.calls == first.nfev == 594
    for _ in range(2):
        again = mmes.resume(path, f)
        assert (f.calls, again.nfev) == (594, 594)
        assert (again.fun, again.fun_std) == (first.fun, first.fun_std)
        np.testing.assert_array_equal(again.x, first.x)
    longer = mmes.resume(path, f, max_evaluations=896)
    assert longer.nfev == f.calls == 896
    surer = mmes.resume(path, f, reevaluations=30, max_evaluations=2000)
    assert len(surer.reevaluated["x"]) == 30
    assert surer.nfev == f.calls == 2000


@pytest.mark.parametrize("budget", range(50, 58))
def test_a_run_that_ended_within_a_generation_is_resumed_within_its_budget(tmp_path, budget):
    calls = []

    def f(x):
        calls.append(x)
        return float(x @ x)

    path, limits = tmp_path / "run.ckpt", {"reevaluations": 2, "max_evaluations": budget}
    r = mmes.minimize(f, *START, checkpoint=path, seed=1, **limits)
    again = mmes.resume(path, f)
    assert (again.nfev, again.fun, again.reason) == (r.nfev, r.fun, r.reason)
    assert r.nfev == budget
    np.testing.assert_array_equal(again.x, r.x)
    calls.clear()
    for larger in range(budget + 1, budget + 8):  # another end, after the first in each case
        copy = tmp_path / f"{larger}.ckpt"
        other = mmes.resume(path, f, max_evaluations=larger, checkpoint=copy)
        assert other.nfev <= larger
        assert other.fun == float(other.x @ other.x)


def test_no_start_begins_without_an_evaluation_left():
    # The test for noise, at the end of the first start, uses up the budget.
    free = mmes.minimize(sphere, *START, seed=1)
    r = mmes.minimize(sphere, *START, seed=1, restarts=3, max_evaluations=free.nfev)
    assert (r.starts, r.reason, r.nfev) == (1, free.reason, free.nfev)
    assert r.success


def test_the_time_limit_holds_with_the_evaluations_at_the_end():
    def f(x):
        time.sleep(0.02)
        return float(x @ x) + rng.standard_normal()

    rng = np.random.default_rng(1)
    began = time.monotonic()
    r = mmes.minimize(f, *START, noise="yes", time_limit=1.0, seed=1)
    assert r.reason is mmes.StopReason.TIME_LIMIT
    assert 1 <= len(r.reevaluated["x"]) <= 10
    assert time.monotonic() - began < 1.35  # 20 evaluations take 0.4 s


def test_a_long_memory_of_sigma_fits_into_a_checkpoint(tmp_path):
    """With a damping of 1e5 the header of the file grew beyond its limit."""
    run = mmes.Run(sphere, *START, seed=1, max_generations=3)
    run.run()
    state, path = run.state(), tmp_path / "long.mmes"
    state["arrays"]["noise/sigmas"] = np.full(300_000, 1 / 3)
    resumed = mmes.Run.from_state(state, sphere)
    resumed.write_to(path)
    resumed.run()
    assert (mmes.checkpoint.read(path)[1]["noise/sigmas"] == 1 / 3).all()
    old = NoiseWatch().entries() | {"sigmas": [0.5, 0.25]}  # as the checkpoints before have it
    assert NoiseWatch.restored(old, {}).sigmas == [0.5, 0.25]


@pytest.mark.parametrize(("count", "errors"), [(2, 5.5), (3, 3.2), (10, 2.0), (40, 2.0)])
def test_fewer_than_ten_values_need_more_than_two_standard_errors(
    count: int, errors: float
) -> None:
    """Before, two for any number of values, and none for a single one."""
    values = np.random.default_rng(count).standard_normal(count)
    again = Reevaluation(values, values + 100.0)
    error = float(np.std(values, ddof=1)) / count**0.5
    assert again.surely() == pytest.approx(
        float(np.mean(values)) + errors * error, abs=0.05 * error
    )


def test_a_single_value_is_never_sure() -> None:
    assert Reevaluation(np.array([-5.0]), np.array([1.0])).surely() == np.inf
