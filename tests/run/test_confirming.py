"""What is confirmed: what counts as the same value, what it costs, and what a resumed run knows.

All of these failed before; the first page of such tests is `test_targets.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmes
from mmes import StopReason

N = 10


def sphere(x: Any) -> float:
    return float(np.sum((np.asarray(x) - 1.0) ** 2))


def spheres(points: Any) -> Any:
    return np.sum((points - 1.0) ** 2, axis=1)


def noisy(size: float, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return lambda x: sphere(x) + size * rng.standard_normal()


# Averages


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_values_are_rarely_a_success(count: int) -> None:
    """Before, 16, 4 and 1 of these 40 runs were, at points above the target."""
    successes = 0
    for seed in range(40):
        limits: dict[str, Any] = {"target": 0.01, "max_evaluations": 400, "reevaluations": count}
        r = mmes.minimize(noisy(1.0, seed), np.full(N, 3.0), 0.5, seed=seed, **limits)
        successes += r.success
    assert successes == (2 if count == 2 else 0)


def test_a_refused_target_is_no_reason() -> None:
    """Before, TARGET_REACHED was among the reasons."""
    r = mmes.minimize(
        noisy(1.0, 0), np.full(N, 3.0), 0.5, target=-0.3, max_evaluations=1500, seed=0
    )
    assert r.reasons == (StopReason.MAX_EVALUATIONS,)


def test_the_callback_sees_the_generation_whose_value_is_refused() -> None:
    """Before, generation 18 was missing."""
    seen: list[int] = []

    def note(progress: Any) -> None:
        seen.append(progress.generation)

    limits: dict[str, Any] = {"target": -0.5, "max_evaluations": 3000, "callback": note}
    r = mmes.minimize(noisy(1.0, 0), np.full(5, 3.0), 0.5, seed=0, **limits)
    assert set(range(1, r.nit)) <= set(seen)


# What is the same value


@pytest.mark.parametrize("size", [1e-7, 1e-6])
def test_small_noise_far_below_the_first_values_is_seen(size: float) -> None:
    """Before, a success by luck: the noise is 1e-12 of the first values."""
    limits: dict[str, Any] = {"target": -size, "max_evaluations": 3000}
    r = mmes.minimize(noisy(size, 1), np.full(N, 200.0), 50.0, seed=1, **limits)
    assert (r.success, r.noisy) == (False, True)


def test_a_start_point_that_reaches_the_target_in_one_batch_and_another_is_no_noise() -> None:
    """Before: noisy, by rounding. The value was compared with nothing, as the largest so far."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((50, 50)), rng.standard_normal(50)
    x0 = np.linalg.solve(a.T, b) + 0.01 * rng.standard_normal(50)

    def f(points: Any) -> Any:  # a batch of another size is rounded otherwise, here by much
        return np.sum((points @ a - b) ** 2, axis=1) * (1.0 + 1e-14 * len(points))

    target = f(x0[None]).item() * 1.0000001
    r = mmes.minimize(f, x0, 0.001, vectorized=True, target=target, seed=1)
    assert (r.success, r.noisy, r.nfev) == (True, False, 3)


