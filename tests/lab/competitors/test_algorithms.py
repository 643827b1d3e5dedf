"""Laws of the six algorithms: what each does beyond the parts it is made of."""

from __future__ import annotations

import math
from itertools import count
from typing import Any

import numpy as np
import pytest

from mmes.base.randomness import Stream
from mmes.lab.competitors.ccpso2 import best_neighbours
from mmes.lab.competitors.decc_g import weight_bounds, weighted
from mmes.lab.competitors.ma_sw_chains import Herd, breed, choose_parents
from mmes.lab.competitors.mos import allotments, updated_shares
from mmes.lab.competitors.parts.genetic import blend, mutate_breeder
from mmes.lab.competitors.parts.setting import Incumbent, told
from mmes.lab.competitors.parts.shade import Memory, Shade, factors_around
from mmes.lab.competitors.parts.solis_wets import Gains
from mmes.lab.competitors.shade_ils import LocalSearches
from small import ellipsoid, make, rastrigin, setting, walk

# DECC-G


def test_weights_are_bounded_so_that_their_group_stays_inside() -> None:
    place = setting(4)  # [-5, 5]
    groups = [np.array([0, 2]), np.array([1, 3])]
    low, high = weight_bounds(place, groups, np.array([2.5, 0.0, -1.0, 4.0]))
    assert low.tolist() == [-2.0, -1.25]
    assert high.tolist() == [2.0, 1.25]


def test_weighting_multiplies_whole_groups_and_never_harms() -> None:
    groups = [np.array([0, 2]), np.array([1, 3])]
    x = np.array([2.0, 1.0, -1.0, 4.0])
    point = Incumbent(x.copy(), float(ellipsoid(x[None, :])[0]))
    before = point.value
    seen: list[np.ndarray] = []

    def function(points: np.ndarray) -> np.ndarray:
        seen.append(points)
        return ellipsoid(points)

    told(weighted(setting(4), groups, point, 10, 5, count()), function)
    factors = np.concatenate(seen) / x
    np.testing.assert_allclose(factors[:, 0], factors[:, 2])
    np.testing.assert_allclose(factors[:, 1], factors[:, 3])
    assert len(seen) == 6
    assert point.value <= before


# DECC-DG


def test_one_group_is_not_evaluated_again_in_its_context() -> None:
    es = make("decc-dg", 6)
    sizes = [len(points) for points in walk(es, lambda x: x.sum(axis=1) ** 2, 300)]
    assert sum(sizes[: sizes.index(8)]) == 12  # 2 n evaluations of grouping
    assert set(sizes[sizes.index(8) :]) == {8}
    apart = make("decc-dg", 5)
    walk(apart, ellipsoid, 30 + 8 + 8 * 31)
    assert apart.evaluations == 30 + 8 + 8 * 31  # grouping, population, one visit


# CCPSO2


def test_neighbourhood_is_a_ring() -> None:
    assert best_neighbours(np.array([3.0, 1.0, 2.0, 5.0, 4.0])).tolist() == [1, 1, 1, 2, 0]
    assert best_neighbours(np.array([2.0, 1.0])).tolist() == [1, 1]


def test_particles_move_by_the_distance_to_their_neighbours() -> None:
    """Where personal and neighbourhood best agree, nothing moves; else by the stated law.

    Share within one distance: normal 0.6827, Cauchy 0.5; 5 sigma of 6 * 2000: false alarm 6e-7.
    """
    n = 2000
    place = setting(n)
    personal = np.zeros((6, n))
    same = make("ccpso2", 2)._moved(place, personal, personal, 1)  # type: ignore[attr-defined]
    assert np.array_equal(same, personal)
    for share, expected, centre in ((0.0, 0.6827, 0.01), (1.0, 0.5, 0.0)):
        es: Any = make("ccpso2", 2, cauchy_share=share)
        moved = es._moved(place, personal, personal + 0.01, 1)
        within = (np.abs(moved - centre) < 0.01).mean()
        assert abs(within - expected) < 5 * 0.5 / math.sqrt(6 * n)


# MA-SW-Chains


def bred_one_by_one(herd: Herd, children: int, function: Any) -> None:
    """The genetic algorithm written down step by step, one child after the other."""
    place, steps = setting(5), count()
    numbered = [next(steps) for _ in range(children)]
    parents, mutants = choose_parents(place.draws, herd.values.size, children, numbered[0])
    for family, mutant, step in zip(parents, mutants, numbered, strict=True):
        mother = herd.points[family[0]]
        distances = [((herd.points[i] - mother) ** 2).sum() for i in family[1:]]
        father = herd.points[family[1 + int(np.argmax(distances))]]
        child = blend(place, mother, father, place.draws.uniforms(5, Stream.CROSSOVER, step))
        if mutant:
            mutate_breeder(place, child, step)
        herd.replace_worst(child, float(function(child[None, :])[0]))


