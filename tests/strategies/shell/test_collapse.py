"""Kinks and collapse: how values fall with sigma, and what is done about it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mmes
from mmes.base.reasons import StopReason
from mmes.strategies.registry import STRATEGIES
from mmes.strategies.shell.collapse import Collapse

N, SIZE = 150, 19
PACE = N / SIZE


def watched(fall, generations_per_decade: float, decades: float = 5.0) -> Collapse:
    """Return a watch that has seen values fall(sigma) while sigma fell."""
    watch = Collapse(N, 1.0)
    for generation in range(1, int(decades * generations_per_decade)):
        sigma = 10 ** (-generation / generations_per_decade)
        watch.observe(generation, sigma, fall(sigma), SIZE, 1.0)
    return watch


@pytest.mark.parametrize("a", [1e-6, 1.0, 1e9])
@pytest.mark.parametrize("b", [0.0, 3.0])
def test_a_kink_is_known_by_values_in_proportion_to_sigma(a: float, b: float) -> None:
    kinked = watched(lambda s: a * (b + s), 12 * PACE)
    doublings, sigma = kinked.answer(SIZE)
    assert doublings == 2  # 6 sqrt(150) is 73
    assert 1e-3 < sigma < 1e-2  # two decades back from the last note
    assert not kinked.collapsed  # not faster than a search converges
    assert watched(lambda s: a * (b + s * s), 12 * PACE).answer(SIZE) is None


def test_with_enough_candidates_only_a_fall_that_is_too_fast_counts() -> None:
    slow, fast = (watched(lambda s: s, decade * PACE) for decade in (12, 5))
    assert slow.answer(80) is None
    assert fast.collapsed
    assert fast.answer(80)[0] == 1
    assert watched(lambda s: s * s, 5 * PACE).answer(80) is None


def test_a_fall_that_takes_long_says_nothing() -> None:
    assert watched(lambda s: s, 200 * PACE, decades=4).answer(SIZE) is None


@pytest.mark.parametrize("value", [1.0, -3e8])
def test_rounding_is_no_kink(value: float) -> None:
    spacing = math.ulp(value)
    assert watched(lambda s: value + 20 * spacing * s, 12 * PACE).answer(SIZE) is None


def test_one_ratio_alone_is_a_phase_of_the_search() -> None:
    """On a turned Discus r jumps from 0.02 to 0.5 where the search finds the short axis."""

    def fall(sigma: float) -> float:
        return 1e6 * sigma**2 if sigma > 1e-2 else 100.0 + 40 * math.log10(sigma)

    watch = Collapse(N, 1.0)
    answers = []
    for generation in range(1, int(4.2 * 12 * PACE)):
        sigma = 10 ** (-generation / (12 * PACE))
        watch.observe(generation, sigma, fall(sigma), SIZE, 1.0)
        if sigma > 1e-3:
            answers.append(watch.answer(SIZE))
    assert not any(answers)


def test_its_state_goes_on_to_the_bit() -> None:
    one = watched(lambda s: s, 12 * PACE, decades=2.2)
    other = Collapse(N, 1.0)
    other.restore({name: array.copy() for name, array in one.arrays().items()})
    for generation in range(300, 600):
        sigma = 10 ** (-generation / (12 * PACE))
        for watch in (one, other):
            watch.observe(generation, sigma, sigma, SIZE, 1.0)
        assert one.answer(SIZE) == other.answer(SIZE)
        for name, array in one.arrays().items():
            np.testing.assert_array_equal(other.arrays()[name], array)
    assert one.answer(SIZE) is not None


def ended(watch: Collapse, limit: float, generations: int = 60) -> Collapse:
    """Go on until the medians stand at the limit."""
    for generation in range(10_000, 10_000 + generations):
        watch.observe(generation, 1e-9, limit, SIZE, 1.0)
    return watch


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (1e-6, 0.0), (1e6, -3e6)])
def test_values_that_end_at_the_same_place_twice_are_believed(a: float, b: float) -> None:
    watch = ended(watched(lambda s: a * (1 + s) + b, 12 * PACE), a + b)
    assert watch.doubted
    sigma = watch.look_again()
    assert 0.01 < sigma < 1.0  # before the first kink
    again = watch.anew(sigma)
    assert not again.doubted  # nobody knows yet where it will end
    assert not ended(again, a + b).doubted
    assert again.look_again() is None


@pytest.mark.parametrize("elsewhere", [0.99, 1.01])
def test_values_that_end_elsewhere_each_time_are_not(elsewhere: float) -> None:
    """Along a crease a search comes to rest anywhere; lower and higher both tell."""
    watch, limit = watched(lambda s: 1 + s, 12 * PACE), 1.0
    for _ in range(3):
        ended(watch, limit)
        sigma = watch.look_again()
        assert sigma is not None
        watch, limit = watch.anew(sigma), limit * elsewhere
    assert ended(watch, limit).doubted
    assert watch.look_again() is None  # three looks are enough


def test_without_a_kink_nobody_looks_again() -> None:
    watch = ended(watched(lambda s: s * s, 12 * PACE), 0.0)
    assert not watch.doubted
    assert watch.look_again() is None


# In a run


def start(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-5, 5, n)


def minimized(f, n: int = N, seed: int = 1, **options) -> mmes.Result:
    options = {"max_evaluations": 200_000, "strategy": "adaptive", "threads": 1} | options
    return mmes.minimize(f, start(n, seed), 3.0, vectorized=True, seed=seed, **options)


KINKS = {
    "sum": lambda x: np.abs(x - 1).sum(1),
    "max": lambda x: np.abs(x).max(1),
}


@pytest.mark.parametrize("name", KINKS)
def test_a_kink_is_answered_by_growth_and_solved(name: str) -> None:
    result = minimized(KINKS[name], target=1e-6, seed=2)
    assert result.reason is StopReason.TARGET_REACHED
    assert result.options["population_size"] == 76
    assert result.options["damping"] == 4.0


def test_who_says_no_noise_keeps_the_population() -> None:
    result = minimized(KINKS["sum"], noise="no", max_evaluations=20_000)
    assert result.options["population_size"] is None


SMOOTH = {
    "sphere": lambda x: (x**2).sum(1),
    "cigar": lambda x: x[:, 0] ** 2 + 1e6 * (x[:, 1:] ** 2).sum(1),
    "discus": lambda x: 1e6 * x[:, 0] ** 2 + (x[:, 1:] ** 2).sum(1),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions_do_not_grow_and_converge(name: str) -> None:
    result = minimized(SMOOTH[name])
    assert result.reason in (StopReason.CONVERGED_X, StopReason.CONVERGED_F)
    assert result.success
    assert result.fun < 1e-12
    assert result.options["population_size"] is None


def test_a_collapse_is_no_success() -> None:
    """Ask and tell does not grow by itself: sigma falls to nothing far from the optimum."""
    es = mmes.AdaptiveMMES(start(N, 3), 3.0, seed=3, step_size="paired", c_s=0.3, damping=4.0)
    while es.stop(max_evaluations=200_000) is None:
        es.tell(np.abs(es.ask()).max(1))
    assert es.best_value > 0.1
    assert es.stop() is StopReason.STAGNATED
    assert not StopReason.STAGNATED.converged


@pytest.mark.parametrize("generations", [200, 400])
def test_growth_and_a_checkpoint_before_or_after_it(tmp_path, generations: int) -> None:
    f, path = KINKS["sum"], tmp_path / "run.mmes"
    whole = minimized(f, max_evaluations=12_000)
    part = minimized(f, max_evaluations=12_000, max_generations=generations, checkpoint=path)
    assert (part.options["population_size"] == 76) == (generations == 400)
    resumed = mmes.resume(path, f, max_generations=None)
    assert whole.options["population_size"] == 76
    np.testing.assert_array_equal(resumed.x, whole.x)
    assert resumed.sigma == whole.sigma
    assert resumed.nfev == whole.nfev


def lasso(n: int):
    """Return sum (x - c)^2 + sum abs(x), less its optimum."""
    c = np.random.default_rng(2).uniform(-2, 2, n)
    best = np.sign(c) * np.maximum(np.abs(c) - 0.5, 0)

    def f(x):
        return ((x - c) ** 2).sum(1) + np.abs(x).sum(1)

    return lambda x: f(x) - f(best[None])


def test_half_of_the_variables_at_their_kink_do_not_stop_the_others() -> None:
    """Failed before: it ended 1e-3 above the optimum, with success for one seed of two."""
    result = minimized(lasso(N), target=1e-5, max_evaluations=300_000)
    assert result.reason is StopReason.TARGET_REACHED
    assert result.options["c_d"] == pytest.approx(0.002 * 2**3)


def test_at_a_turned_kink_success_is_not_claimed() -> None:
    """Failed before: success 4e-3 above the optimum, where no scale of a variable can help."""
    q = np.linalg.qr(np.random.default_rng(3).standard_normal((N, N)))[0]
    f = lasso(N)
    result = mmes.minimize(
        lambda x: f(x @ q), np.zeros(N), 1.0, vectorized=True, seed=2, max_evaluations=300_000
    )
    assert result.fun > 1e-4
    assert not result.success


def test_a_kink_that_is_solved_is_a_success_after_a_second_look() -> None:
    result = minimized(KINKS["sum"], max_evaluations=300_000)
    assert result.success
    assert result.fun < 1e-8
    sigma = result.history["sigma"]
    lowest = np.minimum.accumulate(sigma)
    assert (sigma / lowest).max() > 1e8  # back from the end to before the kink


def test_who_starts_again_anyway_does_not_look_twice() -> None:
    result = minimized(KINKS["max"], restarts=1, max_evaluations=300_000)
    first = result.history["start"] == 0
    sigma = result.history["sigma"][first]
    assert (sigma / np.minimum.accumulate(sigma)).max() < 1e4


def test_a_rugged_objective_is_answered_by_growth_from_longer_steps() -> None:
    """Failed before: it ended between 450 and 700."""

    def rastrigin(x):
        return (x * x + 10 * (1 - np.cos(2 * np.pi * x))).sum(1)

    assert minimized(rastrigin, seed=5, max_evaluations=60_000).fun < 300


def ridge(points):
    return np.abs(points[:, 0] - 50) + 100 * np.sqrt((points[:, 1:] ** 2).sum(1))


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_no_strategy_is_a_success_where_it_is_stuck_on_a_ridge(strategy):
    """Failed before for all but three: they ended between 44 and 50 as CONVERGED_X."""
    start = np.full(20, 2.0)
    r = mmes.minimize(
        ridge, start, 1.0, strategy=strategy, vectorized=True, seed=1, max_evaluations=40_000
    )
    assert r.success == (r.fun < 1e-8)


@pytest.mark.parametrize("n", [20, 40])
def test_the_default_for_few_variables_is_not_a_success_where_it_is_stuck_on_a_ridge(n):
    """Active CMA-ES was called a success at 43 and 45; with n = 20 a second look solves it."""
    r = mmes.minimize(ridge, np.full(n, 3.0), 1.0, vectorized=True, seed=1, max_evaluations=60_000)
    assert r.strategy.startswith("active-cma")
    assert r.success == (r.fun < 1e-8) == (n == 20)
    assert not r.success or r.reason is StopReason.CONVERGED_X


def penalty(weight: float, n: int = 6):
    """Return (x_0 - 3)^2 with an exact penalty, whose crease is x_i = i x_0; the minimum is 0."""
    slopes = np.arange(1, n)
    return lambda x: (x[:, 0] - 3) ** 2 + weight * np.abs(x[:, 1:] - slopes * x[:, :1]).sum(1)


@pytest.mark.parametrize("weight", [1e4, 1e5, 1e6, 1e8])
@pytest.mark.parametrize(("n", "seed"), [(6, 1), (8, 2)])
def test_steps_that_become_short_by_their_axes_are_a_kink_too(n, seed, weight):
    """Failed before: CONVERGED_X near 9. The axes shrank with sigma: r fell to 0.03 to 0.07."""
    r = mmes.minimize(
        penalty(weight, n), np.zeros(n), 0.3, vectorized=True, seed=seed, max_evaluations=10_000
    )
    assert r.nfev > 5000  # it looked again
    assert not r.success or r.fun < 1e-6


@pytest.mark.parametrize("seed", [1, 3])
def test_ends_that_agree_only_roughly_are_not_the_same(seed):
    """Failed before: CONVERGED_X near 9, at ends that differ by up to 0.007."""
    r = mmes.minimize(
        penalty(1e8, 12), np.zeros(12), 0.3, vectorized=True, seed=seed, max_evaluations=30_000
    )
    assert not r.success or r.fun < 1e-6


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_success_is_not_claimed_where_the_best_point_is_elsewhere(seed):
    """Failed before: CONVERGED_X at 1, the value of the start, though the minimum is 0.

    Along the crease values fall by less than the last steps can tell.
    """

    def chebyshev_rosenbrock(x):
        return (x[:, 0] - 1) ** 2 / 4 + np.abs(x[:, 1:] - 2 * x[:, :-1] ** 2 + 1).sum(1)

    x0 = np.ones(20)
    x0[0] = -1
    r = mmes.minimize(
        chebyshev_rosenbrock, x0, 0.3, vectorized=True, seed=seed, max_evaluations=40_000
    )
    assert r.reason is StopReason.STAGNATED
    assert not r.success


def test_where_values_end_must_not_be_above_the_best_value() -> None:
    watch = ended(watched(lambda s: 1 + s, 12 * PACE), 1.0)
    again = ended(watch.anew(watch.look_again()), 1.0)
    assert not again.doubted
    again.observe(20_000, 1e-9, 1.0, SIZE, 1.0, 0.9)  # seen before the kink
    assert again.doubted


@pytest.mark.parametrize("strategy", ["cma-es", "active-cma"])
@pytest.mark.parametrize("factor", ["cholesky", "eigen"])
def test_the_mean_axis_is_the_root_of_the_determinant(strategy, factor):
    es = STRATEGIES[strategy](np.ones(5), 1.0, seed=1, factor=factor)
    for _ in range(50):
        es.tell([float(x @ (x * [1, 10, 100, 1e3, 1e4])) for x in es.ask()])
    root = np.linalg.det(es.search.state.covariance) ** (1 / 10)
    assert es.search.mean_axis() == pytest.approx(root, rel=1e-9)


@pytest.mark.parametrize("n", [2, 5, 10])
def test_a_smooth_function_is_not_looked_at_twice(n):
    """The rule for steps by all axes: r of smooth functions is 0.03 at most where sigma falls."""
    sizes = np.logspace(0, 6, n)
    for seed in range(3):
        es = STRATEGIES["active-cma"](start(n, seed), 3.0, seed=seed)
        while es.stop(max_evaluations=20_000) is None:
            es.tell((es.ask() ** 2) @ sizes)
        assert es.stop() is StopReason.CONVERGED_X
        assert not es.look_again()


@pytest.mark.parametrize("generations", [150, 330, 700])
def test_a_run_that_looks_again_is_resumed_to_the_bit(tmp_path, generations: int) -> None:
    f, path = penalty(1e5), tmp_path / "run.mmes"
    options = {"vectorized": True, "seed": 1, "max_evaluations": 8000}
    whole = mmes.minimize(f, np.zeros(6), 0.3, **options)
    part = {"max_generations": generations, "checkpoint": path}
    mmes.minimize(f, np.zeros(6), 0.3, **options, **part)
    resumed = mmes.resume(path, f, max_generations=None)
    np.testing.assert_array_equal(resumed.x, whole.x)
    assert (resumed.sigma, resumed.nfev) == (whole.sigma, whole.nfev)


def test_a_state_without_the_best_value_is_read() -> None:
    """Checkpoints from before it was kept."""
    arrays = watched(lambda s: s, 12 * PACE).arrays()
    del arrays["collapse_best"]
    other = Collapse(N, 1.0)
    other.restore(arrays)
    assert other.kinked
