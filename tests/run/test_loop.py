"""A run as settings, state and a loop: reuse, growth, restarts, order."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys

import numpy as np
import pytest

import mmes
from mmes.base.reasons import StopReason
from mmes.errors import RestartWarning
from mmes.run.saving import restored_state, saved_state
from mmes.run.settings import RunSettings
from mmes.run.state import RunState, Spent

X0 = np.ones(6)
WHERE = {"x0": X0, "sigma0": 0.5, "bounds": None, "scale": None, "manifold": None}


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


def settings(**options) -> RunSettings:
    return RunSettings.checked(WHERE, "mmes", None, options)


def same(a: mmes.Result, b: mmes.Result) -> None:
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(a.mean, b.mean)
    assert (a.fun, a.nfev, a.nit, a.starts) == (b.fun, b.nfev, b.nit, b.starts)
    for name, column in a.history.items():
        np.testing.assert_array_equal(column, b.history[name])


# Settings and state


def test_settings_do_not_change() -> None:
    made = settings(seed=3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.seed_given = False  # type: ignore[misc]
    assert made.seed == 3
    assert not settings().seed_given


def test_a_state_saves_and_restores_itself() -> None:
    made = settings(seed=3, restarts=2)
    state = RunState.begun(made)
    for _ in range(5):
        state.es.tell([sphere(x) for x in state.es.ask()])
        state.record()
    state.begin_start(made)
    state.es.tell([sphere(x) for x in state.es.ask()])
    state.record()
    now = Spent(retried=2, seconds=1.5)
    again = restored_state(made, saved_state(state, made, now))
    assert (again.start, again.growth, again.evaluations, again.generations) == (
        state.start, state.growth, state.evaluations, state.generations,
    )  # fmt: skip
    assert again.spent == state.spent + now
    assert again.best_value == state.best_value
    np.testing.assert_array_equal(again.best_x, state.best_x)
    np.testing.assert_array_equal(again.es.ask(), state.es.ask())
    np.testing.assert_array_equal(again.history.table(), state.history.table())


def test_population_and_damping_follow_the_growth() -> None:
    made = settings(seed=3, restarts=2)
    state = RunState.begun(made)
    size, damping = state.es.population_size, state.es.options["damping"]
    state.growth = 2  # as if the population had been doubled twice within the first start
    state.begin_start(made)
    assert (state.start, state.growth) == (1, 3)
    assert state.es.population_size == 8 * size
    assert state.es.options["damping"] == 8 * damping
    saved = saved_state(state, made, Spent())
    assert restored_state(made, saved).growth == 3


# A run that is run again


def test_a_run_goes_on_after_its_time_limit(monkeypatch) -> None:
    """Raised TellError before: the unfinished generation was told twice."""
    clock = itertools.count()
    monkeypatch.setattr("mmes.run.limits.time.monotonic", lambda: float(next(clock)))
    run = mmes.Run(sphere, X0, 0.5, seed=1, time_limit=47.0, max_evaluations=300)
    first = run.run()
    assert first.reason is StopReason.TIME_LIMIT
    assert first.history["evaluations"][-1] == first.nfev
    last = first
    while last.reason is StopReason.TIME_LIMIT:
        before, last = last, run.run()
        assert last.nfev > before.nfev
    assert last.reason is StopReason.MAX_EVALUATIONS
    assert last.time > first.time
    same(last, mmes.minimize(sphere, X0, 0.5, seed=1, max_evaluations=300))


def test_a_run_goes_on_after_a_requested_stop() -> None:
    run = mmes.Run(
        sphere, X0, 0.5, seed=1, max_generations=20,
        callback=lambda p: p.generation == 7 and p.request_stop(),
    )  # fmt: skip
    first = run.run()
    assert (first.reason, first.nit) == (StopReason.REQUESTED, 7)
    second = run.run()
    assert (second.reason, second.nit) == (StopReason.MAX_GENERATIONS, 20)
    same(second, mmes.minimize(sphere, X0, 0.5, seed=1, max_generations=20))
    same(run.run(), second)


# Restarts


def test_a_restart_that_does_not_fit_into_memory_ends_the_run(tmp_path, monkeypatch) -> None:
    """Raised MemoryError before, with nothing saved and no result."""
    path = tmp_path / "run.mmes"
    options = {"seed": 1, "stagnation_window": 4, "restarts": 5, "checkpoint": path}
    options["strategy"] = "mmes"
    asked = []

    def check_memory(space, options, held):
        asked.append((options["population_size"], held))
        if len(asked) == 2:
            raise MemoryError("1 TB is needed, 2 GB are there")

    monkeypatch.setattr(mmes.MMES, "check_memory", check_memory)
    with pytest.warns(RestartWarning, match="restart 2 does not fit into memory .1 TB is needed"):
        r = mmes.minimize(lambda x: 1.0, X0, 0.5, **options)
    assert r.reason is StopReason.FLAT
    assert r.starts == 2
    assert [size for size, _ in asked] == [18, 36]
    assert all(held > 0 for _, held in asked)
    monkeypatch.undo()
    again = mmes.resume(path, lambda x: 1.0, restarts=1)
    assert (again.nfev, again.starts) == (r.nfev, 2)


# The order of things


def test_the_next_generation_begins_before_the_state_is_written(tmp_path, monkeypatch) -> None:
    seen = []

    class Listening:
        def evaluate(self, points, generation, keep_going):
            seen.append("evaluate")
            return [sphere(x) for x in points]

        def begin(self, generation, rows):
            seen.append("begin")

        def told(self, values):
            seen.append("told")

        def close(self):
            pass

    save = mmes.run.saving.Saver.save

    def noted(self, *arguments):
        seen.append("save")
        return save(self, *arguments)

    monkeypatch.setattr(mmes.run.saving.Saver, "save", noted)
    options = {"max_generations": 3, "checkpoint_generations": 1, "seed": 1, "evaluate_x0": False}
    mmes.minimize(None, X0, 0.5, workers=Listening(), checkpoint=tmp_path / "run.mmes", **options)
    one = ["evaluate", "told"]
    assert seen == ["begin", *one, "begin", "save", *one, "begin", "save", *one, "save", "save"]


def test_history_counts_in_integers() -> None:
    r = mmes.minimize(sphere, X0, 0.5, seed=1, max_evaluations=25, strategy="mmes")
    assert r.history["evaluations"].dtype == r.history["start"].dtype == np.int64
    assert r.history["evaluations"].tolist() == [10, 19, 25]


def test_importing_the_library_leaves_out_what_few_need() -> None:
    program = """
import sys, mmes
assert not {"asyncio", "ssl", "mmes.replicas"} & set(sys.modules), sorted(sys.modules)
mmes.replicas.Ray
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_generations_end_unlimited_restarts() -> None:
    """Failed before: max_generations was not counted among what ends a run."""
    result = mmes.minimize(
        sphere, X0, 0.5, seed=1, restarts="unlimited", max_generations=400, strategy="mmes"
    )
    assert result.reason is StopReason.MAX_GENERATIONS
    assert result.nit == 400
    with pytest.raises(ValueError, match="max_evaluations, max_generations or time_limit"):
        settings(restarts="unlimited")
