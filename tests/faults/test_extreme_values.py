"""Values at the ends of float64: no warning, no false verdict."""

import math

import numpy as np
import pytest

import mmes
from mmes.run.noise import Answers, NoiseWatch
from mmes.run.reevaluation import Reevaluation
from mmes.strategies.registry import STRATEGIES
from mmes.strategies.shell.standstill import ValueHistory, median

BOX = [(-5.0, 5.0)] * 4


def huge(x):
    return float(1.6e308 * np.tanh(x.sum() / 5))


class HugeNoise:
    def __init__(self):
        self.rng = np.random.default_rng(1)

    def __call__(self, x):
        return float(self.rng.choice([-1.7e308, 1.7e308]))


@pytest.mark.parametrize("strategy", [*STRATEGIES, "mos"])
def test_row41_values_near_the_largest_float_give_no_warning(strategy):
    """Failed before: RuntimeWarning: overflow, an error where warnings are errors."""
    options = {"strategy": strategy, "seed": 1, "bounds": BOX, "max_evaluations": 4000}
    if strategy != "mos":
        options["stagnation_window"] = 10
    assert np.isfinite(mmes.minimize(huge, np.zeros(4), 1.0, **options).fun)
    result = mmes.minimize(HugeNoise(), np.zeros(4), 1.0, noise="yes", **options)
    assert not math.isnan(result.fun)
    if strategy == "mmes":
        options["stagnation_tolerance"] = 1e-8
        mmes.minimize(HugeNoise(), np.zeros(4), 1.0, **options)


def test_row41_arithmetic_on_huge_values():
    """Failed before: inf, with RuntimeWarnings."""
    assert median(np.array([1.7e308, 1.6e308])) == pytest.approx(1.65e308)
    assert median(np.array([3.0, 1.0, 2.0])) == 2.0
    for values in (np.arange(7.0), np.arange(8.0) ** 2):
        assert median(values) == np.median(values)
    again = Reevaluation(np.array([1.7e308, 1.5e308]), np.array([1.7e308] * 2))
    name, average, error = again.better()
    assert (name, average) == ("x", pytest.approx(1.6e308))
    assert error == pytest.approx(1e307)
    watch = NoiseWatch()
    watch.observe(np.array([-1.7e308, 0.0, 1.7e308, 1.0]), 1.0, 1.0)
    watch.answer(Answers(np.array([-1.7e308, 1.7e308])), 1.0)
    assert watch.noisy
    rule = ValueHistory(window=3)
    for generation in range(40):
        rule.observe(generation, -1.7e308, -1.7e308 if generation % 2 else 1.7e308, 1.7e308)
    assert not rule.converged


@pytest.mark.parametrize("strategy", [*STRATEGIES, "mos"])
def test_row41_minus_infinity_reaches_no_target(strategy):
    """Failed before: TARGET_REACHED, success."""

    def f(x, bottomless):
        return -math.inf if bottomless(x) else float(x @ x)

    options = {"strategy": strategy, "seed": 1, "bounds": BOX, "target": 1e-8}
    start = np.ones(4)
    for where in (lambda x: bool((x == start).all()), lambda x: x.sum() < 3):
        result = mmes.minimize(f, start, 1.0, args=(where,), **options)
        assert result.reason is mmes.StopReason.UNBOUNDED
        assert not result.success
        assert mmes.StopReason.TARGET_REACHED not in result.reasons
