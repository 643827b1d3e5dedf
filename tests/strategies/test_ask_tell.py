"""The ask/tell shell: bookkeeping, partial tells, failures, bounds, state, memory."""

from __future__ import annotations

import math
import threading
import time

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import mmes
from mmes import memory
from mmes.errors import ReducedArchiveWarning
from mmes.stopping import Standstill, StopReason

N = 8


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


def make(**options) -> mmes.MMES:
    return mmes.MMES(np.ones(N), 0.5, seed=1, **options)


def test_the_first_generation_has_the_start_point_as_its_first_row() -> None:
    es = make()
    X = es.ask()
    assert X.shape == (es.population_size + 1, N)
    np.testing.assert_array_equal(X[0], np.ones(N))
    es.tell([sphere(x) for x in X])
    assert es.ask().shape == (es.population_size, N)
    assert (es.generation, es.evaluations) == (1, es.population_size + 1)


def test_asked_arrays_are_read_only_and_never_change() -> None:
    es = make()
    kept, copies = [], []
    for _ in range(6):
        X = es.ask()
        with pytest.raises(ValueError, match="read-only"):
            X[0, 0] = 1
        kept.append(X)
        copies.append(X.copy())
        es.tell([sphere(x) for x in X])
    for X, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(X, copy)


def test_population_memory_is_used_again() -> None:
    es = make()
    es.tell([sphere(x) for x in es.ask()])
    places = set()
    for _ in range(10):
        X = es.ask()
        places.add(X.ctypes.data)
        es.tell([sphere(x) for x in X])
    assert len(places) <= 2


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda es: es.tell([1.0]), "call ask"),
        (lambda es: (es.ask(), es.tell([1.0])), "values are expected, but 1 came"),
        (lambda es: (es.ask(), es.tell(np.zeros(99))), "values are expected"),
        (lambda es: (es.ask(), es.tell([1.0], index=[99])), "index must lie in"),
        (lambda es: (es.ask(), es.tell([1.0], index=[-1])), "index must lie in"),
        (lambda es: (es.ask(), es.tell([1.0, 2.0], index=[1, 1])), "names a row twice"),
        (lambda es: (es.ask(), es.tell([1.0], index=[0.5])), "integers"),
        (lambda es: (es.ask(), es.tell([1.0], [0]), es.tell([1.0], [0])), "row 0 was told before"),
    ],
)
def test_wrong_tells_are_errors_and_change_nothing(act, message: str) -> None:
    es, twin = make(), make()
    with pytest.raises(mmes.TellError, match=message):
        act(es)
    if es._pending is not None:
        return
    for optimizer in (es, twin):
        optimizer.tell([sphere(x) for x in optimizer.ask()])
    np.testing.assert_array_equal(es.ask(), twin.ask())


def test_telling_twice_is_an_error() -> None:
    es = make()
    values = [sphere(x) for x in es.ask()]
    es.tell(values)
    with pytest.raises(mmes.TellError, match="tell each generation once"):
        es.tell(values)


class TellInParts(RuleBasedStateMachine):
    """Values may come in any parts and order; the optimizer equals one that is told at once."""

    @initialize(seed=st.integers(0, 1000))
    def begin(self, seed: int) -> None:
        self.es = mmes.MMES(np.ones(4), 0.5, seed=seed)
        self.twin = mmes.MMES(np.ones(4), 0.5, seed=seed)
        self.open: list[int] = []

    @rule()
    def ask(self) -> None:
        X = self.es.ask()
        if not self.open:
            self.open = list(range(X.shape[0]))
            self.twin.ask()

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def tell_some(self, data: st.DataObject) -> None:
        rows = data.draw(st.lists(st.sampled_from(self.open), min_size=1, unique=True))
        X = self.es.ask()
        self.es.tell([sphere(X[row]) for row in rows], index=rows)
        self.open = [row for row in self.open if row not in rows]
        if not self.open:
            self.twin.tell([sphere(x) for x in self.twin.ask()])

    @precondition(lambda self: self.open)
    @rule()
    def skip(self) -> None:
        self.es.skip()
        self.open = list(range(self.es.ask().shape[0]))

    @precondition(lambda self: not self.open)
    @rule()
    def tell_without_asking(self) -> None:
        with pytest.raises(mmes.TellError):
            self.es.tell([1.0])

    @invariant()
    def same_as_the_twin(self) -> None:
        assert self.es.generation == self.twin.generation
        assert self.es.sigma == self.twin.sigma
        np.testing.assert_array_equal(self.es.mean, self.twin.mean)


