"""Validation: a loss of its own decides which mean is kept, and when it is time to stop."""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmes
from mmes.base.reasons import StopReason
from mmes.errors import CheckpointError

N = 12


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


class Judge:
    """Losses by a rule, and the means that were judged."""

    def __init__(self, rule: Any):
        self.rule, self.seen = rule, []

    def __call__(self, x: np.ndarray) -> float:
        self.seen.append(x.copy())
        return self.rule(len(self.seen) - 1, x)


def solve(validation: Any, **options: Any) -> mmes.Result:
    start = {"seed": 1, "max_generations": 40, "validation_every": 5}
    return mmes.minimize(sphere, np.ones(N), 0.3, validation=validation, **start | options)


def test_the_best_validated_mean_is_returned_with_its_loss() -> None:
    judge = Judge(lambda number, x: abs(number - 4.5))  # the fourth and the fifth are the best
    means = {}
    result = solve(judge, callback=lambda p: means.update({p.generation: p.mean.copy()}))
    # Before the first generation, and every five; the last generation is one of them.
    assert len(judge.seen) == 9
    assert np.array_equal(judge.seen[0], np.ones(N))
    assert np.array_equal(judge.seen[1], means[5])
    assert np.array_equal(result.x, means[20])
    assert result.fun == 0.5
    assert np.array_equal(result.mean, judge.seen[-1])


def test_the_last_mean_is_validated_too() -> None:
    judge = Judge(lambda number, x: sphere(x))
    result = solve(judge, max_generations=42)
    assert len(judge.seen) == 10
    assert np.array_equal(result.x, result.mean)
    assert result.fun == sphere(result.mean)


def test_progress_and_history_show_it() -> None:
    shown = []
    result = solve(
        lambda x: 2 * sphere(x),
        callback=lambda p: shown.append((p.validation, p.scalars()["validation"])),
        max_generations=12,
    )
    column = result.history["validation"]
    assert column.size == 12
    assert shown[:-1] == [(value, value) for value in column]
    assert len(set(column[:4])) == len(set(column[4:9])) == 1
    assert column[4] != column[3]


def test_patience_ends_a_run_and_is_no_success() -> None:
    judge = Judge(lambda number, x: 1.0 if number == 2 else 2.0 - 0.01 * number)
    result = solve(judge, patience=3)
    assert result.reason is StopReason.VALIDATION
    assert not result.success
    assert result.nit == 25  # the best after 10, and three validations without a better one
    assert result.fun == 1.0
    assert np.array_equal(result.x, judge.seen[2])


def test_a_target_is_one_for_the_validation_loss() -> None:
    result = solve(lambda x: sphere(x) + 1, target=1.01, max_generations=None)
    assert result.reason is StopReason.TARGET_REACHED
    assert result.success
    assert 1 < result.fun <= 1.01
    assert not solve(lambda x: sphere(x) + 1, target=0.5, max_generations=50).success
    # The start point may be good enough, and the last mean.
    assert solve(lambda x: 0.0, target=0.5).nit == 0
    judge = Judge(lambda number, x: 1.0 if number < 9 else 0.0)
    result = solve(judge, target=0.5, max_generations=42)
    assert (result.nit, result.success) == (42, True)


def test_nan_is_no_improvement() -> None:
    judge = Judge(lambda number, x: math.nan if number != 3 else 7.0)
    result = solve(judge)
    assert result.fun == 7.0
    assert np.array_equal(result.x, judge.seen[3])


def test_an_error_says_where_it_came_from_and_the_run_goes_on_from_the_checkpoint(
    tmp_path: Path,
) -> None:
    def broken(number: int, x: np.ndarray) -> float:
        if number == 3:
            raise RuntimeError("no disk")
        return sphere(x)

    path = tmp_path / "run"
    with pytest.raises(RuntimeError, match="no disk") as caught:
        solve(Judge(broken), checkpoint=path)
    assert any("validation=, after generation 15" in note for note in caught.value.__notes__)
    assert caught.value.result.nit == 15
    whole, resumed = solve(sphere), mmes.resume(path, sphere, validation=sphere)
    assert np.array_equal(resumed.x, whole.x)
    for name in whole.history:
        assert np.array_equal(whole.history[name], resumed.history[name], equal_nan=True), name


