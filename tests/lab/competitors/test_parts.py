"""Laws of the shared parts: random numbers, repair, differential evolution, crossover, grouping."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from mmes.base import randomness
from mmes.base.randomness import Stream
from mmes.kernels import choose_kernel
from mmes.lab.competitors import differential_grouping
from mmes.lab.competitors.parts.differential_evolution import (
    crossover_mask,
    normals_between,
    partners,
    rand_1_bin,
)
from mmes.lab.competitors.parts.draws import Draws
from mmes.lab.competitors.parts.genetic import blend, moved_inside, mutate_breeder, mutate_gaussian
from mmes.lab.competitors.parts.grouping import random_groups
from mmes.lab.competitors.parts.sansde import (
    Counter,
    CrossoverRecord,
    Part,
    in_context,
    sansde,
    scale_factors,
)
from mmes.lab.competitors.parts.setting import Incumbent, reflect, told
from small import ellipsoid, rastrigin, setting


def test_numbers_are_those_of_their_address() -> None:
    plain, fast = Draws(7), Draws(7, choose_kernel("native").simd)  # type: ignore[attr-defined]
    for count_, step, part in ((1, 0, 0), (64, 3, 1), (1000, 2**31, 5)):
        expected = randomness.uniforms(count_, 7, Stream.CHOICE, step, part)
        assert np.array_equal(plain.uniforms(count_, Stream.CHOICE, step, part), expected)
        assert np.array_equal(fast.uniforms(count_, Stream.CHOICE, step, part), expected)
        normals = [d.normals(count_, Stream.CHOICE, step, part) for d in (plain, fast)]
        np.testing.assert_allclose(*normals, rtol=1e-5, atol=1e-6)
    assert sorted(plain.permutation(50, Stream.GROUPS, 1)) == list(range(50))


def test_cauchy_numbers_have_cauchy_quartiles() -> None:
    """P(C < -1), P(C < 0), P(C < 1) = 1/4, 1/2, 3/4; 5 sigma of 20000: false alarm 2e-6."""
    numbers = Draws(3).cauchys(20_000, Stream.LOCAL_STEP, 0)
    for limit, share in ((-1.0, 0.25), (0.0, 0.5), (1.0, 0.75)):
        assert abs((numbers < limit).mean() - share) < 5 * np.sqrt(share * (1 - share) / 20_000)


def test_repair_reflects_and_wraps() -> None:
    lower, upper = np.array([-1.0, -1.0, 2.0]), np.array([3.0, 3.0, 2.0])
    points = np.array([[3.5, -1.5, 2.5], [3.0 + 4.0 + 1.0, -1.0 - 8.0 - 0.5, 1.0], [0.0, 3.0, 2.0]])
    reflect(points, lower, upper)
    assert np.array_equal(points, [[2.5, -0.5, 2.0], [2.0, -0.5, 2.0], [0.0, 3.0, 2.0]])


def test_partners_differ_from_each_other_and_are_uniform() -> None:
    """Each of 10 members is each partner with 1/10; 5 sigma of 3000 per cell, 40 cells: 2e-5."""
    met = np.zeros((4, 10))
    for step in range(3000):
        found = partners(Draws(5), 10, 4, step)
        assert all(len(set(column)) == 4 for column in found.T)
        met[np.arange(4), found[:, 0]] += 1
    assert np.abs(met - 300).max() < 5 * np.sqrt(3000 * 0.09)


def test_crossover_takes_at_least_one_coordinate_at_its_rate() -> None:
    """5 sigma of 2000 * 20 coordinates: false alarm 6e-7."""
    rates = np.repeat([0.0, 0.3, 1.0], 2000)
    mask = crossover_mask(Draws(5), rates, 20, 1)
    assert mask.any(axis=1).all()
    assert (mask[:2000].sum(axis=1) == 1).all()
    assert mask[4000:].all()
    assert abs(mask[2000:4000].mean() - 0.3) < 5 * np.sqrt(0.21 / 40_000)
    assert np.unique(mask[:2000].argmax(axis=1)).size == 20


@pytest.mark.parametrize("mean", [0.0, 0.05, 0.5, 1.0])
def test_rates_are_normal_numbers_cut_to_the_interval(mean: float) -> None:
    """Mean of the truncated normal, by quadrature; 5 sigma of 5000: false alarm 6e-7."""
    found = normals_between(Draws(5), np.full(5000, mean), 0.1, 0.0, 1.0, 1)
    assert ((found > 0) & (found < 1)).all()
    grid = (np.arange(100_000) + 0.5) / 100_000
    density = np.exp(-0.5 * ((grid - mean) / 0.1) ** 2)
    expected = (grid * density).sum() / density.sum()
    assert abs(found.mean() - expected) < 5 * 0.1 / np.sqrt(5000)


def test_scale_factors_of_both_kinds() -> None:
    """Median of abs C is 1, of abs N(0.5, 0.3^2) 0.5018; 5 sigma of 5000 each: 1e-6."""
    normal = np.repeat([True, False], 5000)
    found = scale_factors(Draws(5), normal, 1)
    assert (found >= 0).all()
    assert abs((found[:5000] < 0.5018).mean() - 0.5) < 5 * 0.5 / np.sqrt(5000)
    assert abs((found[5000:] < 1.0).mean() - 0.5) < 5 * 0.5 / np.sqrt(5000)


def test_shares_of_sansde_follow_the_success_rates() -> None:
    counter = Counter()
    first = np.array([True, True, True, False, False])
    counter.count(first, np.array([True, True, False, False, True]))
    s1, f1, s2, f2 = 3.0, 2.0, 2.0, 2.0
    assert (counter.successes, counter.failures) == ([s1, s2], [f1, f2])
    written = s1 * (s2 + f2) / (s2 * (s1 + f1) + s1 * (s2 + f2))
    assert counter.share() == pytest.approx(written, rel=1e-15)
    assert Counter().share() == 0.5


def test_mean_crossover_rate_is_weighted_by_the_gains() -> None:
    record = CrossoverRecord()
    assert record.mean(0.4) == 0.4
    record.add(np.array([0.2, 0.6]), np.array([1.0, 3.0]))
    record.add(np.array([1.0]), np.array([4.0]))
    assert record.mean(0.4) == pytest.approx((0.2 + 1.8 + 4.0) / 8)


def test_sansde_moves_its_group_alone_and_the_best_never_gets_worse() -> None:
    place, group = setting(6), np.array([1, 4])
    start = np.linspace(-2, 2, 6)
    best = Incumbent(start.copy(), float(rastrigin(start[None, :])[0]))
    seen: list[np.ndarray] = []

    def function(points: np.ndarray) -> np.ndarray:
        seen.append(points)
        return rastrigin(points)

    part = np.random.default_rng(1).uniform(-5, 5, (10, 2))
    search = sansde(place, best, Part(group, part), 60, 0.5, count())
    new_part, values, rate = told(search, function)
    others = [0, 2, 3, 5]
    assert all((points[:, others] == start[others]).all() for points in seen)
    assert len(seen) == 61
    assert np.array_equal(rastrigin(in_context(start, group, new_part)), values)
    assert best.value == min(rastrigin(points).min() for points in seen)
    assert rastrigin(best.x[None, :])[0] == best.value
    assert 0 < rate < 1
    assert rate != 0.5


def test_sansde_without_gains_keeps_the_crossover_rate() -> None:
    best = Incumbent(np.zeros(3), 1.0)
    members = Part(np.arange(3), np.zeros((6, 3)))
    search = sansde(setting(3), best, members, 60, 0.35, count())
    assert told(search, lambda points: np.ones(len(points)))[2] == 0.35


def test_plain_differential_evolution_minimises() -> None:
    search = rand_1_bin(Draws(5), np.full(4, -5.0), np.full(4, 5.0), 20, 200, count())
    point, value = told(search, ellipsoid)
    assert value == ellipsoid(point[None, :])[0]
    assert value < 1e-3


def test_blend_crossover_is_uniform_on_the_cut_interval() -> None:
    place = setting(3)
    shares = np.array([1e-9, 0.5, 1 - 1e-9])
    child = blend(place, np.array([1.0, 4.0, -4.0]), np.array([2.0, 4.0, 4.0]), shares)
    assert child == pytest.approx([0.5, 4.0, 5.0], abs=1e-6)
    child = blend(place, np.full(3, -4.0), np.full(3, 4.0), shares)
    assert child == pytest.approx([-5.0, 0.0, 5.0], abs=1e-6)


def test_breeder_mutation_moves_one_coordinate_a_sum_of_powers_of_two() -> None:
    """Nothing moves with (15/16)^16 = 0.356; 5 sigma of 3000: false alarm 6e-7."""
    place, still = setting(5), 0
    for step in range(3000):
        child = np.zeros(5)
        mutate_breeder(place, child, step)
        moved = np.flatnonzero(child)
        still += moved.size == 0
        assert moved.size <= 1
        units = np.abs(child[moved]) / (0.1 * 10) * 2**15
        assert np.allclose(units, np.round(units))
        assert (units < 2**16).all()
    assert abs(still / 3000 - (15 / 16) ** 16) < 5 * np.sqrt(0.356 * 0.644 / 3000)


def test_gaussian_mutation_stays_inside_by_drawing_again() -> None:
    """From the lower wall the law is a half normal cut at 1 width; 5 sigma of 4000: 6e-7."""
    count_ = 4000
    places = np.full(count_, -5.0)
    lower, upper = np.full(count_, -5.0), np.full(count_, 5.0)
    moved = moved_inside(Draws(5), places, lower, upper, 1, 0)
    assert ((moved >= lower) & (moved <= upper)).all()
    grid = (np.arange(10_000) + 0.5) / 10_000
    density = np.exp(-0.5 * grid**2)
    mean = (grid * density).sum() / density.sum()
    assert abs(((moved + 5) / 10).mean() - mean) < 5 * 0.28 / np.sqrt(count_)
    children = np.zeros((50, 40))
    mutate_gaussian(setting(40), children, 4, 1)
    changed = (children != 0).sum(axis=1)
    assert changed.max() == 4
    assert changed.min() >= 1


def test_random_groups_cover_every_variable_once() -> None:
    groups = random_groups(Draws(5), 23, 5, 1)
    assert [group.size for group in groups] == [5, 5, 5, 5, 3]
    assert sorted(np.concatenate(groups)) == list(range(23))


def products(points: np.ndarray) -> np.ndarray:
    """Groups {0, 3, 5} and {1, 7}, the others separable."""
    return (
        (points[:, 0] + points[:, 3] - points[:, 5]) ** 2
        + points[:, 1] * points[:, 7]
        + (points[:, [2, 4, 6]] ** 2).sum(axis=1)
    )


@pytest.mark.parametrize("vectorized", [True, False])
def test_differential_grouping_finds_known_groups(vectorized: bool) -> None:
    calls = 0

    def function(points: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += len(points) if vectorized else 1
        return products(points) if vectorized else products(points[None, :])[0]

    found = differential_grouping(function, (np.full(8, -3.0), 5.0), vectorized=vectorized)
    assert [group.tolist() for group in found.groups] == [[0, 3, 5], [1, 7]]
    assert found.separable.tolist() == [2, 4, 6]
    assert [part.tolist() for part in found.parts] == [[0, 3, 5], [1, 7], [2, 4, 6]]
    # Each first variable costs 2, and 2 for each of those that are left.
    assert found.evaluations == calls == (2 + 14) + (2 + 8) + (2 + 4) + (2 + 2) + 2


def test_differential_grouping_of_extremes() -> None:
    box = (np.full(300, -1.0), np.full(300, 2.0))
    separable = differential_grouping(lambda x: (x**2).sum(axis=1), box, vectorized=True)
    assert separable.groups == []
    assert separable.evaluations == 300**2 + 300
    whole = differential_grouping(lambda x: x.sum(axis=1) ** 2, box, vectorized=True)
    assert [group.size for group in whole.groups] == [300]
    assert whole.separable.size == 0
    assert whole.evaluations == 600


def test_differential_grouping_sees_first_neighbours_in_a_chain() -> None:
    """x0 x1 + x1 x2 + ...: the first variable meets the second, which is then used up."""
    chain = differential_grouping(
        lambda x: (x[:, 1:] * x[:, :-1]).sum(axis=1), (np.full(6, -1.0), 2.0), vectorized=True
    )
    assert [group.tolist() for group in chain.groups] == [[0, 1], [2, 3], [4, 5]]


def test_rounding_of_large_values_is_no_interaction() -> None:
    """A sum of squares of size 1e16 rounds to 2; the groups are not there."""
    box = (np.full(40, -3.0), np.full(40, 5.0))

    def function(points: np.ndarray) -> np.ndarray:
        return (1e12 + (points + np.linspace(0.1, 0.9, 40)) ** 3).sum(axis=1) * 1e2

    published = differential_grouping(function, box, vectorized=True)
    assert published.separable.size < 40
    careful = differential_grouping(function, box, rounding=1e-14, vectorized=True)
    assert careful.separable.size == 40
    kept = differential_grouping(products, (np.full(8, -3.0), 5.0), rounding=1e-14, vectorized=True)
    assert [group.tolist() for group in kept.groups] == [[0, 3, 5], [1, 7]]


def test_differential_grouping_needs_a_box() -> None:
    with pytest.raises(ValueError, match="searches a box"):
        differential_grouping(lambda x: 0.0, None)
    with pytest.raises(ValueError, match="finite"):
        differential_grouping(lambda x: 0.0, (np.zeros(2), np.inf))
