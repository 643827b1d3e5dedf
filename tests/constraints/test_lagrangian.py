"""The augmented Lagrangian: its values, its invariances, and that it finds multipliers."""

from __future__ import annotations

import numpy as np
import pytest

import mmes
from mmes.constraints import Lagrangian
from mmes.strategies import ActiveCMA


def made(equality: list[bool], multipliers: list[float], factors: list[float]) -> Lagrangian:
    return Lagrangian(
        2,
        np.array(equality),
        np.array(multipliers, float),
        np.array(factors, float),
        mean=np.zeros(len(factors)),
        first=np.array(factors, float),
    )


def test_an_inequality_costs_nothing_more_below_its_floor() -> None:
    lagrangian = made([False], [2.0], [4.0])
    g = np.array([[-0.5], [-3.0], [0.0], [1.0]])
    # The smallest penalty is -l^2 / (2 w), at g = -l / w.
    assert lagrangian.values(np.zeros(4), g).tolist() == [-0.5, -0.5, 0.0, 4.0]


def test_an_equality_costs_on_both_sides() -> None:
    lagrangian = made([True], [0.0], [4.0])
    assert lagrangian.values(np.zeros(2), np.array([[-1.0], [1.0]])).tolist() == [2.0, 2.0]


def test_nan_in_a_constraint_is_a_failure_even_without_weight() -> None:
    lagrangian = made([False, False], [0.0, 0.0], [0.0, 1.0])
    values = lagrangian.values(np.ones(2), np.array([[np.nan, 0.0], [0.0, 0.0]]))
    assert np.isnan(values).tolist() == [True, False]


def trajectory(a: float, b: float, c: float, strategy: type = ActiveCMA, n: int = 6) -> np.ndarray:
    """Return the means of a search for min a f + b, c g <= 0."""
    es = strategy(np.full(n, 2.0), 1.0, seed=5)
    lagrangian, means = Lagrangian(n, np.array([False, True])), []
    for _ in range(60):
        X = es.ask()
        f = a * np.array([float(x @ x) for x in X]) + b
        g = c * np.column_stack((1.0 - X[:, 0], X[:, 1] - 2.0))
        es.tell(lagrangian.values(f, g))
        changed = lagrangian.update(f, g)
        assert changed is not None
        es.revalue(changed)
        means.append(np.array(es.mean))
    return np.array(means)


@pytest.mark.parametrize("strategy", [ActiveCMA, mmes.AdaptiveMMES, mmes.MMES])
@pytest.mark.parametrize(("a", "c"), [(2.0**20, 1.0), (1.0, 2.0**-20), (2.0**-9, 2.0**13)])
def test_scaling_of_f_and_g_changes_no_bit(strategy: type, a: float, c: float) -> None:
    assert np.array_equal(trajectory(1.0, 0.0, 1.0, strategy), trajectory(a, 0.0, c, strategy))


def test_a_constant_changes_nothing_but_rounding() -> None:
    plain, shifted = trajectory(1.0, 0.0, 1.0), trajectory(1.0, 1000.0, 1.0)
    assert np.allclose(plain[:30], shifted[:30], rtol=1e-6)


def test_the_multipliers_of_a_sphere_are_found() -> None:
    # min x'x with x_0 >= 1 and x_1 = 2: multipliers 2 and -4 by the gradient.
    es = ActiveCMA(np.full(6, 3.0), 1.0, seed=1)
    lagrangian = Lagrangian(6, np.array([False, True]))
    for _ in range(400):
        X = es.ask()
        f, g = np.sum(X * X, axis=1), np.column_stack((1.0 - X[:, 0], X[:, 1] - 2.0))
        es.tell(lagrangian.values(f, g))
        es.revalue(lagrangian.update(f, g))
    assert np.allclose(lagrangian.multipliers, [2.0, -4.0], atol=1e-5)
    assert np.allclose(es.mean, [1.0, 2.0, 0.0, 0.0, 0.0, 0.0], atol=1e-5)


def test_the_offset_keeps_the_mean_value_of_the_parents() -> None:
    rng = np.random.default_rng(0)
    lagrangian = Lagrangian(4, np.array([False]))
    for _ in range(5):
        f, g = rng.standard_normal(12), rng.standard_normal((12, 1))
        before = np.sort(lagrangian.values(f, g))[:6]
        after = lagrangian.update(f, g)
        assert after is not None
        assert abs(np.sort(after)[:6].mean() - before.mean()) < np.ptp(before)


def test_a_constraint_that_was_never_violated_has_no_weight() -> None:
    lagrangian = Lagrangian(4, np.array([False]))
    lagrangian.update(np.arange(8.0), -np.ones((8, 1)))
    assert lagrangian.factors.tolist() == [0.0]
    lagrangian.update(np.arange(8.0), np.linspace(-1.0, 1.0, 8)[:, None])
    assert lagrangian.factors[0] > 0


def test_a_generation_of_failures_changes_nothing() -> None:
    lagrangian = Lagrangian(4, np.array([True]))
    assert lagrangian.update(np.full(8, np.nan), np.ones((8, 1))) is None
    assert lagrangian.factors.tolist() == [0.0]


def test_a_flat_objective_leaves_the_search_to_the_constraints() -> None:
    lagrangian = Lagrangian(4, np.array([False]))
    lagrangian.update(np.zeros(8), np.linspace(1.0, 2.0, 8)[:, None])
    assert lagrangian.factors[0] > 0


def test_a_state_goes_on_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    one = Lagrangian(4, np.array([False, True]))
    for _ in range(3):
        one.update(rng.standard_normal(12), rng.standard_normal((12, 2)))
    two = Lagrangian.restored(4, one.entries(), one.arrays())
    f, g = rng.standard_normal(12), rng.standard_normal((12, 2))
    assert np.array_equal(one.update(f, g), two.update(f, g))
    assert np.array_equal(one.multipliers, two.multipliers)