@pytest.mark.parametrize("broken_at", [1, 13, 37])
def test_a_resumed_run_keeps_what_was_validated(tmp_path: Path, broken_at: int) -> None:
    def uneven(x: np.ndarray) -> float:
        return math.sin(1e3 * x[0])

    options = {"max_generations": 60, "patience": 6}
    whole = solve(uneven, **options)
    path = tmp_path / "run"
    solve(uneven, **options | {"max_generations": broken_at}, checkpoint=path)
    resumed = mmes.resume(path, sphere, validation=uneven, max_generations=60)
    assert np.array_equal(resumed.x, whole.x)
    assert (resumed.fun, resumed.nit, resumed.reason) == (whole.fun, whole.nit, whole.reason)
    # What had ended returns its result again, without a call.
    judge = Judge(lambda number, x: 1 / 0)
    again = mmes.resume(path, sphere, validation=judge, max_generations=60)
    assert np.array_equal(again.x, whole.x)
    assert again.fun == whole.fun
    assert judge.seen == []
    with pytest.raises(CheckpointError, match="it had validation; give validation= as then"):
        mmes.resume(path, sphere, patience=None)


def test_row09_a_signal_in_validation_changes_nothing_for_the_resumed_run(tmp_path: Path) -> None:
    """Failed before where a start ended: the question about noise was skipped."""
    options = {"restarts": 1, "xtol": 1e-2, "max_generations": None, "validation_every": 1}
    whole = solve(sphere, **options)
    assert whole.starts == 2
    end = int(np.sum(whole.history["start"] == 0))  # no line is left out of so short a history
    for at in (0, 7, end, whole.nit):

        def told(count: int, x: np.ndarray, at: int = at) -> float:
            if count == at:
                os.kill(os.getpid(), signal.SIGINT)
            return sphere(x)

        path = tmp_path / str(at)
        with pytest.raises(KeyboardInterrupt) as caught:
            solve(Judge(told), **options, checkpoint=path)
        assert caught.value.result.nit == at  # type: ignore[attr-defined]
        resumed = mmes.resume(path, sphere, validation=sphere)
        found = resumed.nfev, resumed.fun, resumed.best_seen, resumed.reason
        assert found == (whole.nfev, whole.fun, whole.best_seen, whole.reason), at
        for name in whole.history:
            assert np.array_equal(whole.history[name], resumed.history[name], equal_nan=True), name


def test_row48_what_is_kept_by_its_loss_is_not_taken_for_the_best_point() -> None:
    # The question about noise evaluates the best point again, and so did it with the mean that was
    # validated best: its value is another one.
    options: dict[str, Any] = {"xtol": 1e-2, "max_generations": None}
    result = solve(lambda x: sphere(x) + 1, **options)
    plain = mmes.minimize(sphere, np.ones(N), 0.3, seed=1, xtol=1e-2)
    assert not result.noisy
    assert (result.nfev, result.best_seen) == (plain.nfev, plain.best_seen)
    # Nor is its loss a value of the objective for the next start.
    result = solve(lambda x: sphere(x) - 1, **options, restarts=1)
    assert result.starts == 2
    assert 0 < result.best_seen == result.history["best"][-1]


def test_what_cannot_be_combined_is_refused() -> None:
    with pytest.raises(TypeError, match="validation must be callable"):
        solve(3)
    with pytest.raises(ValueError, match="constraints cannot be combined with validation"):
        solve(sphere, constraints=lambda x: x[0])
    with pytest.raises(TypeError, match="real number"):
        solve(lambda x: "good")


def test_validations_that_all_fail_are_named() -> None:
    """Failed before: "The search converged", and no word why it is no success."""
    result = solve(lambda x: math.nan, max_generations=None)
    assert (result.success, result.fun) == (False, math.inf)
    assert result.message.endswith("Every validation failed: it returned NaN or inf.")