def test_children_asked_together_are_those_of_the_sequence() -> None:
    rng = np.random.default_rng(1)
    for function in (ellipsoid, lambda x: np.floor(ellipsoid(x) / 500)):  # with ties too
        points = rng.uniform(-5, 5, (12, 5))
        herds = [Herd(points.copy(), function(points)) for _ in range(2)]
        sizes: list[int] = []

        def counted(x: np.ndarray, f: Any = function, sizes: list[int] = sizes) -> np.ndarray:
            sizes.append(len(x))
            return f(x)

        told(breed(setting(5), herds[0], 400, count()), counted)
        bred_one_by_one(herds[1], 400, function)
        assert sum(sizes) == 400
        assert max(sizes) > 1
        assert np.array_equal(herds[0].points, herds[1].points)
        assert np.array_equal(herds[0].values, herds[1].values)


def test_parents_are_a_mother_and_three_others() -> None:
    """A child in eight is mutated; 5 sigma of 8000: false alarm 6e-7."""
    parents, mutants = choose_parents(setting(2).draws, 6, 8000, 1)
    assert (parents[:, 1:] != parents[:, :1]).all()
    assert set(parents.ravel()) == set(range(6))
    assert abs(mutants.mean() - 0.125) < 5 * math.sqrt(0.125 * 0.875 / 8000)


def test_chains_and_exhaustion_belong_to_a_member() -> None:
    herd = Herd(np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]]), np.array([1.0, 3.0, 2.0]))
    assert herd.first_step(1) == 0.5 * math.sqrt(4 + 16) / 2
    herd.exhausted = {0, 1}
    assert herd.next_for_local_search(setting(2).draws, 0) == 2
    herd.exhausted = {0, 1, 2}
    assert {herd.next_for_local_search(setting(2).draws, step) for step in range(50)} == {0, 1, 2}
    herd.replace_worst(np.array([9.0, 9.0]), 3.0)
    assert herd.exhausted == {0, 1, 2}  # not better: nothing is replaced
    herd.replace_worst(np.array([9.0, 9.0]), 2.5)
    assert herd.exhausted == {0, 2}


def test_local_search_takes_its_share() -> None:
    """The genetic part asks in batches or alone, Solis-Wets alone: their totals are as set."""
    es = make("ma-sw-chains", local_evaluations=50, local_share=0.5, population_size=12)
    for _ in range(4000):
        es.tell(ellipsoid(es.ask()))
    frame: Any = es._asking.gi_frame.f_locals
    assert abs(frame["spent_locally"] / frame["spent"] - 0.5) < 0.001


# MOS


def test_allotments_hand_the_rest_to_the_smallest() -> None:
    assert allotments(36000, np.full(3, 1 / 3)) == [12000, 12000, 12000]
    assert allotments(10, np.array([0.55, 0.25, 0.2])) == [5, 3, 2]
    assert sum(allotments(36000, np.array([0.2, 0.2, 0.6]))) == 36000


def gains(*relative: float, improvements: tuple[int, int, int] = (0, 0, 0)) -> list[Gains]:
    return [Gains(100, k, 100 * r) for k, r in zip(improvements, relative, strict=True)]


def test_the_best_technique_takes_from_the_others() -> None:
    shares = np.array([0.4, 0.35, 0.25])
    new = updated_shares(shares, gains(0.2, 0.1, 0.0), 1)
    loss = 0.05 * np.array([0.0, 0.35 * 0.5, 0.25])
    np.testing.assert_allclose(new, shares - loss + np.array([loss.sum(), 0, 0]))
    assert new.sum() == pytest.approx(1.0)
    assert np.array_equal(updated_shares(shares, gains(0.0, 0.0, 0.0), 1), shares)
    for _ in range(500):
        shares = updated_shares(shares, gains(0.2, 0.1, 0.0), 1)
    np.testing.assert_allclose(shares, [0.6, 0.2, 0.2], atol=1e-9)


def test_two_best_techniques_share_the_loss() -> None:
    new = updated_shares(np.array([0.3, 0.3, 0.4]), gains(0.2, 0.2, 0.0), 1)
    np.testing.assert_allclose(new, [0.31, 0.31, 0.38])


