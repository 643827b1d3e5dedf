"""How fast AdaptiveMMES learns the scales: the law of the lessons, and what it is good for."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mmes
from mmes.strategies.mmes import scale_rate

N = 120


def started(n: int = N, **options) -> mmes.AdaptiveMMES:
    return mmes.AdaptiveMMES(np.zeros(n), 1.0, seed=4, **options)


def test_the_constants_are_the_moments_of_cut_off_squares() -> None:
    density, beyond = math.exp(-4.5) / math.sqrt(2 * math.pi), math.erfc(3 / math.sqrt(2)) / 2
    mean = 1 - 6 * density + 16 * beyond
    fourth = 3 * (1 - 2 * beyond) - 72 * density + 162 * beyond
    assert pytest.approx(mean, abs=1e-9) == scale_rate.CUT_MEAN
    assert pytest.approx(fourth - mean**2, abs=1e-9) == scale_rate.CUT_VARIANCE


@pytest.mark.parametrize("concordance", [-1.0, 1.0])
def test_under_random_ranking_lessons_are_standard_normal_from_the_start(concordance) -> None:
    """And the scales do not drift, though variables with a long path learn faster."""
    paths, scales = [], []
    for seed in range(30):
        es = mmes.AdaptiveMMES(np.zeros(N), 1.0, seed=seed, population_size=40)
        state, rng = es.search.state, np.random.default_rng(seed)
        paths.append(np.array(state.lessons))
        for _ in range(200):
            state.concordance = concordance
            es.ask()
            es.tell(rng.standard_normal(40))
        paths.append(np.array(state.lessons))
        scales.append(np.log(state.scale))
        assert state.scale_rate < 1
    # Lessons less their mean over the variables: one degree of freedom is gone.
    for found in (np.concatenate(paths[::2]), np.concatenate(paths[1::2])):
        # False alarms: five standard errors, below 1e-6 each.
        assert abs(found.mean()) < 5 / math.sqrt(found.size)
        assert found.var() == pytest.approx(1 - 1 / N, abs=5 * math.sqrt(2 / found.size))
    drift = np.concatenate(scales)
    assert abs(drift.mean()) < 1e-12
    assert drift.std() < 0.02


@pytest.mark.parametrize("change", [lambda f: 3 * f + 7, np.exp, lambda f: f**3])
def test_only_the_ranking_matters(change) -> None:
    found = []
    for transform in (lambda f: f, change):
        es = started(step_size="probes")  # no comparison between generations
        for _ in range(60):
            es.tell(transform(((es.ask() - 0.1) ** 2 @ np.logspace(0, 1, N)) / 1000))
        state = es.search.state
        found.append((np.array(state.scale), np.array(state.lessons), state.scale_rate))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def evaluations(make, **options) -> int:
    f = make(N)
    x0 = np.random.default_rng(1).uniform(-5, 5, N)
    es = mmes.AdaptiveMMES(x0, 3.0, seed=1, stagnation_window="off", xtol=0.0, **options)
    while es.best_value > 1e-8:
        es.tell(f(es.ask()))
        assert es.evaluations < 1_000_000
    return es.evaluations


def ellipsoid(n: int):
    return lambda x: (x * x) @ np.logspace(0, 6, n)


def discus(n: int):
    return lambda x: (x * x) @ np.r_[1e6, np.ones(n - 1)]


def rotated_discus(n: int):
    turned = np.linalg.qr(np.random.default_rng(3).standard_normal((n, n)))[0]
    return lambda x: discus(n)(x @ turned)


@pytest.mark.parametrize(("make", "share"), [(ellipsoid, 0.6), (discus, 0.7)])
def test_where_lessons_agree_it_is_faster(make, share) -> None:
    """Measured: 0.25 to 0.4 of the evaluations of the fixed rate, and 0.5."""
    fast, fixed = (evaluations(make, scale_rate=rate) for rate in ("fast", "fixed"))
    assert fast < share * fixed


def test_where_there_is_nothing_to_learn_the_scales_stay() -> None:
    spread = []
    for rate in ("fixed", "adaptive"):
        es = mmes.AdaptiveMMES(np.full(N, 2.0), 3.0, seed=2, scale_rate=rate)
        f = rotated_discus(N)
        while es.evaluations < 100_000:
            es.tell(f(es.ask()))
        spread.append(float(np.log(es.search.state.scale).std()))
    assert spread[1] < 0.6 * spread[0]


@pytest.mark.parametrize("rate", ["adaptive", "fast"])
def test_growth_keeps_lessons_and_a_copy_goes_on_to_the_bit(rate) -> None:
    es, f = started(scale_rate=rate), ellipsoid(N)
    for _ in range(20):  # values at random: nothing is learnt
        es.tell(np.random.default_rng(es.evaluations).standard_normal(len(es.ask())))
    for _ in range(15):
        es.tell(f(es.ask() - 1))
    lessons, factor = np.array(es.search.state.lessons), es.search.state.scale_rate
    assert factor != 1
    es.grow(0.5, doublings=1)
    np.testing.assert_array_equal(es.search.state.lessons, lessons)
    assert es.search.state.scale_rate == max(factor, 1)  # a larger population learns more
    other = mmes.AdaptiveMMES.from_state(es.state())
    for _ in range(30):
        X = es.ask()
        np.testing.assert_array_equal(X, other.ask())
        es.tell(f(X - 1))
        other.tell(f(X - 1))
    assert es.search.state.scale_rate == other.search.state.scale_rate


def test_with_walls_the_lessons_are_taken_too() -> None:
    box = {"bounds": (-5, 5), "bounds_handling": "clip"}
    es = mmes.AdaptiveMMES(np.full(N, 2.0), 1.0, seed=1, scale_rate="fast", **box)
    f = ellipsoid(N)
    for _ in range(500):
        es.tell(f(es.ask()))
    assert es.search.state.scale_rate > 2


def test_by_default_the_rate_does_not_exceed_c_d() -> None:
    es, f = started(), ellipsoid(N)
    for _ in range(300):
        es.tell(f(es.ask() - 1))
        assert 0.25 <= es.search.state.scale_rate <= 1
    assert es.search.state.scale_rate == 1


@pytest.mark.parametrize(
    "options",
    [{"scale_rate": "fixed"}, {"scaling": "off"}],
    ids=["fixed", "off"],
)
def test_no_path_where_none_is_needed(options) -> None:
    es = started(**options)
    assert es.search.state.lessons is None
    es.tell((es.ask() ** 2).sum(1))
    assert es.search.state.scale_rate == 1


def test_beyond_a_million_variables_there_is_no_path() -> None:
    options = mmes.AdaptiveMMES(np.zeros(3), 1.0).options
    assert scale_rate.learns_rate(scale_rate.LARGEST_N, options)
    assert not scale_rate.learns_rate(scale_rate.LARGEST_N + 1, options)


def test_wrong_lessons_in_a_state_are_refused() -> None:
    es = started()
    es.tell((es.ask() ** 2).sum(1))
    state = es.state()
    state["arrays"]["search/lessons"] = np.full(N, np.nan)
    with pytest.raises(ValueError, match="lessons must be finite"):
        mmes.AdaptiveMMES.from_state(state)


def test_a_wrong_value_of_the_option_is_refused() -> None:
    with pytest.raises(ValueError, match=r"scale_rate must be .*, not 'slow'"):
        started(scale_rate="slow")
