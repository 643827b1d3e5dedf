"""The two forces on the step size of AdaptiveMMES: their laws, their invariances, and the box."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mmes
from mmes.kernels import ReferenceKernel
from mmes.strategies.mmes import mirroring
from mmes.strategies.mmes import step_size_forces as forces
from mmes.strategies.parts.step_size import normal_cdf

N = 120


def started(n: int = N, **options) -> mmes.AdaptiveMMES:
    return mmes.AdaptiveMMES(np.zeros(n), 1.0, seed=4, **options)


def random_ranking(es: mmes.AdaptiveMMES, generations: int) -> list[float]:
    """Tell random values; return |p|^2 / n after each generation."""
    rng, squares = np.random.default_rng(8), []
    for _ in range(generations):
        es.ask()
        es.tell(rng.standard_normal(es.population_size))
        squares.append(float(np.mean(np.square(es.search.state.noise_path))))
    return squares


@pytest.mark.parametrize("concordance", [-1.0, 0.3, 1.0])
@pytest.mark.parametrize("isotropic", ["normal", "student", "rademacher"])
def test_under_random_ranking_the_path_is_standard_normal(concordance, isotropic) -> None:
    es = started(isotropic=isotropic, population_size=40)
    state = es.search.state
    rng, found = np.random.default_rng(1), []
    for _ in range(150):
        state.concordance = concordance  # the share of mirrored draws stays as it is
        es.ask()
        es.tell(rng.standard_normal(40))
        found.append(np.array(state.noise_path))
    # c = 1/3: paths ten generations apart are independent, and the first have not forgotten zero.
    apart = np.concatenate(found[20::10])
    # False alarms: five standard errors, below 1e-6 each.
    assert abs(apart.mean()) < 5 / math.sqrt(apart.size)
    assert apart.var() == pytest.approx(1, abs=5 * math.sqrt(2 / apart.size))


def test_under_random_ranking_the_first_force_is_centred() -> None:
    """E[log change] = 0 of the first force."""
    es = started(population_size=30)
    path = es.search._generation._noise_path
    rng, found = np.random.default_rng(5), []
    for generation in range(3000):
        es.ask()
        es.tell(rng.standard_normal(30))
        if generation >= 100:
            found.append(path.excess(es.search.state))
    # |p| / chi_n has the variance 1 / (2 n); with c = 1/4, (2 - c) / c = 7 generations count as 1.
    error = math.sqrt(1 / (2 * N) / (len(found) / 7))
    assert abs(np.mean(found)) < 5 * error  # false alarms below 1e-6


def test_under_random_ranking_w_is_standard_normal() -> None:
    es = started(population_size=30)
    rng, found = np.random.default_rng(6), []
    for _ in range(8000):
        es.ask()
        es.tell(rng.standard_normal(30))
        found.append(es.search.state.success)
    kept = np.array(found[200:])
    # c_s and its memory; successive generations share one, so that their comparisons are
    # negatively correlated and the variance is below 1.
    memory = (2 - forces.C_S) / forces.C_S
    assert abs(kept.mean()) < 5 / math.sqrt(kept.size / memory)
    assert 0.05 < kept.var() < 1.1


def test_both_forces_act_at_the_rate_lambda_over_n() -> None:
    p = started(1000, population_size=20).parameters
    none = normal_cdf(0.0) - 1 + p.significance
    assert math.log(forces.both(p, 0.0, 0.0)) == pytest.approx(0.02 * 2.0 * none)
    pulled = math.log(forces.both(p, 0.3, 0.0) / forces.both(p, 0.0, 0.0))
    assert pulled == pytest.approx(0.02 * 0.3 / 0.3)
    damped = started(1000, population_size=20, damping=4.0).parameters
    assert math.log(forces.both(damped, 0.3, 0.0)) == pytest.approx(
        math.log(forces.both(p, 0.3, 0.0)) / 4
    )
    few = started(2, population_size=50).parameters
    assert forces.rate(few) == 0.5
    assert forces.both(few, 1e6, 0.0) == pytest.approx(math.e)


def trajectory(f, generations: int = 60, shift: float = 0.0, **options):
    """Return the sigmas, and the steps of the mean, of a run that begins at `shift`."""
    es = mmes.AdaptiveMMES(np.full(N, 1.0 + shift), 0.5, seed=9, **options)
    sigmas = []
    for _ in range(generations):
        es.tell(f(np.asarray(es.ask()) - shift))
        sigmas.append(es.sigma)
    return np.array(sigmas), np.array(es.mean) - shift


def test_sigma_is_invariant_under_order_preserving_transformations() -> None:
    def f(points):
        return (points**2).sum(1) ** 0.5

    plain, mean = trajectory(f)
    for changed in (lambda x: 3 * f(x) + 7, lambda x: np.exp(f(x)), lambda x: f(x) ** 3):
        sigmas, found = trajectory(changed)
        np.testing.assert_array_equal(sigmas, plain)
        np.testing.assert_array_equal(found, mean)


def test_sigma_is_invariant_under_translation() -> None:
    def f(points):
        return (points**2).sum(1)

    plain, mean = trajectory(f)
    # By a power of two, so that rounding hardly differs.
    sigmas, found = trajectory(f, shift=4.0)
    np.testing.assert_allclose(sigmas, plain, rtol=1e-9)
    np.testing.assert_allclose(found, mean, atol=1e-9)


def test_the_path_is_that_of_the_draws_of_the_selected() -> None:
    es = started(population_size=12, kernel="reference")
    state, p = es.search.state, es.parameters
    values = np.random.default_rng(2).standard_normal(12)
    es.ask()
    drawn = mirroring.draws(p, state)
    z = np.array(
        [ReferenceKernel().noise_sum(np.eye(drawn)[k], N, p.noise, 4, 0) for k in range(drawn)]
    )
    parts = np.concatenate((z, -z[: 12 - drawn]))
    parents, weights, _ = mirroring.selection(p, state, np.argsort(values))
    by_draw = np.zeros(drawn)
    for parent, weight in zip(parents, weights, strict=True):
        by_draw[parent % drawn] += weight if parent < drawn else -weight
    c = 12 / N
    expected = math.sqrt(c * (2 - c)) * (weights @ parts[parents]) / np.linalg.norm(by_draw)
    es.tell(values)
    np.testing.assert_allclose(state.noise_path, expected, rtol=1e-6, atol=1e-7)


# The box


@pytest.mark.parametrize("handling", ["clip", "reflect", "smooth"])
@pytest.mark.parametrize("kernel", ["native", "reference"])
def test_sigma_does_not_run_away_in_a_box(handling: str, kernel: str) -> None:
    """With clipping, draws that lead out of the box would lengthen the path for ever."""
    n = 50
    es = mmes.AdaptiveMMES(
        np.full(n, 0.3),
        0.5,
        bounds=(-1.0, 1.0),
        bounds_handling=handling,
        seed=4,
        kernel=kernel,
        stagnation_window="off",
    )
    for _ in range(400):
        es.tell(es.ask().sum(axis=1))  # the optimum is a corner
        assert es.sigma < 20
    assert es.best_value < -0.999 * n


def test_inside_the_box_clipping_changes_nothing() -> None:
    plain, _ = trajectory(lambda x: (x**2).sum(1), generations=30)
    boxed, _ = trajectory(
        lambda x: (x**2).sum(1), generations=30, bounds=(-100.0, 100.0), bounds_handling="clip"
    )
    np.testing.assert_allclose(boxed, plain, rtol=1e-9)


def test_a_converged_search_inside_a_clipping_box() -> None:
    es = mmes.AdaptiveMMES(np.full(N, 3.0), 1.0, bounds=(-5.0, 5.0), bounds_handling="clip", seed=1)
    while es.evaluations < 12_000 and es.best_value > 1e-8:
        es.tell(((es.ask() - 1.0) ** 2).sum(1))
    assert es.best_value <= 1e-8


# Growth and states


def test_growth_keeps_the_path_and_a_copy_goes_on_to_the_bit() -> None:
    es = started()
    for _ in range(20):
        es.tell((es.ask() ** 2).sum(1))
    path = np.array(es.search.state.noise_path)
    es.grow(0.5, doublings=2)
    assert es.population_size == 4 * (4 + math.floor(3 * math.log(N)))
    assert es.options["damping"] == 4.0
    np.testing.assert_array_equal(es.search.state.noise_path, path)
    other = mmes.AdaptiveMMES.from_state(es.state())
    for _ in range(20):
        np.testing.assert_array_equal(es.ask(), other.ask())
        values = (es.ask() ** 2).sum(1)
        es.tell(values)
        other.tell(values)
        assert es.sigma == other.sigma


def test_a_wrong_path_in_a_state_is_refused() -> None:
    es = started()
    es.tell((es.ask() ** 2).sum(1))
    state = es.state()
    state["arrays"]["search/noise_path"] = np.full(N, np.nan)
    with pytest.raises(ValueError, match="noise_path must be finite"):
        mmes.AdaptiveMMES.from_state(state)
