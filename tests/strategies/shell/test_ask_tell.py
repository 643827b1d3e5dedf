"""The ask/tell shell: bookkeeping, partial tells, failures, threads."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import mmes
from mmes.base.reasons import StopReason
from mmes.strategies import STRATEGIES

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
        (
            lambda es: (es.ask(), es.tell([1.0])),
            "tell needs .* values, one per row, but was given 1",
        ),
        (lambda es: (es.ask(), es.tell(np.zeros(99))), "but was given an array of shape"),
        (lambda es: (es.ask(), es.tell([1.0], index=[99])), "index must lie in"),
        (lambda es: (es.ask(), es.tell([1.0], index=[-1])), "index must lie in"),
        (lambda es: (es.ask(), es.tell([1.0, 2.0], index=[1, 1])), "contains a row twice"),
        (lambda es: (es.ask(), es.tell([1.0], index=[0.5])), "integers"),
        (lambda es: (es.ask(), es.tell([1.0], [0]), es.tell([1.0], [0])), "row 0 was told before"),
    ],
)
def test_wrong_tells_are_errors_and_change_nothing(act, message: str) -> None:
    es, twin = make(), make()
    with pytest.raises(mmes.TellError, match=message):
        act(es)
    if "told before" in message:  # its first tell was right
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


@pytest.mark.parametrize("name", ["mmes", "adaptive", "lm-cma", "rm-es", "fast-cma"])
def test_a_loop_without_a_stop_rule_never_makes_the_mean_nan(name: str) -> None:
    """Failed before: sigma fell to 1e-54, and the rounding of the mean divided by it overflowed."""
    es = STRATEGIES[name](np.ones(20), 0.5, seed=1)
    for generation in range(3000):
        candidates = es.ask()
        # The values rise from generation to generation, as on minibatches that become harder.
        es.tell(np.sum(candidates * candidates, axis=1) + 1.0 + generation)
    assert np.isfinite(es.mean).all()
    # It was looked at every 16 generations.
    assert es.sigma > 1e-32