def test_counted_improvements_overrule_the_qualities_after_ten_steps() -> None:
    shares = np.full(3, 1 / 3)
    found = gains(0.2, 0.0, 0.0, improvements=(0, 10, 5))
    early, late = (updated_shares(shares, found, steps) for steps in (10, 11))
    assert early.argmax() == 0
    assert late.argmax() == 1
    np.testing.assert_allclose(late[0], shares[0] * 0.95)
    np.testing.assert_allclose(late[2], shares[2] * (1 - 0.05 * 0.5))


@pytest.mark.parametrize("configuration", ["tuned", "code"])
def test_mos_runs_in_both_configurations(configuration: str) -> None:
    es = make("mos", configuration=configuration)
    walk(es, rastrigin, 3000)
    assert es.best_value < 40


# SHADE


def test_memory_takes_weighted_means_slot_by_slot() -> None:
    memory = Memory()
    rates, factors = np.array([0.2, 0.8]), np.array([0.4, 0.6])
    memory.update(rates, factors, np.array([1.0, 3.0]))
    assert memory.rates[0] == pytest.approx(0.25 * 0.2 + 0.75 * 0.8)
    lehmer = (0.25 * 0.16 + 0.75 * 0.36) / (0.25 * 0.4 + 0.75 * 0.6)
    assert memory.factors[0] == pytest.approx(lehmer)
    assert memory.slot == 1
    memory.update(rates, factors, np.zeros(2))
    memory.update(rates[:0], factors[:0], np.zeros(0))
    assert memory.slot == 1
    assert (memory.rates[1:] == 0.5).all()


def test_factors_lie_in_the_unit_interval_around_their_centres() -> None:
    """P(F = 1) and the median of a Cauchy law cut at 0; 5 sigma of 4000: false alarm 1e-6."""
    found = factors_around(setting(2).draws, np.full(4000, 0.5), 1)
    assert ((found > 0) & (found <= 1)).all()
    below = 0.5 - math.atan(5.0) / math.pi
    assert abs((found == 1.0).mean() - below / (1 - below)) < 5 * math.sqrt(0.07 / 4000)
    assert abs((found < 0.5).mean() - (0.5 - below) / (1 - below)) < 5 * 0.5 / math.sqrt(4000)


def test_shade_partners_differ_and_the_archive_stays_small() -> None:
    rng = np.random.default_rng(1)
    points = rng.uniform(-5, 5, (20, 4))
    shade = Shade(setting(4), points, ellipsoid(points), count())
    order = np.argsort(shade.values)
    for step in range(200):
        guides, first, second = shade._partners(step)
        own = np.arange(20)
        assert set(guides) <= set(order[:4])
        assert (first != own).all()
        assert (second != own).all()
        assert (second != first).all()
        assert second.max() < 20 + len(shade._archive)
    before = shade.values.copy()
    told(shade.run(1010), ellipsoid)
    assert (shade.values <= before).all()
    assert 0 < len(shade._archive) <= 20
    assert np.array_equal(ellipsoid(shade.points), shade.values)


# SHADE-ILS


def test_the_local_search_with_the_larger_last_gain_is_chosen() -> None:
    local = LocalSearches(setting(3), 30)
    point = Incumbent(np.full(3, 4.0), float(ellipsoid(np.full((1, 3), 4.0))[0]))

    def apply() -> str:
        sizes: list[int] = []
        before = dict(local.last_gains)

        def function(points: np.ndarray) -> np.ndarray:
            sizes.append(len(points))
            return ellipsoid(points)

        told(local.improve(point), function)
        used = "l-bfgs" if max(sizes) > 1 else "mts-ls1"
        assert before[used] == max(before.values())
        assert all(before[k] == v for k, v in local.last_gains.items() if k != used)
        return used

    assert apply() == "mts-ls1"  # each comes once first
    assert apply() == "l-bfgs"
    local.last_gains = {"mts-ls1": 0.3, "l-bfgs": 0.5}
    assert apply() == "l-bfgs"
    local.last_gains = {"mts-ls1": 0.5, "l-bfgs": 0.3}
    assert apply() == "mts-ls1"


def test_restart_after_three_rounds_without_one_per_cent() -> None:
    """On a constant function: 3 rounds, then a new uniform population that no search made."""
    es = make("shade-ils", 7, shade_evaluations=10, local_evaluations=4, restart_rounds=3)
    ones = [1] * 4
    # L-BFGS cannot pay a gradient of 7 with 4 evaluations, so its rounds have SHADE alone.
    sizes = [len(points) for points in walk(es, lambda x: np.ones(len(x)), 120)]
    assert sizes == [10, *ones, 10, 10, *ones, 10, *ones, 10, *sizes[17:]]
    frame: Any = es._asking.gi_frame.f_locals
    assert frame["stagnant"] < 3
