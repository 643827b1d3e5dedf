"""AdaptiveMMES: the same generation as MMES, and the laws of its five points."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mmes
from mmes.strategies.mmes import mirroring
from mmes.strategies.mmes.adaptive import AdaptiveSearch

N = 100


def search(n: int = N, **options) -> AdaptiveSearch:
    return mmes.AdaptiveMMES(np.zeros(n), 1.0, seed=1, **options).search


def with_concordance(value: float, **options) -> AdaptiveSearch:
    made = search(**options)
    made.state.concordance = value
    return made


@pytest.mark.parametrize("population_size", [None, 9])
def test_with_its_five_points_off_it_is_mmes_to_the_bit(population_size) -> None:
    options = {"seed": 3, "population_size": population_size}
    paper = mmes.MMES(np.full(N, 2.0), 0.5, **options)
    ours = mmes.AdaptiveMMES(
        np.full(N, 2.0),
        0.5,
        mirroring="fixed",
        scaling="fixed",
        step_size="paired",
        c_s=0.3,
        c_a=4 / N,
        **options,
    )
    weights = np.logspace(0, 3, N)

    def f(points):
        return points**2 @ weights

    # The paper's first generation has the start point as one more row.
    first = paper.ask()
    ours.search.start(float(f(first[:1])[0]))
    np.testing.assert_array_equal(ours.ask(), first[1:])
    for _ in range(300):
        paper.tell(f(paper.ask()))
        ours.tell(f(ours.ask()))
        np.testing.assert_array_equal(ours.ask(), paper.ask())
        assert ours.sigma == paper.sigma
    assert mirroring.kappa(ours.parameters, ours.search.state) == 0


@pytest.mark.parametrize("size", [2, 3, 5, 12, 24, 45])
def test_the_number_of_draws_runs_from_pairs_to_all_but_a_few(size: int) -> None:
    for concordance, share in ((-1.0, 0.0), (0.15, 0.0), (0.3, 0.5), (0.45, 1.0), (1.0, 1.0)):
        made = with_concordance(concordance, population_size=size)
        p, state = made.parameters, made.state
        assert mirroring.kappa(p, state) == pytest.approx(share)
        watching = max(2, size // 12)
        half = math.ceil(size / 2)
        free = max(0, size // 2 - watching)
        drawn = mirroring.draws(p, state)
        assert drawn == half + round(mirroring.kappa(p, state) * free)
        assert half <= drawn <= max(half, size - watching)


@pytest.mark.parametrize("kappa", [0.0, 0.25, 0.5, 1.0])
def test_under_random_ranking_the_step_is_centred_and_has_the_variance_it_is_scaled_by(
    kappa: float,
) -> None:
    made = with_concordance(0.15 + 0.3 * kappa, population_size=24)
    p, state = made.parameters, made.state
    rng, steps = np.random.default_rng(7), []
    drawn = mirroring.draws(p, state)
    pairs = 24 - drawn
    for _ in range(4000):
        parents, weights, mu_eff = mirroring.selection(p, state, rng.permutation(24))
        assert math.fsum(weights**2) * mu_eff == pytest.approx(1, rel=1e-12)
        z = rng.standard_normal((drawn, 20))
        points = np.concatenate((z, -z[:pairs]))
        steps.append(weights @ points[parents])
    found = np.concatenate(steps)
    # A pair shares its noise: the products of two different weights have the mean below.
    square = math.fsum(weights**2)
    cross = (math.fsum(weights) ** 2 - square) / (24 * 23)
    variance = square - 2 * pairs * cross
    # False alarms: five standard errors, below 1e-6 each; the rows of 20 are independent.
    assert abs(found.mean()) < 5 * math.sqrt(variance / found.size)
    assert found.var() == pytest.approx(variance, rel=5 * math.sqrt(8 / found.size))


def drive(f, generations: int, **options) -> mmes.AdaptiveMMES:
    """Tell values at steps from the mean: a landscape that looks the same wherever it goes."""
    es = mmes.AdaptiveMMES(np.zeros(N), 1.0, seed=5, **options)
    for _ in range(generations):
        es.tell(f((es.ask() - es.mean) / es.sigma))
    return es


def test_concordance_is_one_where_the_linear_part_decides() -> None:
    es = drive(lambda z: z[:, 0], 150)
    assert es.search.state.concordance == pytest.approx(25 / 23, abs=0.25)
    assert mirroring.kappa(es.parameters, es.search.state) == 1


def test_concordance_is_minus_one_where_the_curvature_decides() -> None:
    es = drive(lambda z: z[:, 0] ** 2, 150)
    assert es.search.state.concordance == pytest.approx(-1, abs=0.1)
    assert mirroring.kappa(es.parameters, es.search.state) == 0


def test_concordance_stays_at_zero_where_the_ranking_is_random() -> None:
    rng = np.random.default_rng(3)
    found = [drive(lambda z: rng.standard_normal(len(z)), 1000).search.state.concordance]
    # Its stationary standard deviation is about 0.05; false alarms below 1e-6.
    assert abs(found[0]) < 0.25


@pytest.mark.parametrize("n", [1, 2, 5, 10, 30, 100, 599, 1000, 10_000, 100_000])
def test_the_isotropic_part_keeps_two_thirds_of_the_variance(n: int) -> None:
    m = 2 * math.ceil(math.sqrt(n))
    p = AdaptiveSearch.parameters_of(n, default_options(), m)
    assert 1 - p.gamma >= 2 / 3 - 1e-12
    if n >= 1000:
        assert p.c_a == 4 / n


def default_options() -> dict:
    return {option.name: option.default for option in AdaptiveSearch.options}


def test_the_rate_of_the_scaling_is_capped() -> None:
    assert search(100).parameters.c_d == 0.002
    assert search(10_000).parameters.c_d == pytest.approx(0.0006)


@pytest.mark.parametrize("n", [2, 3, 10, 100, 1000, 20_000])
def test_the_first_steps_have_the_length_that_sigma0_promises(n: int) -> None:
    es = mmes.AdaptiveMMES(np.zeros(n), 0.3, seed=2, population_size=40)
    points = es.ask()
    assert points.shape == (40, n)  # no row for the start point
    draws = points[: mirroring.draws(es.parameters, es.search.state)]
    # 20 draws of n coordinates: five standard errors of the root mean square, 5/sqrt(2*20*n).
    slack = 5 / math.sqrt(40 * n)
    rms = float(np.sqrt(np.mean(draws**2))) / 0.3
    assert 0.8 - slack < rms < 1.05 + slack


def test_sigma_stays_in_the_first_generation() -> None:
    es = mmes.AdaptiveMMES(np.ones(N), 0.3, seed=2)
    es.tell((es.ask() ** 2).sum(1))
    assert es.sigma == 0.3
    es.tell((es.ask() ** 2).sum(1))
    assert es.sigma != 0.3


def test_a_state_in_the_middle_of_a_partly_mirrored_run_goes_on_to_the_bit() -> None:
    es = drive(lambda z: z[:, 0], 60)
    assert mirroring.kappa(es.parameters, es.search.state) > 0
    other = mmes.AdaptiveMMES.from_state(es.state())
    for _ in range(50):
        np.testing.assert_array_equal(es.ask(), other.ask())
        values = es.ask()[:, 0]
        es.tell(values)
        other.tell(values)


def one_generation_outside(kernel: str, **box) -> np.ndarray:
    """Return the mean after a generation with signed weights and variable 0 at 3, far outside."""
    es = mmes.AdaptiveMMES(np.zeros(N), 1e-3, seed=3, kernel=kernel, **box)
    inner = es.search
    inner.state.concordance = 1.0
    inner.state.mean[0] = 3.0
    assert mirroring.kappa(inner.parameters, inner.state) == 1.0  # weights of sum 0
    es.tell(es.ask()[:, 1])
    return np.array(inner.state.mean)


@pytest.mark.parametrize("kernel", ["native", "reference"])
def test_a_mean_outside_is_led_back_by_a_share_of_one_nth(kernel: str) -> None:
    """All candidates lie on the wall, and nothing else led back: 2013 f1 stood at 1.6e5."""
    mean = one_generation_outside(kernel, bounds=(-1.0, 1.0), bounds_handling="clip")
    assert mean[0] == pytest.approx(1.0 + 2.0 * (1.0 - 1.0 / N), rel=1e-12)
    free = one_generation_outside(kernel)
    np.testing.assert_array_equal(mean[1:], free[1:])  # variables inside are left alone


@pytest.mark.parametrize("kernel", ["native", "reference"])
def test_a_mean_between_mirrors_is_folded_at_once(kernel: str) -> None:
    """Outside, the image moves against the mean: it would be led away."""
    n = 60
    es = mmes.AdaptiveMMES(
        np.full(n, 0.9), 0.5, bounds=(-1.0, 1.0), bounds_handling="reflect", seed=3, kernel=kernel
    )
    inner = es.search
    signed = 0
    for _ in range(300):
        es.tell(-es.ask().sum(axis=1))
        signed += mirroring.kappa(inner.parameters, inner.state) > 0
        assert np.abs(inner.state.mean).max() <= 1.0
    assert signed > 0  # the case was met


@pytest.mark.parametrize("kernel", ["native", "reference"])
def test_the_mean_that_is_shown_lies_in_the_box(kernel: str) -> None:
    es = mmes.AdaptiveMMES(
        np.full(60, 0.9), 0.5, bounds=(-1.0, 1.0), bounds_handling="clip", seed=3, kernel=kernel
    )
    outside = 0
    for _ in range(300):
        es.tell(-es.ask().sum(axis=1))
        outside += np.abs(np.array(es.search.state.mean)).max() > 1.0
        assert np.abs(es.mean).max() <= 1.0
    assert outside > 0  # the case was met
