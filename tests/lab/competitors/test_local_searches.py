"""Laws of the local searches: Solis-Wets, MTS-LS1 and its reduced form, L-BFGS."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

from mmes.lab.competitors.parts.lbfgs import Corrections, lbfgs
from mmes.lab.competitors.parts.mts import MtsRules, SearchRange, Usefulness, mts_ls1
from mmes.lab.competitors.parts.setting import Incumbent, told
from mmes.lab.competitors.parts.solis_wets import (
    SMALLEST_STEP,
    SolisWetsRules,
    SolisWetsState,
    relative_gain,
    solis_wets,
)
from small import ellipsoid, setting

RULES = SolisWetsRules()


def scripted(values: list[float]) -> tuple[list[np.ndarray], Any]:
    """Return where points are collected, and a function that gives the values in turn."""
    seen: list[np.ndarray] = []
    left = iter(values)

    def function(points: np.ndarray) -> np.ndarray:
        seen.extend(points.copy())
        return np.array([next(left) for _ in points])

    return seen, function


# Solis-Wets


def test_solis_wets_tries_a_step_and_its_mirror_image() -> None:
    bias = np.array([0.5, 0.0, -0.25])
    point, state = Incumbent(np.zeros(3), 1.0), SolisWetsState(0.1, bias.copy())
    seen, function = scripted([2.0, 3.0])
    told(solis_wets(setting(3), point, state, RULES, 2, count()), function)
    assert np.array_equal(seen[0], -seen[1])
    assert point.value == 1.0
    assert (state.failures, state.successes) == (0, 0)  # the budget ended within the step
    seen, function = scripted([2.0, 3.0, 9.0])
    told(solis_wets(setting(3), point, state, RULES, 3, count()), function)
    assert np.array_equal(state.bias, 0.5 * bias)
    assert state.failures == 1


@pytest.mark.parametrize("mirrored", [False, True])
def test_solis_wets_learns_its_bias(mirrored: bool) -> None:
    bias = np.array([0.5, 0.0, -0.25])
    point, state = Incumbent(np.zeros(3), 1.0), SolisWetsState(0.1, bias.copy())
    values = [2.0, 0.5] if mirrored else [0.5]
    seen, function = scripted(values)
    gains = told(solis_wets(setting(3), point, state, RULES, len(values), count()), function)
    moved = seen[0]  # d + b
    expected = bias - 0.4 * moved if mirrored else 0.2 * bias + 0.4 * moved
    np.testing.assert_allclose(state.bias, expected, rtol=1e-14)
    assert np.array_equal(point.x, -moved if mirrored else moved)
    assert point.value == 0.5
    assert (gains.evaluations, gains.improvements, gains.relative) == (len(values), 1, 0.5)


def test_solis_wets_step_doubles_and_halves() -> None:
    state = SolisWetsState(1.0, np.zeros(1))
    for _ in range(4):
        state.note(True, RULES)
    state.note(False, RULES)
    assert (state.step, state.successes, state.failures) == (1.0, 0, 1)
    for _ in range(5):
        state.note(True, RULES)
    assert (state.step, state.successes) == (2.0, 0)
    for _ in range(3):
        state.note(False, RULES)
    assert (state.step, state.failures) == (1.0, 0)
    tuned = SolisWetsRules(5, 5, 4.0, 0.75)
    for _ in range(5):
        state.note(False, tuned)
    assert state.step == 0.75
    for _ in range(20_000):
        state.note(False, tuned)
    assert state.step == SMALLEST_STEP


def test_relative_gain() -> None:
    assert relative_gain(4.0, 1.0) == 0.75
    assert relative_gain(-4.0, -6.0) == 0.5
    assert relative_gain(1.0, 2.0) == 0.0
    assert relative_gain(0.0, -1.0) == 0.0


# MTS-LS1


def run_mts(values: list[float], start: list[float], rules: MtsRules, reach: SearchRange) -> Any:
    point = Incumbent(np.array(start), 10.0)
    seen, function = scripted(values)
    place = setting(len(start))
    search = mts_ls1(place, point, rules, reach, len(values))
    return seen, point, told(search, function)


def test_mts_goes_down_then_up_and_undoes_what_is_worse() -> None:
    reach = SearchRange(0.2)  # 2 of the box's 10
    values = [
        9.0,  # coordinate 0: down is better, kept
        11.0,  # coordinate 1: down is worse
        8.0,  # ... up is better, kept
        8.0,  # coordinate 2: down is equal, undone without trying up
    ]
    seen, point, gains = run_mts(values, [0.0, 0.0, 0.0], MtsRules(1.0, 0.5), reach)
    assert [each.tolist() for each in seen] == [
        [-2.0, 0.0, 0.0],
        [-2.0, -2.0, 0.0],
        [-2.0, 1.0, 0.0],
        [-2.0, 1.0, -2.0],
    ]
    assert point.x.tolist() == [-2.0, 1.0, 0.0]
    assert point.value == 8.0
    assert (gains.improvements, reach.improved) == (2, True)


def test_mts_at_the_lower_bound_tries_up_alone_and_clips() -> None:
    seen, _, _ = run_mts([11.0, 12.0, 13.0], [-5.0, -4.5], MtsRules(1.0, 0.5), SearchRange(0.2))
    assert [each.tolist() for each in seen] == [[-4.0, -4.5], [-5.0, -5.0], [-5.0, -3.5]]


def test_mts_range_shrinks_after_a_failed_sweep_and_is_reset() -> None:
    reach, rules = SearchRange(0.5), MtsRules(smallest=0.3, reset=0.4)
    run_mts([11.0] * 4, [0.0, 0.0], rules, reach)
    assert reach.share == 0.5
    run_mts([11.0] * 4, [0.0, 0.0], rules, reach)
    assert reach.share == 0.25
    reach.begin_sweep(rules, widest=2.0)
    assert reach.share == 0.4  # 0.125 * 2 < 0.3
    reach.improved = True
    reach.begin_sweep(rules, widest=2.0)
    assert reach.share == 0.4


def test_mts_converges_on_a_separable_function() -> None:
    point = Incumbent(np.full(10, 4.0), float(ellipsoid(np.full((1, 10), 4.0))[0]))
    search = mts_ls1(setting(10), point, MtsRules(), SearchRange(0.5), 2000)
    assert told(search, ellipsoid).evaluations == 2000
    assert point.value < 1e-15
    assert ellipsoid(point.x[None, :])[0] == point.value


def test_useful_coordinates_come_first() -> None:
    useful = Usefulness(10, 0.2, lambda: np.linspace(0.9, 0.1, 10))
    assert useful.choose().tolist() == list(range(10))  # 90 % need 10 of 10 equal ones
    for i in range(10):
        useful.learn(i, 0.0)
    assert useful.choose().tolist() == list(range(10))  # no worth at all: everything
    useful.learn(3, 100.0)
    useful.learn(5, 40.0)
    assert useful.worth[3] == pytest.approx(30.0)  # 0.7 * 0 + 0.3 * 100
    # 3 has 30 of 42, 5 the rest; 2 others are sampled, here the last two by their lots.
    assert useful.choose().tolist() == [3, 5, 8, 9]
    useful.learn(3, 0.0)
    assert useful.worth[3] == pytest.approx(21.0)


def test_coordinates_not_yet_tried_rank_above_all_others() -> None:
    useful = Usefulness(4, 0.0, lambda: np.zeros(4))
    useful.learn(0, 50.0)
    useful.learn(1, 7.0)
    chosen = useful.choose()
    assert {2, 3} <= set(chosen)
    assert 1 not in chosen  # 51 + 51 + 50 > 90 % of 159


# L-BFGS


def test_corrections_satisfy_the_secant_equation() -> None:
    rng = np.random.default_rng(1)
    corrections = Corrections()
    for _ in range(4):
        step = rng.normal(size=6)
        change = step * np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        corrections.add(step, change)
    np.testing.assert_allclose(corrections.times(change), step, rtol=1e-10)
    before = len(corrections)
    corrections.add(step, -change)
    assert len(corrections) == before  # curvature that is not positive is left out
    corrections.clear()
    assert np.array_equal(corrections.times(step), step)


def test_lbfgs_solves_a_quadratic_function_and_stays_in_its_budget() -> None:
    point = Incumbent(np.full(12, 4.0), float(ellipsoid(np.full((1, 12), 4.0))[0]))
    calls: list[int] = []

    def function(points: np.ndarray) -> np.ndarray:
        calls.append(len(points))
        return ellipsoid(points)

    gains = told(lbfgs(setting(12), point, 1000), function)
    assert sum(calls) == gains.evaluations <= 1000
    assert point.value < 1e-6  # the differences allow no more
    for budget in (1, 12, 13, 14, 40):
        calls.clear()
        point = Incumbent(np.full(12, 4.0), float(ellipsoid(np.full((1, 12), 4.0))[0]))
        told(lbfgs(setting(12), point, budget), function)
        assert sum(calls) <= budget
        assert bool(calls) == (budget > 12)


def test_lbfgs_ends_in_a_corner_where_the_bounds_hold_it() -> None:
    def function(points: np.ndarray) -> np.ndarray:
        return ((points - np.array([9.0, -9.0, 1.0])) ** 2 * [1.0, 5.0, 20.0]).sum(axis=1)

    point = Incumbent(np.zeros(3), float(function(np.zeros((1, 3)))[0]))
    told(lbfgs(setting(3), point, 500), function)
    assert point.x == pytest.approx([5.0, -5.0, 1.0], abs=1e-4)


def test_lbfgs_differences_stay_in_the_box_and_pass_over_failures() -> None:
    def function(points: np.ndarray) -> np.ndarray:
        assert (np.abs(points) <= 5.0).all()
        return np.where(points[:, 1] != 5.0, 1e300, (points[:, 0] - 2.0) ** 2)

    point = Incumbent(np.array([5.0, 5.0]), 9.0)
    told(lbfgs(setting(2), point, 300), function)
    assert point.x == pytest.approx([2.0, 5.0], abs=1e-3)
