"""Why a search ends: target, budget, values that stand still."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import cast

import numpy as np
import pytest

import mmes
from mmes.base.reasons import StopReason
from mmes.spaces.boxes import Rounded
from mmes.strategies import ActiveCMA
from mmes.strategies.shell.protocol import Search
from mmes.strategies.shell.standstill import NothingBetter, ValueHistory
from mmes.strategies.shell.stopping import StopRules

N = 8


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


def make(**options) -> mmes.MMES:
    return mmes.MMES(np.ones(N), 0.5, seed=1, **options)


def test_stop_reports_target_and_budget() -> None:
    es = make()
    assert es.stop(max_evaluations=es.population_size) is StopReason.MAX_EVALUATIONS
    assert es.stop(max_evaluations=es.population_size + 1) is None
    es.tell([sphere(x) for x in es.ask()])
    assert es.stop(target=es.best_value) is StopReason.TARGET_REACHED


@pytest.mark.parametrize(
    ("target", "kind"), [("a", ValueError), ([1], TypeError), (math.nan, ValueError)]
)
def test_a_target_that_is_no_number_is_refused(target: object, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="target must be a number, not"):
        make().stop(target=target)  # type: ignore[arg-type]


def test_a_target_is_what_float_takes_and_infinite_ones_are_none() -> None:
    """Before, "target must be a finite number": an infinite one had meant that there is none."""
    es = make()
    es.tell([sphere(x) for x in es.ask()])
    for number in (math.inf, -math.inf):
        assert es.stop(target=number) is None
    for number in (np.float32(1e9), np.array(1e9), Fraction(10**9), Decimal("1e9")):
        assert es.stop(target=number) is StopReason.TARGET_REACHED


@dataclass
class Drifting:
    """A search whose sigma and whose largest scale of a variable are given."""

    sigma: float
    scale: float
    mean: np.ndarray = field(default_factory=lambda: np.ones(N))

    def spread(self) -> float:
        return self.scale


@pytest.mark.parametrize(
    ("sigma", "scale", "options", "expected"),
    [
        (1e21, 1e-21, {}, []),
        (1e21, 1.0, {}, [StopReason.SIGMA_TOO_LARGE]),
        (1.0, 1e21, {}, [StopReason.SIGMA_TOO_LARGE]),
        (1e21, 1e-21, {"sigma_max": 1e3}, [StopReason.SIGMA_TOO_LARGE]),
        (1e21, 1.0, {"sigma_max": 1e30}, []),
    ],
)
def test_steps_run_away_not_sigma_alone(
    sigma: float, scale: float, options: dict[str, float], expected: list[StopReason]
) -> None:
    """A run of sep-CMA on Rosenbrock's function, n = 1000, was ended while it made progress."""
    es = make(**options)
    ends = StopRules(es.options, 0.5, (200, 0), farthest=1e20, spread=1.0)
    search = cast(Search, Drifting(sigma, scale))
    assert list(ends.reasons(search, es.kernel, generation=16)) == expected


