"""Scalar products and weighted sums: the native kernel against the numpy definition."""

from __future__ import annotations

import numpy as np
import pytest

from mmes.kernels import (
    Noise,
    NoiseWithin,
    RecombineCall,
    ReferenceKernel,
    SampleCall,
    StepLaw,
    native_problem,
)
from mmes.kernels.reference import isotropic_parts
from mmes.spaces.boxes import Clip

if native_problem() is not None:
    pytest.skip("the native kernel is not built", allow_module_level=True)

from mmes.kernels.native import NativeKernel, simd_levels

DIMENSIONS = (1, 7, 64, 1000, 1025, 5000)
SEED, GENERATION = 11, 5


def vectors(m: int, n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((m, n)).astype(np.float32)


@pytest.fixture(params=simd_levels())
def native(request: pytest.FixtureRequest) -> NativeKernel:
    return NativeKernel(simd=request.param)


@pytest.mark.parametrize("noise", list(Noise))
@pytest.mark.parametrize("n", DIMENSIONS)
def test_noise_sums_agree(native: NativeKernel, n: int, noise: Noise) -> None:
    weights = np.array([0.5, 0.0, -0.25])
    found = native.noise_sum(weights, n, noise, SEED, GENERATION)
    expected = ReferenceKernel().noise_sum(weights, n, noise, SEED, GENERATION)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    z = isotropic_parts(noise, np.arange(3), n, SEED, GENERATION)[2].astype(float)
    only = native.noise_sum(np.array([0.0, 0.0, 2.0]), n, noise, SEED, GENERATION)
    np.testing.assert_allclose(only, 2 * z, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("n", DIMENSIONS)
def test_noise_within_walls_agrees(
    native: NativeKernel, n: int, scaled: bool, threads: int
) -> None:
    rng = np.random.default_rng(n)
    box = Clip(np.full(n, -1.0), np.linspace(0.2, 2.0, n))
    population = box.map_points(rng.standard_normal((5, n)))
    mean, scale = 0.1 * rng.standard_normal(n), rng.uniform(0.5, 2.0, n)
    weights = np.array([0.5, -0.25, 0.0, 0.3, 0.1])
    call = NoiseWithin(
        population,
        weights,
        3,
        mean,
        scale if scaled else None,
        0.7,
        box,
        Noise.NORMAL,
        SEED,
        GENERATION,
    )
    native.threads = threads
    expected, share = ReferenceKernel().noise_within(call)
    for keeps in (False, True):
        if keeps:  # the noise of a sampled generation is kept, and gives the same bits
            made = np.empty((5, n))
            law = StepLaw(1.0)
            native.sample(
                SampleCall(made, 3, mean, 1.0, None, law, None, SEED, GENERATION, None, True)
            )
        found, left = native.noise_within(call)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        assert left == pytest.approx(share, rel=1e-5)
    assert share > 0


def test_noise_within_walls_is_the_noise_sum_inside_and_nothing_on_them(
    native: NativeKernel,
) -> None:
    n, weights = 300, np.array([0.5, -0.25, 0.3, 0.1])
    mean = np.zeros(n)
    wide = Clip(np.full(n, -9.0), np.full(n, 9.0))
    narrow = Clip(np.zeros(n), np.zeros(n))
    for kernel in (native, ReferenceKernel()):
        call = NoiseWithin(
            np.ones((4, n)), weights, 3, mean, None, 0.7, wide, Noise.NORMAL, SEED, GENERATION
        )
        found, share = kernel.noise_within(call)
        by_draw = np.array([0.4, -0.25, 0.3])
        expected = kernel.noise_sum(by_draw, n, Noise.NORMAL, SEED, GENERATION)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
        assert share == pytest.approx(1.0, rel=1e-12)
        found, share = kernel.noise_within(call._replace(population=np.zeros((4, n)), box=narrow))
        assert share == 0.0
        assert not found.any()


@pytest.mark.parametrize("n", DIMENSIONS)
def test_step_squares_agree(native: NativeKernel, n: int) -> None:
    population, mean = vectors(5, n).astype(float), vectors(1, n, 1)[0].astype(float)
    parents, weights = np.array([4, 0, 2]), np.array([0.5, 0.3, 0.2])
    expected = weights @ ((population[parents] - mean) / 0.7) ** 2
    for kernel in (native, ReferenceKernel()):
        found = kernel.step_squares(
            RecombineCall(population, parents, weights, mean, mean, 0.0, 1 / 0.7)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("n", DIMENSIONS)
def test_projections_agree(native: NativeKernel, n: int) -> None:
    v = vectors(9, n)
    rows = np.array([[0, 8, -1, 3, 3, 1], [-1] * 6, [2, 4, 5, 6, 7, 8]])
    found = native.project(v, rows, Noise.NORMAL, SEED, GENERATION)
    expected = ReferenceKernel().project(v, rows, Noise.NORMAL, SEED, GENERATION)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * np.sqrt(n))
    assert (found[rows < 0] == 0).all()


@pytest.mark.parametrize("n", DIMENSIONS)
def test_gram_matrices_agree(native: NativeKernel, n: int) -> None:
    v = vectors(7, n)
    expected = v.astype(float) @ v.T.astype(float)
    np.testing.assert_allclose(native.gram(v), expected, rtol=1e-12, atol=1e-12 * n)
    np.testing.assert_allclose(
        native.gram(v, accurate=False), expected, rtol=1e-4, atol=1e-5 * np.sqrt(n)
    )


@pytest.mark.parametrize("n", DIMENSIONS)
def test_accumulate_combine_and_deflate_agree(native: NativeKernel, n: int) -> None:
    step = np.random.default_rng(1).standard_normal(n)
    coefficients = np.random.default_rng(2).standard_normal((2, 5))
    results = []
    for kernel in (native, ReferenceKernel()):
        v, u, out = vectors(5, n), step.copy(), np.zeros((4, n), dtype=np.float32)
        kernel.accumulate(v, np.linspace(0.5, 0.9, 5), np.linspace(0.1, 0.2, 5), u)
        kernel.combine(out, np.array([3, 1]), coefficients, v)
        kernel.deflate(v, 0.9, 0.3, u)
        results.append((v, out, u))
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)


def test_deflation_leaves_a_zero_vector_alone(native: NativeKernel) -> None:
    for kernel in (native, ReferenceKernel()):
        v, u = np.zeros((2, 5), dtype=np.float32), np.zeros(5)
        kernel.deflate(v, 0.9, 0.3, u)
        assert not v.any()
        assert not u.any()


@pytest.mark.parametrize("n", [100, 70_000])
def test_the_number_of_threads_changes_no_bit(n: int) -> None:
    v = vectors(6, n)
    rows = np.tile(np.arange(6), (3, 1))
    results = []
    for threads in (1, 2, 5):
        kernel = NativeKernel(threads)
        total = kernel.noise_sum(np.ones(3), n, Noise.NORMAL, SEED, 0)
        copy, out = v.copy(), np.zeros((1, n), dtype=np.float32)
        kernel.accumulate(copy, np.full(6, 0.9), np.full(6, 0.1), total)
        kernel.combine(out, np.array([0]), np.ones((1, 6)), v)
        results.append(
            [
                kernel.project(v, rows, Noise.NORMAL, SEED, 0),
                kernel.gram(v),
                kernel.gram(v, accurate=False),
                total,
                copy,
                out,
            ]
        )
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_every_simd_level_gives_the_same_bits() -> None:
    v, rows = vectors(6, 3001), np.tile(np.arange(6), (3, 1))
    found = []
    for level in simd_levels():
        kernel = NativeKernel(simd=level)
        q, u = v.copy(), v[0].astype(float)
        kernel.deflate(q, 0.9, 0.3, u)
        found.append(
            [
                kernel.project(v, rows, Noise.NORMAL, SEED, 0),
                kernel.gram(v),
                kernel.gram(v, False),
                q,
                u,
                kernel.dot(u, u),
            ]
        )
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n", DIMENSIONS)
def test_products_of_vectors_agree(native: NativeKernel, n: int) -> None:
    rng = np.random.default_rng(n)
    a, b, rows = rng.standard_normal(n), rng.standard_normal(n), vectors(4, n)
    for kernel in (native, ReferenceKernel()):
        assert kernel.dot(a, b) == pytest.approx(float(a @ b), abs=1e-12 * n)
        np.testing.assert_allclose(kernel.products(rows, a), rows @ a, atol=1e-12 * n)
        total = a.copy()
        kernel.add_rows(total, np.arange(4.0), rows)
        np.testing.assert_allclose(total, a + np.arange(4.0) @ rows, atol=1e-12)


def test_the_scale_may_multiply_the_whole_step(native: NativeKernel) -> None:
    n = 100
    archive, scale = vectors(2, n), np.linspace(0.1, 3.0, n)
    rows, factors = np.array([[0, 1]]), np.array([[0.5, -2.0]], dtype=np.float32)
    law = StepLaw(0.7, rows, factors, scale=scale, scale_rows=True)
    plain = StepLaw(0.7, rows, factors)
    for kernel in (native, ReferenceKernel()):
        scaled, unscaled = np.empty((1, n)), np.empty((1, n))
        kernel.sample(SampleCall(scaled, 1, np.zeros(n), 1.0, archive, law, None, SEED, 0))
        kernel.sample(SampleCall(unscaled, 1, np.zeros(n), 1.0, archive, plain, None, SEED, 0))
        np.testing.assert_allclose(scaled, scale * unscaled, rtol=1e-6)


def test_rows_outside_are_refused(native: NativeKernel) -> None:
    with pytest.raises(ValueError, match="a row lies outside the vectors"):
        native.project(vectors(2, 5), np.array([[2]]), Noise.NORMAL, 1, 0)
    with pytest.raises(ValueError, match="a target lies outside"):
        native.combine(np.zeros((1, 5), np.float32), np.array([1]), np.ones((1, 2)), vectors(2, 5))
