"""What a call without options must get right; larger in `benchmarks/defaults.py`."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mmes
from mmes.base.reasons import StopReason
from mmes.problems import get
from mmes.strategies import STRATEGIES

MAPS = {"f + 1e3": (1.0, 1e3), "f - 1e3": (1.0, -1e3), "1e-6 f": (1e-6, 0.0), "1e6 f": (1e6, 0.0)}
WEIGHTS = np.logspace(0, 1, 8)


def recorded(strategy: str, a: float, b: float, **options) -> tuple[mmes.Result, list[np.ndarray]]:
    """Minimise a f + b for an f with the minimum 0; return the result and all points asked."""
    asked: list[np.ndarray] = []

    def f(points):
        asked.append(points.copy())
        return a * (points**2 @ WEIGHTS) + b

    options = {"vectorized": True, "seed": 1, "strategy": strategy, **options}
    return mmes.minimize(f, np.full(8, 3.0), 1.0, **options), asked


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_scaled_and_shifted_values_give_the_same_points(strategy: str) -> None:
    """To the bit, while neighbouring values can be told apart: here f stays above 1e-3."""
    _, expected = recorded(strategy, 1.0, 0.0, max_generations=40)
    for a, b in MAPS.values():
        _, asked = recorded(strategy, a, b, max_generations=40)
        np.testing.assert_array_equal(np.concatenate(asked), np.concatenate(expected))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_run_ends_where_the_resolution_of_the_values_ends(strategy: str) -> None:
    """The rule of 0.1.0 was relative to abs(f): it ended runs on f + 1e3 on their way."""
    for a, b in MAPS.values():
        result, _ = recorded(strategy, a, b, max_evaluations=30_000)
        assert float(result.x**2 @ WEIGHTS) <= 1e-6 + 100 * math.ulp(abs(b))
        assert result.success, result.message


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "mmes"])
@pytest.mark.parametrize("n", [2, 5, 30, 100, 600, 10_000])
def test_first_steps_are_as_long_as_sigma0_says(strategy: str, n: int) -> None:
    """Root mean square step per variable; its relative error here is below 0.02 (one sigma)."""
    if strategy in ("cma-es", "active-cma") and n > 600:
        pytest.skip("a full matrix")
    squares = []
    for seed in range(max(1, 200 // n)):
        es = STRATEGIES[strategy](np.zeros(n), 2.0, seed=seed)
        squares.append(np.mean(es.ask()[-es.population_size :] ** 2))
    assert 0.75 < math.sqrt(np.mean(squares)) / 2.0 < 1.08


@pytest.mark.parametrize(("n", "budget"), [(2, 3000), (10, 10_000), (50, 40_000)])
@pytest.mark.parametrize("sigma0", [0.5, 1.0])
def test_plateaus_are_left(n: int, budget: int, sigma0: float) -> None:
    for seed in range(3):
        r = mmes.minimize(
            lambda points: ((np.round(points) - 2) ** 2).sum(1),
            np.full(n, -2.0),
            sigma0,
            vectorized=True,
            seed=seed,
            target=0.0,
            max_evaluations=budget,
        )
        assert r.fun == 0.0


@pytest.mark.parametrize("strategy", ["auto", *STRATEGIES])
def test_a_constant_objective_is_flat_and_no_success(strategy: str) -> None:
    options = {"vectorized": True, "seed": 1, "strategy": strategy}
    r = mmes.minimize(lambda points: np.full(len(points), 7.0), np.zeros(12), 1.0, **options)
    assert (r.reason, r.success) == (StopReason.FLAT, False)
    assert r.nit <= 300  # the window is 200


def test_a_small_ellipsoid_ends_soon_and_low() -> None:
    """pycma's `fmin2` takes 5,041 evaluations (median of 5 seeds, benchmarks/defaults.py)."""
    f = get("ellipsoid", dimension=10).batch
    spent = []
    for seed in range(3):
        r = mmes.minimize(f, np.full(10, 3.0), 2.0, vectorized=True, seed=seed)
        assert r.success
        assert r.fun < 1e-12
        spent.append(r.nfev)
    assert np.median(spent) <= 2 * 5041


def test_a_slow_valley_is_no_stagnation() -> None:
    """Rosenbrock's, for longer than the window of ten times 200 generations."""
    n = 120
    r = mmes.minimize(
        get("rosenbrock", dimension=n).batch,
        np.random.default_rng(1).uniform(-5, 5, n),
        3.0,
        vectorized=True,
        seed=1,
        max_generations=2600,
    )
    assert r.reasons == (StopReason.MAX_GENERATIONS,)