TellInParts.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestTellInParts = TellInParts.TestCase


def test_the_best_of_a_half_told_generation_is_seen() -> None:
    es = make()
    X = es.ask()
    es.tell([-5.0], index=[3])
    assert es.best_value == -5.0
    np.testing.assert_array_equal(es.best_x, X[3])
    assert (
        es.state()["best_value"] == math.inf
    )  # the state is that of the last completed generation


# NaN, infinities and failures


def test_nan_equals_plus_infinity_and_is_never_best() -> None:
    runs = []
    for bad in (math.nan, math.inf):
        es = make()
        for _ in range(30):
            X = es.ask()
            es.tell([bad if x[0] > 1.1 else sphere(x) for x in X])
        runs.append(es)
    np.testing.assert_array_equal(runs[0].ask(), runs[1].ask())
    assert math.isfinite(runs[0].best_value)
    assert runs[0].failed_evaluations > 0
    assert runs[1].failed_evaluations == 0


def test_a_failed_generation_leaves_the_state_and_ten_stop_the_run() -> None:
    es = make()
    es.tell([sphere(x) for x in es.ask()])
    mean, sigma = es.mean.copy(), es.sigma
    seen = []
    for count in range(10):
        assert es.stop() is None, count
        seen.append(es.ask().copy())
        es.tell(np.full(es.population_size, math.nan))
    assert es.stop() is StopReason.ALL_FAILED
    np.testing.assert_array_equal(es.mean, mean)
    assert es.sigma == sigma
    assert es.generation == 11
    assert not np.array_equal(seen[0], seen[1])  # another draw each time


def test_one_good_generation_forgives_the_failures() -> None:
    es = make()
    for count in range(25):
        X = es.ask()
        failing = count % 10 != 9
        es.tell(np.full(X.shape[0], math.nan) if failing else [sphere(x) for x in X])
        assert es.stop() is None


def test_minus_infinity_is_unbounded() -> None:
    es = make()
    X = es.ask()
    es.tell([-math.inf if i == 2 else sphere(x) for i, x in enumerate(X)])
    assert es.stop() is StopReason.UNBOUNDED
    assert es.best_value == -math.inf


def test_linear_and_constant_objectives_end() -> None:
    cases = (
        (lambda x: float(x.sum()), StopReason.SIGMA_TOO_LARGE),
        (lambda x: 1.0, StopReason.FLAT),
    )
    for f, reason in cases:
        es = make()
        while not es.stop():
            X = es.ask()
            assert np.isfinite(X).all()
            es.tell([f(x) for x in X])
            assert es.generation < 20_000
        assert es.stop() is reason


# Bounds


