"""The kernel on a manifold: Euclidean space is the plain kernel, curved ones keep their laws."""

from __future__ import annotations

import numpy as np
import pytest

from mmes.kernels import (
    Noise,
    RecombineCall,
    ReferenceKernel,
    SampleCall,
    ScaleCall,
    StepLaw,
    choose_kernel,
)
from mmes.kernels.manifold import ManifoldKernel
from mmes.spaces.boxes import Clip
from mmes.spaces.manifolds import Euclidean, Grassmann

LAMBDA, DRAWS, ROWS = 9, 5, 6


def law(rng: np.random.Generator) -> StepLaw:
    return StepLaw(
        isotropic=0.8,
        rows=rng.integers(-1, ROWS, (DRAWS, 4)),
        factors=rng.standard_normal((DRAWS, 4)).astype(np.float32),
    )


def generation(kernel, mean: np.ndarray, rng: np.random.Generator, sigma: float = 0.2):
    """Sample and recombine once; return the population, the new mean, path and archive row."""
    archive = rng.standard_normal((ROWS, mean.size)).astype(np.float32)
    path = rng.standard_normal(mean.size)
    if isinstance(kernel, ManifoldKernel):
        point = mean.reshape(kernel.manifold.shape)
        path = kernel.manifold.proj(point, path.reshape(point.shape)).ravel()
    population, row = np.empty((LAMBDA, mean.size)), np.empty(mean.size, dtype=np.float32)
    kernel.sample(SampleCall(population, DRAWS, mean, sigma, archive, law(rng), None, 7, 3))
    parents, weights = np.array([6, 1, 3, 0]), np.array([0.4, 0.3, 0.2, 0.1])
    new_mean, new_path = mean.copy(), path.copy()
    kernel.recombine(RecombineCall(population, parents, weights, new_mean, new_path, 0.9, 1.7, row))
    return population, new_mean, new_path, row


@pytest.mark.parametrize("name", ["reference", "native"])
def test_euclidean_space_is_the_plain_kernel(name):
    mean = np.random.default_rng(1).standard_normal(24)
    plain = generation(choose_kernel(name), mean, np.random.default_rng(2))
    kernel = ManifoldKernel(choose_kernel(name), Euclidean(6, 4))
    wrapped = generation(kernel, mean, np.random.default_rng(2))
    for ours, theirs in zip(wrapped, plain, strict=True):
        np.testing.assert_allclose(
            ours, theirs, rtol=0, atol=1e-6 * 1e-8 if ours.dtype == float else 1e-6
        )


def test_candidates_lie_on_the_manifold_in_mirrored_pairs(manifold, rng):
    kernel = ManifoldKernel(ReferenceKernel(), manifold)
    mean = manifold.random_point(rng)
    population, new_mean, path, row = generation(kernel, mean.ravel(), rng)
    for candidate in population.reshape(LAMBDA, *manifold.shape):
        assert manifold.distance_from(candidate) < 1e-12
    tangents = kernel.tangents
    np.testing.assert_allclose(manifold.proj(mean, tangents), tangents, atol=1e-13)
    np.testing.assert_array_equal(tangents[DRAWS:], -tangents[: LAMBDA - DRAWS])
    shaped_mean, shaped_path = new_mean.reshape(manifold.shape), path.reshape(manifold.shape)
    assert manifold.distance_from(shaped_mean) < 1e-12
    np.testing.assert_allclose(manifold.proj(shaped_mean, shaped_path), shaped_path, atol=1e-12)
    np.testing.assert_array_equal(row, path.astype(np.float32))


def test_the_mean_follows_the_weighted_tangents(rng):
    manifold = Grassmann(10, 2)
    kernel = ManifoldKernel(ReferenceKernel(), manifold)
    mean = manifold.random_point(rng)
    _, new_mean, _, _ = generation(kernel, mean.ravel(), rng)
    sixth, first, third, zeroth = kernel.tangents[[6, 1, 3, 0]]
    step = 0.4 * sixth + 0.3 * first + 0.2 * third + 0.1 * zeroth
    expected = manifold.retract_mean(mean, step)
    np.testing.assert_allclose(new_mean.reshape(10, 2), expected, atol=1e-14)


def test_a_candidate_is_the_same_in_any_memory(manifold, rng):
    kernel = ManifoldKernel(ReferenceKernel(), manifold)
    mean = manifold.random_point(rng).ravel()
    steps = law(rng)
    first, larger = np.empty((LAMBDA, mean.size)), np.empty((LAMBDA + 1, mean.size))
    call = SampleCall(first, DRAWS, mean, 0.2, None, steps, None, 7, 3)
    kernel.sample(call)
    kernel.sample(call._replace(population=larger[1:]))
    np.testing.assert_array_equal(first, larger[1:])


def test_what_a_manifold_cannot_do_is_said():
    kernel = ManifoldKernel(ReferenceKernel(), Grassmann(4, 2))
    mean = np.eye(4, 2).ravel()
    box = Clip(np.full(8, -1.0), np.ones(8))
    steps = law(np.random.default_rng(0))
    call = SampleCall(np.empty((LAMBDA, 8)), DRAWS, mean, 1.0, None, steps, box, 1, 0)
    with pytest.raises(ValueError, match=r"bounds cannot be combined with Grassmann\(4, 2\)"):
        kernel.sample(call)
    with pytest.raises(ValueError, match="scaling='adaptive' cannot be combined"):
        kernel.adapt_scale(ScaleCall(np.ones(8), np.ones(5), 0.1, Noise.NORMAL, 1, 0))
    assert kernel.name == "reference on Grassmann(4, 2)"
