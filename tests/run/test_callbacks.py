"""Callbacks: what they see, how they stop a run, when they are closed."""

import itertools
import threading

import numpy as np
import pytest

import mmes
from mmes.base.reasons import StopReason

X0 = np.ones(12)


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


def rastrigin(x: np.ndarray) -> float:
    return float((x**2 - 10 * np.cos(2 * np.pi * x) + 10).sum())


def test_the_callback_sees_progress_and_may_raise_stopiteration() -> None:
    seen = []

    def watch(p: mmes.Progress) -> None:
        seen.append((p.generation, p.evaluations, p.best_value, p.sigma, p.start))
        assert p.best_x.shape == p.mean.shape == X0.shape
        assert sphere(p.best_x) == p.best_value
        assert p.elapsed >= 0
        assert p.max_evaluations == 1000
        if p.final:
            assert seen.pop() == seen[-1]
        elif len(seen) == 5:
            raise StopIteration

    r = mmes.minimize(sphere, X0, 0.5, seed=1, callback=watch, max_evaluations=1000)
    assert r.reason is StopReason.CALLBACK
    assert [line[0] for line in seen] == [1, 2, 3, 4, 5]
    assert all(b[2] <= a[2] for a, b in itertools.pairwise(seen))


@pytest.mark.parametrize("answer", [True, np.True_, 1, "yes"], ids=repr)
def test_any_true_answer_of_a_callback_stops(answer) -> None:
    r = mmes.minimize(sphere, X0, 0.5, seed=1, callback=lambda p: answer, max_generations=9)
    assert (r.reason, r.nit) == (StopReason.CALLBACK, 1)


@pytest.mark.parametrize("answer", [None, False, np.False_, 0, ""], ids=repr)
def test_any_other_does_not(answer) -> None:
    r = mmes.minimize(sphere, X0, 0.5, seed=1, callback=lambda p: answer, max_generations=9)
    assert r.reason is StopReason.MAX_GENERATIONS


def test_several_callbacks_are_all_called_also_when_one_stops() -> None:
    first, second = [], []

    def stops(p: mmes.Progress) -> bool:
        first.append(p.generation)
        return p.generation == 3

    for together in ([stops, second.append], (stops, second.append)):
        first.clear()
        second.clear()
        r = mmes.minimize(sphere, X0, 0.5, seed=1, callback=together)
        assert r.reason is StopReason.CALLBACK
        assert first == [p.generation for p in second] == [1, 2, 3, 3]
    with pytest.raises(TypeError, match="callback must be callable, or a list of callables, not 3"):
        mmes.minimize(sphere, X0, 0.5, callback=[stops, 3])  # type: ignore[list-item]


@pytest.mark.parametrize("budget", [1, 13, 100, 250])
def test_the_last_call_has_the_numbers_of_the_result(budget: int) -> None:
    seen: list[mmes.Progress] = []
    r = mmes.minimize(
        sphere, X0, 0.5, seed=1, callback=seen.append, max_evaluations=budget, restarts=2
    )
    assert [p.final for p in seen] == [False] * r.nit + [True]
    last = seen[-1]
    assert last.reason is r.reason is StopReason.MAX_EVALUATIONS
    assert (last.evaluations, last.generation, last.best_value) == (r.nfev, r.nit, r.fun)
    assert set(last.scalars()) == {
        "evaluations", "generation", "best_value", "sigma", "start", "elapsed",
    }  # fmt: skip
    assert last.scalars()["evaluations"] == budget
    assert "reason=MAX_EVALUATIONS" in repr(last)
    assert len(repr(seen[0])) < 120
    assert ("reason" in repr(seen[0])) == seen[0].final


class Closing:
    """An observer that is closed."""

    def __init__(self, action=None):
        self.action, self.calls, self.closed = action, 0, 0

    def __call__(self, p):
        self.calls += 1
        if self.action is not None:
            self.action(p)

    def close(self):
        self.closed += 1


def test_observers_are_closed_whatever_ends_the_run() -> None:
    def fails(p):
        raise KeyError("mine")

    def interrupts(p):
        raise KeyboardInterrupt

    fine = Closing()
    mmes.minimize(sphere, X0, 0.5, callback=fine, max_generations=3)
    assert (fine.calls, fine.closed) == (4, 1)
    for action, error in ((fails, KeyError), (interrupts, KeyboardInterrupt)):
        two = Closing(), Closing(action)
        with pytest.raises(error):
            mmes.minimize(sphere, X0, 0.5, callback=two)
        assert [(o.calls, o.closed) for o in two] == [(1, 1), (1, 1)]
    broken = Closing()
    with pytest.raises(mmes.EvaluationError):
        mmes.minimize(lambda x: 1 / 0, X0, 0.5, callback=broken)
    assert (broken.calls, broken.closed) == (0, 1)


def test_a_callback_that_raises_is_heard() -> None:
    def broken(progress) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        mmes.minimize(sphere, X0, 0.5, callback=broken)


def test_a_run_can_be_stopped_from_another_thread() -> None:
    run = mmes.Run(sphere, X0, 0.5, seed=1, sigma_min=0.0, xtol=0.0, stagnation_window="off")
    timer = threading.Timer(0.05, run.request_stop)
    timer.start()
    assert run.run().reason is StopReason.REQUESTED