@pytest.mark.parametrize("handling", ["clip", "reflect"])
def test_no_candidate_leaves_the_bounds(handling: str) -> None:
    lower, upper = np.linspace(-1, 0, N), np.linspace(0.5, 1.5, N)
    es = mmes.MMES(
        (lower + upper) / 2, 5.0, seed=2, bounds=(lower, upper), bounds_handling=handling
    )
    for _ in range(60):
        X = es.ask()
        assert ((lower <= X) & (upper >= X)).all()
        es.tell([sphere(x - 2) for x in X])
        assert ((lower <= es.mean) & (es.mean <= upper + 1e-15)).all()
    if handling == "clip":  # the optimum lies in a corner, which clipping reaches exactly
        np.testing.assert_allclose(es.best_x, upper, atol=1e-3)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((1.0, -1.0), "lower bound must not exceed"),
        ((math.nan, 1.0), "lower bound must not exceed"),
        ((np.zeros(3), 1.0), "must be one number or 8 of them"),
        ((2.0, 3.0), r"x0\[0\] = 1.0 is outside \[2.0, 3.0\]"),
        ("wide", "bounds must be a tuple"),
        ([(0, 2)] * 7, "must be one number or 8 of them"),
        (5.0, "bounds must be a tuple"),
    ],
    ids=str,
)
def test_wrong_bounds_are_refused(bounds, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(bounds=bounds)


def test_bounds_come_in_the_ways_people_write_them() -> None:
    class Bounds:
        lb, ub = [0.0] * N, 2.0

    for bounds in (
        (0.0, 2.0),
        (np.zeros(N), 2),
        [(0, 2)] * N,
        Bounds(),
        (None, 2.0),
        [(None, 2)] * N,
    ):
        es = make(bounds=bounds)
        assert es.box is not None
        np.testing.assert_array_equal(es.box.upper, np.full(N, 2.0))


# Start


@pytest.mark.parametrize(
    ("x0", "sigma0", "error", "message"),
    [
        ([], 1.0, ValueError, "x0 is empty"),
        (np.zeros((2, 2)), 1.0, ValueError, r"one-dimensional.*\(2, 2\)"),
        (3.0, 1.0, ValueError, "one-dimensional"),
        ([1.0, math.nan], 1.0, ValueError, r"x0\[1\] is nan"),
        ([math.inf, 1.0], 1.0, ValueError, r"x0\[0\] is inf"),
        (["a"], 1.0, TypeError, "real numbers"),
        (None, 1.0, TypeError, "real numbers"),
        ([1j], 1.0, TypeError, "real numbers"),
        ([[1], [2, 3]], 1.0, TypeError, "real numbers"),
        ([1.0], 0.0, ValueError, "sigma0 must be a finite number > 0, not 0.0"),
        ([1.0], -1, ValueError, "sigma0"),
        ([1.0], math.nan, ValueError, "sigma0"),
        ([1.0], math.inf, ValueError, "sigma0"),
        ([1.0], "1", TypeError, "sigma0"),
        ([1.0], [1.0], TypeError, "scale="),
        ([1.0], True, TypeError, "sigma0"),
    ],
    ids=str,
)
def test_wrong_starts_are_refused(x0, sigma0, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mmes.MMES(x0, sigma0)


def test_integer_x0_is_taken_and_copied() -> None:
    x0 = np.arange(1, N + 1)
    es = mmes.MMES(x0, 1.0, seed=1)
    x0[:] = 0
    np.testing.assert_array_equal(es.mean, np.arange(1.0, N + 1))


@pytest.mark.parametrize("scale", [np.zeros(N), np.ones(3), [-1.0] * N, [math.nan] * N])
def test_wrong_scales_are_refused(scale) -> None:
    with pytest.raises(ValueError, match="scale"):
        make(scale=scale)


def test_scale_sets_the_size_of_each_variables_steps() -> None:
    scale = np.logspace(-3, 3, N)
    es = mmes.MMES(np.zeros(N), 0.5, seed=1, scale=scale, population_size=2000)
    relative = es.ask()[1:].std(axis=0) / scale
    np.testing.assert_allclose(relative / relative.mean(), 1.0, rtol=0.15)


def test_a_problem_in_other_units_is_the_same_problem() -> None:
    scale = np.logspace(-6, 6, 30)
    a = mmes.minimize(sphere, np.ones(30), 0.5, seed=1, target=1e-8, max_evaluations=50_000)
    b = mmes.minimize(
        lambda x: sphere(x / scale),
        scale,
        0.5,
        scale=scale,
        seed=1,
        target=1e-8,
        max_evaluations=50_000,
    )
    assert a.success
    assert b.success
    assert 0.7 < b.nfev / a.nfev < 1.4


# Memory


def test_memory_is_asked_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 1000
    fixed = 8 * n * (24 + 5)
    monkeypatch.setattr(memory, "available_bytes", lambda: int((fixed + 4 * n * 20) / 0.8) + 1)
    with pytest.warns(ReducedArchiveWarning, match=r"m = 64 directions .* m is reduced to 20"):
        es = mmes.MMES(np.zeros(n), 1.0, seed=1)
    assert es.options["archive_size"] == 20
    with pytest.raises(MemoryError, match=r"m = 64 .* archive_size=20 would fit"):
        mmes.MMES(np.zeros(n), 1.0, archive_size=64)
    monkeypatch.setattr(memory, "available_bytes", lambda: fixed // 2)
    with pytest.raises(MemoryError, match="population of 24 candidates alone takes"):
        mmes.MMES(np.zeros(n), 1.0)


def test_a_hundred_million_variables_get_a_quick_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine of 16 GiB: an error within a second, before anything is allocated."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 16 * 2**30)
    huge = np.broadcast_to(0.0, (10**8,))
    began = time.process_time()
    with pytest.raises(MemoryError, match="population of 59 candidates"):
        mmes.MMES(huge, 1.0)
    assert time.process_time() - began < 1.0


# Stopping, threads


def test_stop_reports_target_and_budget() -> None:
    es = make()
    assert es.stop(max_evaluations=es.population_size) is StopReason.MAX_EVALUATIONS
    assert es.stop(max_evaluations=es.population_size + 1) is None
    es.tell([sphere(x) for x in es.ask()])
    assert es.stop(target=es.best_value) is StopReason.TARGET_REACHED


def test_a_long_window_is_not_looked_through_in_every_generation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The values of the generations move, so that the best one alone does not end the run."""
    rule, looks = Standstill(window=10_000, tolerance=1e-9), []
    monkeypatch.setattr(rule, "_generations_move", lambda tolerance: looks.append(1) or True)
    for generation in range(30_000):
        rule.observe(generation, 1.0, float(generation), float(generation))
        assert not rule.stagnated
    assert 1000 <= len(looks) <= 3000


def stagnated(values: list[float], generation_bests: list[float] | None = None) -> bool:
    """Return the verdict of the rule, of one that saw it all and of one restored in between."""
    verdicts = []
    for restored_at in (None, len(values) // 2):
        rule = Standstill(window=10, tolerance=1e-8)
        for generation, value in enumerate(values):
            seen = value if generation_bests is None else generation_bests[generation]
            rule.observe(generation, value, seen, seen + 1)
            if generation == restored_at:
                twin = Standstill(window=10, tolerance=1e-8)
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
    rule, best = Standstill(window, ftol), math.inf
    for generation, value in enumerate(values):
        best = min(best, value)
        rule.observe(generation, best, value, value + spread)
        if generation == len(values) // 2:
            twin = Standstill(window, ftol)
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


def test_two_threads_on_one_optimizer_are_told_so() -> None:
    es = make()
    errors = []
    with es._alone:  # as if another thread were inside
        thread = threading.Thread(target=lambda: errors.append(_error(es.ask)))
        thread.start()
        thread.join()
    assert isinstance(errors[0], RuntimeError)
    assert "another thread" in str(errors[0])
    es.ask()


def _error(call) -> Exception | None:
    try:
        call()
    except Exception as error:
        return error
    return None


def test_different_optimizers_in_threads_equal_running_alone() -> None:
    def run(seed: int) -> np.ndarray:
        es = mmes.MMES(np.ones(50), 0.5, seed=seed)
        for _ in range(50):
            es.tell([sphere(x) for x in es.ask()])
        return es.ask().copy()

    alone = [run(seed) for seed in range(4)]
    found: list = [None] * 4
    threads = [threading.Thread(target=lambda i=i: found.__setitem__(i, run(i))) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for a, b in zip(alone, found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_state_of_another_strategy_is_refused() -> None:
    state = make().state()
    with pytest.raises(ValueError, match="'other', not of 'mmes'"):
        mmes.MMES.from_state(state | {"strategy": "other"})
