"""What a frozen strategy samples, against the matrix it stands for; and rotated problems."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mmes.strategies import (
    CMAES,
    LMCMA,
    LMMA,
    R1ES,
    SDAES,
    ActiveCMA,
    AskTell,
    FastCMA,
    RmES,
    SepCMA,
)
from mmes.strategies.lm_cma import inverse_paths
from mmes.strategies.lm_ma import product_coefficients

N, CANDIDATES = 6, 40_000
SAMPLES = 10_000


def directions(count: int, n: int = N) -> np.ndarray:
    return (2.0 * np.random.default_rng(7).standard_normal((count, n))).astype(np.float32)


def frozen(strategy: type[AskTell], **options) -> AskTell:
    return strategy(np.zeros(N), 1.0, seed=9, population_size=CANDIDATES, **options)


def steps(es: AskTell) -> np.ndarray:
    out = np.empty((CANDIDATES, N))
    es.search.sample(out, 3)
    return out


def assert_covariance(sample: np.ndarray, expected: np.ndarray) -> None:
    """Every entry within six standard errors: false alarm below 1e-7 for the 21 entries."""
    found = sample.T @ sample / sample.shape[0]
    variances = np.diagonal(expected)
    error = np.sqrt((np.multiply.outer(variances, variances) + expected**2) / sample.shape[0])
    # Mirrored pairs are half as many independent draws.
    np.testing.assert_array_less(np.abs(found - expected), 6 * math.sqrt(2) * error)


@pytest.mark.parametrize(("strategy", "m"), [(RmES, 2), (R1ES, 1)])
def test_rm_es(strategy: type[AskTell], m: int) -> None:
    es = frozen(strategy, c_cov=0.3)
    archive = es.search.state.archive
    archive.vectors[:] = directions(m)
    archive.order = np.arange(m)[::-1]  # row 0 is the newest
    oldest_first = archive.vectors[::-1].astype(float)
    c = 0.3
    expected = (1 - c) ** m * np.eye(N)
    for i, p in enumerate(oldest_first, start=1):
        expected += c * (1 - c) ** (m - i) * np.outer(p, p)
    assert_covariance(steps(es), expected)


def test_sda_es() -> None:
    es = frozen(SDAES, c_cov=0.2)
    q = es.search.state.directions
    q[:] = directions(10)
    assert_covariance(steps(es), 0.8 * np.eye(N) + 0.2 * q.T.astype(float) @ q)


def test_sep_cma_and_cma() -> None:
    es = frozen(SepCMA)
    es.search.state.deviations[:] = np.linspace(0.1, 3, N)
    assert_covariance(steps(es), np.diag(np.linspace(0.1, 3, N) ** 2))
    full = frozen(CMAES)
    root = directions(N).astype(float)
    full.search.state.covariance = root @ root.T
    full.search._factorise()
    assert_covariance(steps(full), root @ root.T)


def test_the_covariance_stays_under_random_ranking() -> None:
    """E C = C: what the worse half takes away is what its weights leave of the old matrix.

    The path starts from 0 and is left out. 1000 updates of one generation each; every entry within
    six standard errors, false alarm below 1e-7 for the 21 entries.
    """
    root = np.linalg.cholesky(np.diag(np.linspace(1, 4, N)) + 0.5)
    rng = np.random.default_rng(3)
    found = []
    for seed in range(1000):
        es = ActiveCMA(np.zeros(N), 1.0, seed=seed)
        search = es.search
        search.gap = np.inf
        search.state.covariance, search.state.root = root @ root.T, root
        es.ask()
        es.tell(rng.standard_normal(es.population_size))
        state, path = search.state, search.state.path
        found.append(
            state.decay * state.covariance
            + state.pending.T @ state.pending
            - state.removed.T @ state.removed
            - search.rates.c_1 * (np.outer(path, path) - root @ root.T)
        )
    mean = np.mean(found, axis=0)
    error = np.std(found, axis=0) / math.sqrt(len(found))
    np.testing.assert_array_less(np.abs(mean - root @ root.T), 6 * error)


def test_lm_ma() -> None:
    es = frozen(LMMA)
    search = es.search
    m = search.c_d.size
    search.state.directions[:] = 0.5 * directions(m)
    search.state.updates = m
    product = np.eye(N)
    for c, v in zip(search.c_d, search.state.directions.astype(float), strict=True):
        product = ((1 - c) * np.eye(N) + c * np.outer(v, v)) @ product
    assert_covariance(steps(es), product @ product.T)


@pytest.mark.parametrize("noise", ["rademacher", "normal"])
def test_lm_cma(noise: str) -> None:
    """All pairs for every candidate: y = A z, and V z as stored."""
    es = frozen(LMCMA, isotropic=noise, count_scale=1e9, c_1=0.2, period=1)
    search = es.search
    m = search.state.archive.stamps.size
    for p in directions(m):
        search.state.path[:] = p
        search._store_path()
        search.state.updates += 1
    a, factor = math.sqrt(0.8), np.eye(N)
    order = search.state.archive.order
    for j in order:  # A_i = a A_{i-1} + b_i P_i V_i'
        p, v = (
            array[j].astype(float) for array in (search.state.archive.vectors, search.state.inverse)
        )
        factor = a * factor + search.state.gains[j] * np.outer(p, v)
    assert_covariance(steps(es), factor @ factor.T)


def test_fast_cma_uses_two_paths_each() -> None:
    es = FastCMA(np.zeros(N), 1.0, seed=9, population_size=9, c_1=0.3)
    search = es.search
    search.state.paths[:] = directions(10)
    search.state.updates, search.state.oldest = 9, 2
    out, found = np.empty((9, N)), np.empty((SAMPLES, 9, N))
    for generation in range(SAMPLES):
        search.sample(out, generation)
        found[generation] = out
    current = search.state.paths[-1].astype(float)
    for k in (0, 6, 7, 8):
        stored = search.state.paths[(2 + k) % 9].astype(float)
        expected = (
            0.49 * np.eye(N) + 0.21 * np.outer(stored, stored) + 0.3 * np.outer(current, current)
        )
        assert_covariance(found[:, k], expected)


def test_lm_ma_coefficients_are_the_ordered_product() -> None:
    rng = np.random.default_rng(3)
    n, k = 30, 12
    m, z = rng.standard_normal((k, n)), rng.standard_normal((4, n))
    rates = 1 / (1.5 ** np.arange(k) * 10)
    b = product_coefficients(m @ m.T, z @ m.T, rates)
    found = np.prod(1 - rates) * (z + b @ m)
    expected = z.copy()
    for c, v in zip(rates, m, strict=True):
        expected = (1 - c) * expected + c * np.outer(expected @ v, v)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_lm_ma_noise_undoes_the_product() -> None:
    es = LMMA(np.zeros(50), 1.0, seed=1)
    search = es.search
    search.state.directions[:] = directions(search.c_d.size, 50)
    search.state.updates = 100
    out = np.empty((search.population_size, 50))
    search.sample(out, 0)
    draws = search.population.draws
    for k in range(draws):
        z = search._kernel.noise_sum(np.eye(draws)[k], 50, 0, 1, 0)
        y = out[k].copy()
        search._invert(y)
        np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-4)


def test_lm_cma_factor_and_inverse_undo_each_other() -> None:
    """A of all stored pairs and A^-1, for paths long and short and nearly parallel."""
    rng = np.random.default_rng(2)
    n, k, c_1 = 60, 20, 0.05
    paths = rng.standard_normal((k, n)) * np.logspace(0, 2, k)[:, None]
    paths[5:] += 300 * rng.standard_normal(n)
    t, b = inverse_paths(paths @ paths.T, c_1)
    assert np.array_equal(t, np.tril(t))
    v, a = t @ paths, math.sqrt(1 - c_1)
    forward, backward = np.eye(n), np.eye(n)
    for i in range(k):
        # V_i is A_{i-1}^-1 P_i.
        np.testing.assert_allclose(v[i], backward @ paths[i], rtol=1e-9, atol=1e-9)
        length = v[i] @ v[i]
        e = (1 - 1 / math.sqrt(1 + c_1 * length / (1 - c_1))) / (a * length)
        forward = a * forward + b[i] * np.outer(paths[i], v[i])
        backward = backward / a - e * np.outer(v[i], v[i] @ backward)
    np.testing.assert_allclose(backward @ forward, np.eye(n), atol=1e-10)
    covariance = np.eye(n)
    for p in paths:  # what the factor stands for: C_i = (1 - c_1) C_{i-1} + c_1 P_i P_i'
        covariance = (1 - c_1) * covariance + c_1 * np.outer(p, p)
    np.testing.assert_allclose(
        forward @ forward.T, covariance, rtol=1e-9, atol=1e-9 * covariance.max()
    )


def test_a_zero_path_says_nothing() -> None:
    t, b = inverse_paths(np.diag([1.0, 0.0, 2.0]), 0.1)
    assert np.isfinite(t).all()
    assert b[1] == 0


def evaluations_on_an_ellipsoid(strategy: type[AskTell], rotation: np.ndarray, seed: int) -> float:
    n = rotation.shape[0]
    weights = np.logspace(0, 3, n)
    es = strategy(rotation.T @ np.ones(n), 0.5, seed=seed, stagnation_window="off")
    while not es.stop(target=1e-3, max_evaluations=100_000):
        es.tell((es.ask() @ rotation.T) ** 2 @ weights)
    assert es.best_value <= 1e-3
    return es.evaluations


@pytest.mark.parametrize("strategy", [RmES, SDAES, LMMA, CMAES, ActiveCMA, FastCMA])
def test_rotated_problems_are_no_harder(strategy: type[AskTell]) -> None:
    """Means of ten runs each differ by less than five standard errors (about one in 10^4)."""
    n = 8
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((n, n)))[0]
    plain, rotated = (
        np.log(
            [evaluations_on_an_ellipsoid(strategy, r, seed) for seed in range(first, first + 10)]
        )
        for r, first in ((np.eye(n), 100), (rotation, 200))
    )
    error = math.sqrt((plain.var(ddof=1) + rotated.var(ddof=1)) / 10)
    assert abs(plain.mean() - rotated.mean()) < 5 * error


def test_sep_cma_feels_a_rotation() -> None:
    n = 8
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((n, n)))[0]
    plain = evaluations_on_an_ellipsoid(SepCMA, np.eye(n), 1)
    assert evaluations_on_an_ellipsoid(SepCMA, rotation, 1) > 1.5 * plain