def test_values_of_single_precision_are_no_noise() -> None:
    """Before: noisy, and no success within 20,000 evaluations."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((200, 30)).astype(np.float32)
    y = a.sum(axis=1) + rng.standard_normal(200).astype(np.float32)

    def f(points: Any) -> Any:  # other sums for another number of rows, as in some libraries
        part = 50 + len(points)
        apart = (points.astype(np.float32) @ a.T - y) ** 2
        parts = [apart[:, i : i + part].sum(axis=1) for i in range(0, 200, part)]
        return (np.sum(parts, axis=0, dtype=np.float32) / np.float32(200)).astype(np.float64)

    least = f(np.linalg.lstsq(a.astype(float), y.astype(float), rcond=None)[0][None]).item()
    r = mmes.minimize(
        f, np.zeros(30), 0.3, vectorized=True, target=1.05 * least, seed=0, max_evaluations=20_000
    )
    assert (r.success, r.noisy) == (True, False)


@pytest.mark.parametrize("scale", [1e10, 1e12])
def test_huge_constraints_are_no_noise(scale: float) -> None:
    """Before: noisy, and 9000 evaluations instead of 80."""
    a = np.random.default_rng(0).standard_normal((40, 6))

    def limits(points: Any) -> Any:
        return scale * (points @ a - 5.0) * (1.0 + 1e-15 * len(points))

    options: dict[str, Any] = {"vectorized": True, "constraints": limits, "target": 30.0}
    r = mmes.minimize(spheres, np.zeros(40), 0.3, seed=0, max_evaluations=20_000, **options)
    assert (r.success, r.noisy) == (True, False)
    assert r.nfev < 200


@pytest.mark.parametrize("evaluate_x0", [True, False])
def test_ranks_reach_a_target_only_at_the_optimum(evaluate_x0: bool) -> None:
    """Before: success at x0 after 3 evaluations, or at the best point of the first 8."""

    def ranks(points: Any) -> Any:
        return np.argsort(np.argsort(spheres(points))) / max(1, len(points) - 1) - 0.5

    options: dict[str, Any] = {"vectorized": True, "target": -0.5, "max_evaluations": 5000}
    r = mmes.minimize(ranks, np.full(5, 4.0), 0.5, seed=1, evaluate_x0=evaluate_x0, **options)
    assert not r.success or sphere(r.x) < 1e-6


# Failures, and the budget


def fails_again() -> Any:
    """Return a sphere that fails where it is evaluated at a point that it has seen."""
    seen: set[bytes] = set()

    def f(x: Any) -> float:
        failed = x.tobytes() in seen
        seen.add(x.tobytes())
        return np.nan if failed else sphere(x)

    return f


@pytest.mark.filterwarnings("ignore:an evaluation returned NaN")
def test_a_point_that_always_fails_again_is_no_success() -> None:
    """Before, a success where the budget ended."""
    for budget in range(38, 52):
        limits: dict[str, Any] = {"target": 1.0, "max_evaluations": budget}
        r = mmes.minimize(fails_again(), np.zeros(4), 0.3, seed=1, **limits)
        assert not r.success
        assert r.nfev <= budget


@pytest.mark.filterwarnings("ignore:an evaluation returned NaN")
def test_looking_again_at_what_fails_stays_within_the_budget() -> None:
    """Before, 113 evaluations of 111."""
    limits: dict[str, Any] = {"target": 1e-2, "reevaluations": 5}
    for budget in range(105, 125):
        r = mmes.minimize(fails_again(), np.zeros(3), 0.3, seed=1, max_evaluations=budget, **limits)
        assert r.nfev <= budget


def test_looking_again_at_the_end_stays_within_the_budget() -> None:
    """Before, one evaluation too many where values are kept for the end."""
    options: dict[str, Any] = {"vectorized": True, "seed": 1}
    free = mmes.minimize(spheres, np.zeros(3), 0.3, **options).nfev
    for budget in range(free - 5, free + 15):
        r = mmes.minimize(
            spheres, np.zeros(3), 0.3, max_evaluations=budget, reevaluations=5, **options
        )
        assert r.nfev <= budget


# Resumed runs


def test_a_success_within_the_last_generation_is_found_again(tmp_path: Path) -> None:
    """Before: MAX_EVALUATIONS, one evaluation before that value."""
    values: list[float] = []

    def recorded(x: Any) -> float:
        values.append(sphere(x))
        return values[-1]

    options: dict[str, Any] = {"seed": 0}
    mmes.minimize(recorded, np.zeros(N), 0.3, max_evaluations=310, noise="off", **options)
    lowest = np.minimum.accumulate(values)
    improved = [i for i in range(60, 300) if values[i] < lowest[i - 1]]
    assert len(improved) > 5
    for i in improved:
        path = tmp_path / f"{i}.mmes"
        limits = {"target": values[i], **options}
        first = mmes.minimize(
            sphere, np.zeros(N), 0.3, checkpoint=path, max_evaluations=i + 2, **limits
        )
        again, more = mmes.resume(path, sphere), mmes.resume(path, sphere, max_evaluations=1000)
        whole = mmes.minimize(sphere, np.zeros(N), 0.3, max_evaluations=1000, **limits)
        assert first.success
        assert (again.success, again.nfev) == (True, first.nfev)
        assert (more.success, more.nfev) == (True, whole.nfev)


def test_a_noisy_run_that_reached_its_target_is_resumed_for_nothing(tmp_path: Path) -> None:
    """Before, each time 10 more evaluations."""
    f, path = noisy(0.1, 1), tmp_path / "run.mmes"
    limits: dict[str, Any] = {"target": 0.3, "max_evaluations": 20_000}
    first = mmes.minimize(f, np.full(N, 3.0), 0.5, seed=1, checkpoint=path, **limits)
    for _ in range(3):
        again = mmes.resume(path, f)
        assert (again.success, again.nfev, again.fun) == (True, first.nfev, first.fun)


def test_another_tolerance_leaves_that_of_an_equality(tmp_path: Path) -> None:
    """Before, the tolerance of a resumed run replaced it: success with a violation of 0.1."""
    held, path = mmes.Equality(lambda x: x[0] + x[1] - 1.0, 1e-6), tmp_path / "run.mmes"
    limits: dict[str, Any] = {"checkpoint": path, "max_evaluations": 200}
    mmes.minimize(sphere, np.zeros(4), 0.3, constraints=held, seed=1, **limits)
    r = mmes.resume(
        path, sphere, constraints=held, constraint_tolerance=0.1, max_evaluations=None, target=0.45
    )
    assert not r.success
    assert r.constraint_violation <= 1e-6


def test_another_tolerance_makes_a_search_of_integers_count_anew(tmp_path: Path) -> None:
    """Before: INFEASIBLE after one evaluation, by what was counted with the other tolerance."""
    path = tmp_path / "run.mmes"

    def value(x: Any) -> float:
        return -float(np.arange(1, 11) @ x)

    def weight(x: Any) -> float:
        return float(np.arange(10, 0, -1) @ x - 25)

    options: dict[str, Any] = {"bounds": (np.zeros(N), np.ones(N)), "integers": True, "seed": 2}
    loose: dict[str, Any] = {"constraint_tolerance": 3.5, "max_evaluations": 20_000}
    mmes.minimize(value, constraints=weight, checkpoint=path, **loose, **options)
    tight: dict[str, Any] = {"constraint_tolerance": 1e-6, "max_evaluations": 40_000}
    r = mmes.resume(path, value, constraints=weight, **tight)
    assert (r.success, r.fun, r.constraint_violation) == (True, -45.0, 0.0)


# Integers


def test_integers_under_constraints_end_where_noise_was_expected() -> None:
    """Before, with `noise="on"` they did not end before their budget."""
    r = mmes.minimize(
        sphere, np.zeros(4), 1.0, integers=True, constraints=lambda x: 5 - x[0] - x[1], seed=1,
        max_evaluations=9000, noise="on",
    )  # fmt: skip
    assert (r.success, r.fun, r.noisy) == (True, 5.0, False)
    assert r.nfev < 9000