def test_a_long_window_is_not_looked_through_in_every_generation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The values of the generations move, so that the best one alone does not end the run."""
    rule, looks = ValueHistory(window=10_000, tolerance=1e-9), []
    monkeypatch.setattr(rule, "generations_move", lambda tolerance: looks.append(1) or True)
    for generation in range(30_000):
        rule.observe(generation, 1.0, float(generation), float(generation))
        assert not rule.stagnated
    assert 1000 <= len(looks) <= 3000


def stagnated(values: list[float], generation_bests: list[float] | None = None) -> bool:
    """Return the verdict of the rule, of one that saw it all and of one restored in between."""
    verdicts = []
    for restored_at in (None, len(values) // 2):
        rule = ValueHistory(window=10, tolerance=1e-8)
        for generation, value in enumerate(values):
            seen = value if generation_bests is None else generation_bests[generation]
            rule.observe(generation, value, seen, seen + 1)
            if generation == restored_at:
                twin = ValueHistory(window=10, tolerance=1e-8)
                twin.restore(generation, rule.arrays())
                rule = twin
        verdicts.append(rule.stagnated)
    assert verdicts[0] == verdicts[1]
    return verdicts[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0] * 12, True),
        ([0.0] * 12, True),
        ([1.0] * 9, False),
        ([1.0 - 1e-3 * g for g in range(12)], False),
        ([1.0 - 1e-9 * g for g in range(12)], True),
        ([-1.0 - 1e-9 * g for g in range(12)], True),
        ([10.0 ** (-g) for g in range(12)], False),
    ],
)
def test_stagnation_rule(values: list[float], expected: bool) -> None:
    """b_old - b < tolerance * window * |b| over the window, or no change at all."""
    assert stagnated(values) is expected


def watch(values: list[float], spread: float = 0.0, window: int = 10, ftol: float = 0.0):
    """Return a watch that saw generations with these best values, restored half-way."""
    rule, best = ValueHistory(window, ftol), math.inf
    for generation, value in enumerate(values):
        best = min(best, value)
        rule.observe(generation, best, value, value + spread)
        if generation == len(values) // 2:
            twin = ValueHistory(window, ftol)
            twin.restore(generation, rule.arrays())
            rule = twin
    return rule


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (1e-6, 0.0), (1e6, 0.0), (1.0, 1e3), (1.0, -1e3)])
def test_the_tests_on_values_do_not_depend_on_shift_and_scale_of_f(a: float, b: float) -> None:
    rng = np.random.default_rng(5)
    noise = rng.standard_normal(100)

    def f(values) -> list[float]:
        return [a * float(v) + b for v in values]

    falling, rising = np.linspace(3, 2, 100), np.linspace(2, 3, 100)
    assert not watch(f(falling + 0.01 * noise), a).stagnated
    assert watch(f(rising + 0.01 * noise), a).stagnated
    assert watch(f(np.full(100, 2.0)), a).stagnated
    assert not watch(f(np.full(99, 2.0)), a).stagnated  # the long window is not full
    assert watch(f(np.full(12, 2.0))).converged
    assert watch(f(np.full(12, 2.0))).flat
    assert not watch(f(np.full(9, 2.0))).converged
    assert not watch(f(np.full(12, 2.0)), a * 1e-3).converged
    assert not watch(f([5.0] + [2.0] * 12)).flat
    assert watch(f([5.0] + [2.0] * 12)).converged


def test_rounding_and_ftol_count_as_the_same_value() -> None:
    values = [1.0 + 2e-16 * (g % 3) for g in range(20)]
    assert watch(values).converged
    assert not watch([1.0 + 1e-9 * (g % 3) for g in range(20)]).converged
    assert watch([1.0 + 1e-9 * (g % 3) for g in range(20)], 1e-9, ftol=1e-8).converged
    assert not watch([math.inf] * 20).stagnated


def test_the_medians_see_through_a_few_lucky_generations() -> None:
    values = [10.0 - 0.01 * g for g in range(100)]
    values[3] = values[8] = -50.0
    assert not watch(values, 1.0).stagnated


def test_a_lucky_start_is_no_stagnation() -> None:
    best = [1.0] * 30
    assert not stagnated(best, [100.0 * 0.97**g for g in range(30)])
    assert not stagnated(best, [100.0 * 1.03**g for g in range(30)])
    assert stagnated(best, [100.0] * 30)
    assert stagnated(best, [100.0 * (1 - 1e-5) ** g for g in range(30)])
    assert stagnated(best, [math.inf] * 30)


@pytest.mark.parametrize(("hidden", "seed"), [(5, 1), (5, 2), (10, 1)])
@pytest.mark.parametrize("strategy", ["adaptive", "mmes"])
def test_equal_values_of_a_loss_that_counts_errors_are_no_success(
    strategy: str, hidden: int, seed: int
) -> None:
    """Values stand on a step of the loss; sigma grows to its limit, or to the next step."""
    rng = np.random.default_rng(1)
    points = rng.standard_normal((40, 2))
    labels = np.sign(points[:, 0] * points[:, 1])

    def errors(w: np.ndarray) -> float:
        into, bias, out = w[: 2 * hidden].reshape(2, -1), w[2 * hidden : 3 * hidden], w[-hidden:]
        return float(np.mean(np.sign(np.tanh(points @ into + bias) @ out) != labels))

    start = np.full(4 * hidden, 0.01)
    r = mmes.minimize(errors, start, 0.5, strategy=strategy, max_evaluations=20_000, seed=seed)
    assert r.reason in (StopReason.STAGNATED, StopReason.MAX_EVALUATIONS)
    assert not r.success


LOWER = np.linspace(0.1, 0.7, 6)
SOLVED = {
    "one variable": (lambda x: float((x[0] - 1) ** 2 + 1), {"x0": [0.0], "sigma0": 0.3}),
    "a large value": (lambda x: float((x[0] - 1) ** 2 + 1e6), {"x0": [0.0], "sigma0": 0.3}),
    "cosine": (lambda x: math.cos(x[0]), {"x0": [2.0], "sigma0": 0.3}),
    "a corner": (lambda x: float(x.sum()), {"bounds": ([1.0, 1.0], [2.0, 2.0])}),
    "inside a box": (lambda x: float((x - 1) @ (x - 1)) + 1, {"bounds": ([-5.0, -5.0], 5.0)}),
    "one is free": (lambda x: float((x - 1) @ (x - 1)), {"bounds": ([2, 2, -5], [2, 2, 5])}),
    "a vertex": (lambda x: float((x - LOWER).sum()), {"bounds": (LOWER, 2.0)}),
}


@pytest.mark.parametrize("problem", SOLVED)
@pytest.mark.parametrize("strategy", ["auto", "cma-es", "sep-cma", "mmes", "rm-es"])
def test_equal_values_of_points_close_together_are_no_plateau(strategy: str, problem: str) -> None:
    """Sigma grew to its limit while the scales of few variables shrank: STAGNATED."""
    f, where = SOLVED[problem]
    for seed in range(3):
        r = mmes.minimize(f, **where, strategy=strategy, max_evaluations=20_000, seed=seed)
        assert r.success, r.message
        assert r.nfev < 5000


UNSOLVED = {
    "relu": lambda x: 1 + float(np.maximum(x, 0).sum()),
    "tail": lambda x: 1 + float(np.exp(np.minimum(x, 700)).sum()),
    "cap": lambda x: max(float(x @ x), 1.0),
    "floor": lambda x: float(np.floor(10 * (x @ x))),
}


@pytest.mark.parametrize("problem", UNSOLVED)
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("strategy", ["auto", "sep-cma", "mmes"])
def test_a_plateau_of_few_variables_is_no_success(strategy: str, n: int, problem: str) -> None:
    """Chance alone shrinks their scales: sigma is at its limit, and steps are not."""
    for seed in range(3):
        r = mmes.minimize(UNSOLVED[problem], np.full(n, 3.0), 0.5, strategy=strategy, seed=seed)
        assert (r.reason, r.success) == (StopReason.STAGNATED, False)


def test_how_far_apart_equal_values_lay_is_saved() -> None:
    def halves(x: np.ndarray) -> float:
        return 1 + float(np.maximum(x, 0).sum())

    es = ActiveCMA([3.0], 0.5, seed=1)
    while es.stop() is None:
        es.tell([halves(x) for x in es.ask()])
    state = es.state()
    assert state["equal_over"] > 0.5
    assert ActiveCMA.from_state(state).stop() is StopReason.STAGNATED
    del state["equal_over"]  # a state of before
    assert ActiveCMA.from_state(state).stop() is StopReason.STAGNATED


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_rounding_is_no_step(kind: type) -> None:
    """Sigma is led to where values differ by rounding again and again: that is convergence."""
    r = mmes.minimize(
        lambda x: float(kind(1 + x @ x)), np.ones(N), 0.5, strategy="mmes", xtol=0, seed=1
    )
    assert r.reason is StopReason.CONVERGED_F
    assert r.success


def test_short_steps_of_a_search_with_integers_are_forgotten_when_sigma_is_set() -> None:
    # A run that was resumed just after noise had been answered ended as converged.
    es = mmes.AdaptiveMMES(np.full(4, 3.2), 1.0, integers=[0], seed=1)
    ends = StopRules(es.options, 0.5, (200, 0), 1e20, 1.0, rounded=cast(Rounded, es.box))
    for generation in range(200):
        ends.observe(generation, 1.0, (1.0, 2.0), 0.0, short=True)
    search = cast(Search, Drifting(0.5, 1.0))
    assert list(ends.reasons(search, es.kernel, 16)) == [StopReason.CONVERGED_X]
    ends.begin_anew(0.5)
    assert list(ends.reasons(search, es.kernel, 16)) == []


def test_a_search_of_integers_is_over_when_it_keeps_coming_back_to_the_best_value() -> None:
    def watched(values: list[float], integers: int = 1) -> NothingBetter:
        counts = NothingBetter(integers, 0.5)
        for generation, value in enumerate(values):
            counts.see(min(values[: generation + 1]), value, 0.0)
            if generation == 300:
                twin = NothingBetter(integers, 0.5)
                twin.restore(counts.entries())
                counts = twin
        return counts

    assert watched([2.0] + [1.0, 1.0, 3.0] * 140).over
    assert not watched([2.0] + [1.0, 1.0, 3.0] * 130).over
    assert not watched([2.0] + [1.0, 1.0, 3.0] * 140, integers=20).over
    assert not watched([1.0] + [2.0] * 500).over
    assert not watched([1.0] * 300 + [0.9] * 300).over


@pytest.mark.parametrize("seed", [0, 1])
def test_a_search_that_learns_its_covariance_has_not_stagnated(seed: int) -> None:
    """Failed before: STAGNATED at 1000 after 2000 generations, of which it needs 6500."""
    sizes = np.ones(100)
    sizes[0] = 1e6
    x0 = np.random.default_rng(seed).uniform(-5, 5, 100)
    r = mmes.minimize(lambda p: (p * p) @ sizes, x0, 1.0, vectorized=True, seed=seed)
    assert r.strategy.startswith("active-cma")
    assert r.success
    assert r.fun < 1e-15
