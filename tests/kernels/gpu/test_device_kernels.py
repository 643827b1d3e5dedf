"""Kernels whose vectors live on a device, against the numpy reference, their oracle.

Without a GPU the torch operations run on the CPU, and the Triton kernels in Triton's interpreter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mmes.base.randomness import Stream
from mmes.kernels import (
    DrawnRows,
    Lessons,
    Noise,
    NoiseWithin,
    PathCall,
    RecombineCall,
    ReducingKernel,
    ReferenceKernel,
    SampleCall,
    ScaleCall,
    StepLaw,
)
from mmes.spaces.boxes import BOXES, Box, Clip, Start

REFERENCE = ReferenceKernel()
SIZES = [1, 65, 1100]
SEED, GENERATION = (7 << 40) + 12345, 6


def directions(kernel: Any, rows: np.ndarray) -> Any:
    there = kernel.directions(*rows.shape)
    kernel.assign(there, rows)
    return there


def make_law(n: int, draws: int, noise: Noise = Noise.NORMAL, scaled: bool = False) -> StepLaw:
    rng = np.random.default_rng(n + draws)
    rows = rng.integers(-1, 7, (draws, 5))
    factors = rng.standard_normal((draws, 5)).astype(np.float32)
    scale = np.exp(rng.standard_normal(n)) if scaled else None
    return StepLaw(0.8, rows, factors, noise, scale)


def sampled(
    kernel: Any,
    n: int,
    candidates: int,
    draws: int,
    law: StepLaw,
    box: Box | None = None,
    sigma: float = 0.7,
    rows: np.ndarray | None = None,
) -> np.ndarray:
    rng = np.random.default_rng(n)
    mean, archive = rng.standard_normal(n), rng.standard_normal((7, n)).astype(np.float32)
    population = kernel.population(candidates if rows is None else len(rows), n)
    population[:] = np.nan
    if law.scale is not None:
        law = law._replace(scale=kernel.from_host(law.scale))
    kernel.sample(
        SampleCall(
            population,
            draws,
            kernel.from_host(mean),
            sigma,
            directions(kernel, archive),
            law,
            box,
            SEED,
            GENERATION,
            rows,
        )
    )
    return np.array(kernel.to_host(population))


@pytest.mark.parametrize("noise", list(Noise))
@pytest.mark.parametrize("n", SIZES)
def test_samples_agree_with_the_reference(kernel: Any, n: int, noise: Noise) -> None:
    for candidates, draws, scaled in ((6, 3, False), (7, 4, True), (5, 5, False)):
        law = make_law(n, draws, noise, scaled)
        expected = sampled(REFERENCE, n, candidates, draws, law)
        found = sampled(kernel, n, candidates, draws, law)
        np.testing.assert_allclose(found, expected, rtol=3e-6, atol=3e-6)


def test_samples_in_single_precision_are_those_in_double_rounded(single: Any, kernel: Any) -> None:
    law = make_law(500, 4)
    found = sampled(single, 500, 7, 4, law)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, sampled(kernel, 500, 7, 4, law).astype(np.float32))


@pytest.mark.parametrize("draws", [5, 7, 9])
def test_rows_select_candidates_without_changing_them(kernel: Any, draws: int) -> None:
    n, candidates = 300, 9
    law = make_law(n, draws)
    everyone = sampled(kernel, n, candidates, draws, law)
    for rows in ([3], [8, 0], [7, 2, 5, 1], list(range(9))[::-1]):
        found = sampled(kernel, n, candidates, draws, law, rows=np.array(rows))
        np.testing.assert_array_equal(found, everyone[rows])


@pytest.mark.parametrize("scale_rows", [False, True])
def test_every_part_of_a_law_counts(kernel: Any, scale_rows: bool) -> None:
    n, draws = 200, 4
    each = np.linspace(0.1, 0.9, draws, dtype=np.float32)
    law = make_law(n, draws, scaled=True)._replace(scale_rows=scale_rows, isotropic_each=each)
    drawn = DrawnRows(np.linspace(1 / 9, 1, 9), np.array([4, 2, 6, 0]), 5, 0.5)
    for one in (law, StepLaw(0.8, drawn=drawn), StepLaw(0.5)):
        expected = sampled(REFERENCE, n, 2 * draws, draws, one)
        found = sampled(kernel, n, 2 * draws, draws, one)
        np.testing.assert_allclose(found, expected, rtol=3e-6, atol=3e-6)


def test_a_later_generation_and_the_largest_seed(kernel: Any) -> None:
    population, n = kernel.population(2, 100), 100
    expected = np.empty((2, n))
    for k, out in ((kernel, population), (REFERENCE, expected)):
        k.sample(SampleCall(out, 2, k.vector(n), 1.0, None, StepLaw(), None, 2**64 - 1, 2**31 + 5))
    np.testing.assert_allclose(kernel.to_host(population), expected, rtol=3e-6, atol=3e-6)


def make_box(treatment: type[Box], n: int) -> Box:
    lower, upper = np.full(n, -0.3), np.full(n, 1.1)
    lower[:50], upper[50:100] = -np.inf, np.inf
    lower[100:110] = upper[100:110] = 0.25
    return treatment.around(lower, upper, Start(np.full(n, 0.25), 0.1))


@pytest.mark.parametrize("treatment", [box for box in BOXES.values() if not box.maps_points])
def test_samples_stay_in_the_box(kernel: Any, single: Any, treatment: type[Box]) -> None:
    n, candidates = 300, 9
    box = make_box(treatment, n)
    law = make_law(n, 5)
    for sigma in (0.1, 1.0, 1e3, 1e12):
        expected = sampled(REFERENCE, n, candidates, 5, law, box, sigma)
        for k in (kernel, single):
            found = sampled(k, n, candidates, 5, law, box, sigma)
            assert np.isfinite(found).all()
            # In float64: a float32 next to 1.1 may lie outside.
            wide = found.astype(np.float64)
            assert ((wide >= box.lower) & (wide <= box.upper)).all()
            tolerance = 3e-6 * min(sigma, 1.0) + 2e-6 * sigma
            np.testing.assert_allclose(wide, expected, rtol=1e-5, atol=tolerance)


@dataclass(frozen=True)
class Halved(Box):
    """A treatment that no kernel knows."""

    name = "halved"

    def map_points(self, points: np.ndarray) -> np.ndarray:
        return np.clip(points / 2, self.lower, self.upper)


@pytest.mark.parametrize("treatment", [*BOXES.values(), Halved], ids=lambda box: box.name)
@pytest.mark.parametrize("n", [1, 400])
def test_points_are_mapped_as_on_the_host(kernel: Any, treatment: type[Box], n: int) -> None:
    box = make_box(treatment, n)
    points = np.random.default_rng(1).standard_normal((5, n)) * [[0.1], [1], [3], [100], [1e6]]
    points[0, : n // 2] = np.linspace(-0.4, 1.2, n // 2)
    there, image = kernel.population(5, n), kernel.population(5, n)
    kernel.assign(there, points)
    kernel.confine(image, there, box)
    np.testing.assert_allclose(
        kernel.to_host(image), box.map_points(points), rtol=1e-12, atol=1e-12
    )
    kernel.confine(there, there, box)  # in place
    np.testing.assert_array_equal(kernel.to_host(image), kernel.to_host(there))


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_recombination_agrees_with_the_reference(kernel: Any, n: int, archived: bool) -> None:
    rng = np.random.default_rng(n)
    population, parents = rng.standard_normal((9, n)), np.array([3, 0, 8, 5])
    weights = np.array([0.6, 0.3, 0.2, -0.1])
    states = []
    for k in (REFERENCE, kernel):
        points = k.population(9, n)
        k.assign(points, population)
        mean, path = k.from_host(np.linspace(-1, 1, n)), k.from_host(np.linspace(1, 2, n))
        rows = k.directions(3, n)
        row = k.row(rows, 1) if archived else None
        call = RecombineCall(points, parents, weights, mean, path, 0.9, 2.5, row)
        squares = k.step_squares(call)
        k.recombine(call)
        states.append([k.to_host(h) for h in (mean, path, rows, squares)])
    for a, b in zip(*states, strict=True):
        tolerance = 1e-6 if a.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)
    assert states[1][2][1].any() == archived
    assert not states[1][2][[0, 2]].any()


@pytest.mark.parametrize("noise", list(Noise))
def test_scales_and_noise_sums_agree_with_the_reference(kernel: Any, noise: Noise) -> None:
    weights, n = np.array([0.3, -0.2, 0.0, 0.4, -0.5]), 1500
    found = []
    for k in (REFERENCE, kernel):
        scale = k.from_host(np.linspace(0.5, 2.0, n))
        k.adapt_scale(ScaleCall(scale, weights, 0.05, noise, SEED, GENERATION))
        found.append((k.to_host(scale), k.to_host(k.noise_sum(weights, n, noise, SEED, 3))))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-6)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("noise", list(Noise))
@pytest.mark.parametrize("taught", [False, True])
def test_a_path_follows_the_noise_as_in_the_reference(
    make_kernel: Any, noise: Noise, taught: bool
) -> None:
    n, weights = 1500, np.array([0.3, -0.2, 0.0, 0.4, -0.5])
    for mean_dtype, tolerance in (("float64", 1e-6), ("float32", 3e-6)):
        found = []
        for k in (REFERENCE, make_kernel("float32", mean_dtype)):
            path = k.from_host(np.linspace(-1.0, 1.0, n))
            scale = k.from_host(np.linspace(0.5, 2.0, n))
            call = PathCall(path, weights, 0.9, 1.7, noise, SEED, GENERATION)
            other = ScaleCall(scale, weights[::-1].copy(), 0.3, noise, SEED, GENERATION)
            k.follow_noise(call, other if taught else None)
            found.append((k.to_host(path), k.to_host(scale), k.dot(path, path)))
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("noise", list(Noise))
@pytest.mark.parametrize("followed", [False, True])
def test_lessons_agree_with_the_reference(make_kernel: Any, noise: Noise, followed: bool) -> None:
    n, weights = 1500, np.array([0.3, -0.2, 0.0, 0.4, -0.5])
    for mean_dtype, tolerance in (("float64", 1e-5), ("float32", 3e-5)):
        found = []
        for k in (REFERENCE, make_kernel("float32", mean_dtype)):
            path, scale = k.vector(n), k.from_host(np.linspace(0.5, 2.0, n))
            lessons = Lessons(k.from_host(np.linspace(-5, 5, n)), 0.9, 0.4, 2.0, 0.25, 9.0, 16.0)
            sums = []
            for generation in range(3):
                call = ScaleCall(scale, weights, 0.05, noise, SEED, generation, lessons)
                step = PathCall(path, weights, 0.9, 1.7, noise, SEED, generation)
                sums.append(k.follow_noise(step, call) if followed else k.adapt_scale(call))
            found.append((k.to_host(path), k.to_host(scale), k.to_host(lessons.path), sums))
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n", [1, 65, 1000])
def test_noise_within_walls_agrees_with_the_reference(kernel: Any, n: int) -> None:
    rng = np.random.default_rng(n)
    box = Clip(np.full(n, -1.0), np.full(n, 0.5))
    points, mean = box.map_points(rng.standard_normal((5, n))), np.zeros(n)
    weights, found = np.array([0.5, -0.25, 0.0, 0.3, 0.1]), []
    for k in (REFERENCE, kernel):
        population = k.population(5, n)
        k.assign(population, points)
        scale = k.from_host(np.linspace(0.5, 2.0, n))
        call = NoiseWithin(
            population,
            weights,
            3,
            k.from_host(mean),
            scale,
            0.7,
            box,
            Noise.NORMAL,
            SEED,
            GENERATION,
        )
        total, share = k.noise_within(call)
        found.append((k.to_host(total), share))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-5, atol=1e-6)
    assert found[1][1] == pytest.approx(found[0][1], rel=1e-5)


@pytest.mark.parametrize("n", [1, 65, 1000])
def test_reductions_agree_with_the_reference(kernel: Any, n: int) -> None:
    assert isinstance(kernel, ReducingKernel)
    rng = np.random.default_rng(n)
    v, step = rng.standard_normal((9, n)).astype(np.float32), rng.standard_normal(n)
    rows = np.array([[0, 8, -1, 3, 3, 1], [-1] * 6, [2, 4, 5, 6, 7, 8]])
    coefficients = rng.standard_normal((2, 9))
    results = []
    for k in (REFERENCE, kernel):
        vectors, u, out = directions(k, v), k.from_host(step), k.directions(4, n)
        small = [
            k.project(vectors, rows, Noise.NORMAL, SEED, GENERATION),
            k.gram(vectors),
            k.gram(vectors, accurate=False),
            k.products(vectors, u),
            np.array([k.dot(u, u), k.largest(u)]),
            k.normals(5, SEED, Stream.DIRECTION_COUNT, 2),
        ]
        k.accumulate(vectors, np.linspace(0.5, 0.9, 9), np.linspace(0.1, 0.2, 9), u)
        k.combine(out, np.array([3, 1]), coefficients, vectors)
        k.deflate(vectors, 0.9, 0.3, u)
        k.add_rows(u, np.arange(9.0), vectors)
        scale = k.from_host(np.abs(step) + 1)
        k.adapt_deviations(scale, (0.7, 0.2, 0.1), u, k.copy(scale))
        k.multiply(u, scale)
        k.divide(u, k.from_host(np.full(n, 3.0)))
        k.blend(u, 0.5, 2.0, scale)
        filled = k.directions(3, n)
        k.fill_normals(filled, 0.1, SEED, Stream.INITIAL_DIRECTIONS)
        large = [k.to_host(h) for h in (vectors, out, u, scale, filled)]
        results.append(small + large)
    for expected, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=5e-6, atol=5e-6 * np.sqrt(n))
    assert (results[1][0][rows < 0] == 0).all()


def test_deflation_leaves_a_zero_vector_alone(kernel: Any) -> None:
    v, u = kernel.directions(2, 5), kernel.vector(5)
    kernel.deflate(v, 0.9, 0.3, u)
    assert not kernel.to_host(v).any()
    assert not kernel.to_host(u).any()


def test_the_tiles_of_a_long_vector_fit_together(
    kernel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = make_law(1100, 4, scaled=True)
    whole = sampled(kernel, 1100, 7, 4, law)
    monkeypatch.setattr("mmes.kernels.gpu.torch_vectors.TILE", 7 * 128)
    np.testing.assert_array_equal(sampled(kernel, 1100, 7, 4, law), whole)


def test_directions_in_bfloat16_are_rounded_and_mixed(make_kernel: Any) -> None:
    import torch

    kernel, n = make_kernel("float64"), 200
    rng = np.random.default_rng(1)
    points, rows = kernel.population(3, n), kernel.directions(7, n, "bfloat16")
    kernel.assign(points, rng.standard_normal((3, n)))
    path = kernel.from_host(rng.standard_normal(n))
    for row in range(7):
        call = RecombineCall(
            points, np.array([2, 0]), np.array([0.7, 0.3]), kernel.vector(n), path, 0.9, 2.5,
            kernel.row(rows, row),
        )  # fmt: skip
        kernel.recombine(call)
        expected = path.to(torch.float32).to(torch.bfloat16)
        assert torch.equal(rows[row], expected)
        assert not torch.equal(rows[row].to(torch.float64), path)
    # A generation that mixes them is that of the same numbers in float32.
    wide = directions(kernel, kernel.to_host(rows))
    found = []
    for archive in (rows, wide):
        population = kernel.population(6, n)
        law = make_law(n, 3)
        call = SampleCall(
            population, 3, kernel.vector(n), 0.7, archive, law, None, SEED, GENERATION
        )
        kernel.sample(call)
        found.append(kernel.to_host(population))
    np.testing.assert_array_equal(*found)


def test_means_in_single_precision(make_kernel: Any) -> None:
    wide, short, n = make_kernel("float64"), make_kernel("float64", "float32"), 300
    rng = np.random.default_rng(2)
    points, scales = rng.standard_normal((5, n)), np.exp(rng.standard_normal(n))
    parents, weights = np.array([4, 1]), np.array([0.75, 0.25])
    found = []
    for k in (wide, short):
        population, rows = k.population(5, n), k.directions(2, n)
        k.assign(population, points)
        mean, path, scale = k.from_host(points[0]), k.vector(n), k.from_host(scales)
        assert mean.dtype == path.dtype == scale.dtype
        call = RecombineCall(population, parents, weights, mean, path, 0.9, 2.5, k.row(rows, 1))
        squares = k.step_squares(call)
        k.recombine(call)
        k.adapt_scale(ScaleCall(scale, np.array([0.5, -0.5]), 0.05, Noise.NORMAL, SEED, 3))
        law = StepLaw(0.8, scale=scale)
        k.sample(SampleCall(population, 3, mean, 0.7, rows, law, None, SEED, GENERATION))
        k.blend(path, 0.5, 2.0, k.noise_sum(weights, n, Noise.NORMAL, SEED, 3))
        k.deflate(rows, 0.9, 0.3, path)
        sums = np.array([k.dot(path, path), k.largest(path), *k.products(rows, path)])
        found.append(
            [sums, *(k.to_host(v) for v in (population, rows, mean, path, scale, squares))]
        )
    assert found[1][3].dtype == np.float32
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)
