"""Batches of data: one per generation, the same for all who are compared; saved runs go on."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmes
from mmes.base.reasons import StopReason
from mmes.errors import CheckpointError, CheckpointWarning, EvaluationError
from mmes.replicas import Local

N = 12
X0 = np.zeros(N)
# Least squares: a batch is the rows of the data that a generation sees.
DATA = np.random.default_rng(1).standard_normal((200, N))
TRUTH = np.linspace(-1, 1, N)
ANSWERS = DATA @ TRUTH + 0.1 * np.random.default_rng(2).standard_normal(200)


def rows(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 150, 20)


def loss(x: np.ndarray, batch: np.ndarray) -> float:
    return float(np.mean((DATA[batch] @ x - ANSWERS[batch]) ** 2))


def losses(points: np.ndarray, batch: np.ndarray) -> np.ndarray:
    return np.array([loss(x, batch) for x in points])


def held_out(x: np.ndarray) -> float:
    return float(np.mean((DATA[150:] @ x - ANSWERS[150:]) ** 2))


def solve(fun: Any = loss, **options: Any) -> mmes.Result:
    start = {"batches": rows, "seed": 1, "max_generations": 30}
    return mmes.minimize(fun, X0, 0.3, **start | options)


def same(one: mmes.Result, two: mmes.Result) -> None:
    assert np.array_equal(one.x, two.x)
    assert np.array_equal(one.mean, two.mean)
    assert (one.fun, one.nfev, one.nit, one.sigma) == (two.fun, two.nfev, two.nit, two.sigma)
    for name in one.history:
        assert np.array_equal(one.history[name], two.history[name], equal_nan=True), name


def test_all_of_a_generation_see_its_batch_and_the_next_one_sees_the_next() -> None:
    seen, means = defaultdict(list), []

    def watched(x: np.ndarray, batch: int) -> float:
        seen[batch].append(x.copy())
        return float(x @ x)

    note = {"callback": lambda progress: means.append(progress.mean.copy())}
    result = solve(watched, batches=lambda generation: generation, **note)
    assert sorted(seen) == list(range(30))
    per_generation = [len(seen[number]) for number in range(30)]
    size = result.options["population_size"] or 4 + int(3 * math.log(N))
    # Probes from the second generation on; the mean at the end, on the last batch.
    assert per_generation == [size, *[size + 2] * 28, size + 3]
    assert np.array_equal(seen[29][-1], result.x)
    assert np.array_equal(result.x, result.mean)
    assert result.nfev == sum(per_generation)
    # The probes lie around the mean that the generation before has left.
    for number in range(1, 30):
        assert np.allclose(seen[number][0] + seen[number][1], 2 * means[number - 1], atol=1e-12)


@pytest.mark.parametrize("kind", ["list", "again", "callable", "vectorized", "threads", "workers"])
def test_batches_are_the_same_whatever_they_come_from_and_whoever_evaluates(kind: str) -> None:
    epoch = [rows(number) for number in range(7)]

    class Again:
        def __iter__(self) -> Iterator[np.ndarray]:
            yield from epoch

    expected = solve(batches=lambda generation: epoch[generation % 7])
    given: dict[str, Any] = {"batches": Again() if kind == "again" else epoch}
    fun: Any = loss
    if kind == "vectorized":
        fun, given["vectorized"] = losses, True
    if kind == "callable":
        given["batches"] = lambda generation: epoch[generation % 7]
    if kind == "workers":
        given["workers"] = 2
    if kind == "threads":
        with ThreadPoolExecutor(2) as pool:
            same(solve(fun, workers=pool, **given), expected)
        return
    same(solve(fun, **given), expected)


def test_workers_may_have_the_function_of_the_number() -> None:
    same(solve(workers=2, max_generations=8), solve(max_generations=8))


def test_a_factory_may_make_the_objective() -> None:
    made = mmes.Factory(functools.partial, loss)
    expected = solve(max_generations=8)
    same(solve(made, max_generations=8), expected)
    same(solve(made, max_generations=8, workers=1, batches=[rows(k) for k in range(8)]), expected)


def test_replicas_choose_the_batch_by_its_number() -> None:
    with pytest.raises(ValueError, match="function of the generation's number"):
        solve(batches=[rows(0)], workers=Local(2))
    same(solve(workers=Local(2), max_generations=8), solve(max_generations=8))


def test_an_iterator_that_ends_is_an_error_which_says_what_to_give() -> None:
    epoch = [rows(number) for number in range(7)]
    with pytest.raises(ValueError, match="batches ended after 7 and cannot be read again"):
        solve(batches=iter(epoch))
    assert solve(batches=iter(epoch), max_generations=7).nit == 7
    with pytest.raises(ValueError, match="batches is empty"):
        solve(batches=[])


@pytest.mark.parametrize(
    "kind", [lambda epoch: lambda number: epoch[number % 7], lambda epoch: epoch]
)
def test_a_resumed_run_sees_the_batches_of_the_run_without_a_break(
    kind: Callable[[Any], Any], tmp_path: Path
) -> None:
    epoch = [rows(number) for number in range(7)]
    options = {"validation": held_out, "validation_every": 4}
    whole = solve(batches=epoch, **options)
    path = tmp_path / "run"
    solve(batches=kind(epoch), max_generations=17, checkpoint=path, **options)
    given = {"batches": kind(epoch), "validation": held_out}
    same(mmes.resume(path, loss, max_generations=30, **given), whole)
    # A run that had ended returns its result again, and evaluates nothing.
    again = mmes.resume(path, lambda x, batch: 1 / 0, max_generations=30, **given)
    same(again, whole)


def test_a_resumed_run_without_validation_equals_the_run_without_a_break(tmp_path: Path) -> None:
    path = tmp_path / "run"
    ended = solve(max_generations=17, checkpoint=path)
    same(mmes.resume(path, loss, batches=rows), ended)
    resumed = mmes.resume(path, loss, batches=rows, max_generations=30)
    whole = solve()
    assert np.array_equal(resumed.x, whole.x)
    assert resumed.fun == whole.fun
    assert resumed.nfev == whole.nfev + 1  # the mean, where the first run ended


def test_a_resumed_run_says_that_an_iterator_cannot_be_wound_forward(tmp_path: Path) -> None:
    path = tmp_path / "run"
    solve(batches=iter([rows(0)] * 40), max_generations=5, checkpoint=path)
    with pytest.warns(CheckpointWarning, match="cannot be advanced to generation 5"):
        mmes.resume(path, loss, batches=iter([rows(0)] * 40), max_generations=10)
    with pytest.raises(CheckpointError, match="it had batches; give batches= as then"):
        mmes.resume(path, loss, max_generations=12)


def test_the_budget_is_kept_with_the_evaluation_at_the_end() -> None:
    for budget in (1, 2, 40, 41):
        seen: list[int] = []

        def counted(x: np.ndarray, batch: np.ndarray, seen: list[int] = seen) -> float:
            seen.append(1)
            return loss(x, batch)

        result = solve(counted, max_evaluations=budget, max_generations=None)
        assert len(seen) == result.nfev == budget
        assert result.reason is StopReason.MAX_EVALUATIONS
        assert np.array_equal(result.x, result.mean)
        if budget > 20:
            assert result.fun == loss(result.x, rows(result.nit))


def test_failures_are_counted_and_the_run_goes_on() -> None:
    calls = iter(range(10_000))

    def failing(x: np.ndarray, batch: np.ndarray) -> float:
        return math.nan if next(calls) % 5 == 0 else loss(x, batch)

    with pytest.warns(mmes.errors.FailedEvaluationWarning):
        result = solve(failing, max_generations=150, validation=held_out)
    assert result.failed == pytest.approx(result.nfev / 5, abs=2)
    assert result.fun < 0.1 * held_out(X0)
    with pytest.raises(EvaluationError, match="generation 0"):
        solve(lambda x, batch: batch["no such key"])


def test_row48_a_mean_that_fails_at_the_end_is_no_success() -> None:
    """Failed before: success, with fun = nan."""
    options: dict[str, Any] = {"xtol": 1e-2, "max_generations": 2000}

    def sphere(x: np.ndarray, batch: int) -> float:
        return float((x - 1) @ (x - 1)) + batch

    whole = solve(sphere, batches=int, **options)
    assert whole.success
    calls = iter(range(whole.nfev))

    def failing(x: np.ndarray, batch: int) -> float:
        return math.nan if next(calls) == whole.nfev - 1 else sphere(x, batch)

    with pytest.warns(mmes.errors.FailedEvaluationWarning):
        result = solve(failing, batches=int, **options)
    assert (result.reason, result.nfev, result.failed) == (whole.reason, whole.nfev, 1)
    assert math.isnan(result.fun)
    assert not result.success
    assert not solve(sphere, batches=int, validation=lambda x: math.nan, **options).success


def test_without_a_population_the_candidates_see_the_same_batch() -> None:
    same(solve(rows_at_once=3), solve(rows_at_once="all"))


def test_values_of_different_batches_are_not_compared() -> None:
    # Values that grow with every generation, and one very lucky batch.
    def shifted(x: np.ndarray, batch: int) -> float:
        return float(x @ x) + (-1e6 if batch == 3 else 100.0 * batch)

    result = mmes.minimize(
        shifted, np.ones(N), 0.3, batches=lambda number: number, max_generations=400, seed=1
    )
    assert result.nit == 400  # no test on values has ended it
    assert float(result.x @ result.x) < 1e-6
    assert result.fun == pytest.approx(39_900)
    assert not result.noisy
    assert result.best_seen < -9e5


def test_what_cannot_be_combined_is_refused_with_a_sentence() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"strategy": "sep-cma"}, "step_size='probes', such as 'adaptive'; 'sep-cma' has none"),
        ({"noise": "on"}, "noise='on' cannot be combined with batches"),
        ({"restarts": 1}, "restarts=1 cannot be combined with batches"),
        ({"reevaluations": 3}, "reevaluations=3 cannot be combined"),
        ({"stagnation_window": 50}, "stagnation_window=50 cannot be combined"),
        ({"target": 0.1}, "needs validation="),
        ({"constraints": lambda x: x[0]}, "constraints cannot be combined with batches"),
        ({"patience": 3}, "patience needs validation="),
    ]
    for options, sentence in refused:
        with pytest.raises(ValueError, match=sentence):
            solve(**options)
    for batches in (3, "abc", {"a": 1}):
        with pytest.raises(TypeError, match="batches must be an iterable of batches"):
            solve(batches=batches)
    assert solve(step_size="paired", max_generations=3).options["step_size"] == "paired"
    assert "one batch alone" in solve(max_generations=3).strategy


def test_a_batch_comes_before_further_arguments() -> None:
    def scaled(x: np.ndarray, batch: np.ndarray, factor: float) -> float:
        return factor * loss(x, batch)

    assert np.array_equal(solve(scaled, args=(2.0,)).x, solve().x)


class Unsized(list):
    """Batches whose iterator cannot tell its length, as that of a DataLoader on a stream."""

    def __iter__(self) -> Any:
        class Reader:
            def __init__(self, given: Iterator[Any]):
                self._given = given

            def __iter__(self) -> Any:
                return self

            def __next__(self) -> Any:
                return next(self._given)

            def __len__(self) -> int:
                raise TypeError("no length is known")

        return Reader(super().__iter__())


def test_an_iterator_is_not_asked_for_its_length() -> None:
    given = [rows(number) for number in range(7)]
    same(solve(batches=Unsized(given)), solve(batches=given))


@pytest.mark.parametrize("kind", ["function", "iterator"])
def test_an_error_of_batches_is_not_one_of_the_objective(kind: str) -> None:
    def batch(number: int) -> np.ndarray:
        if number == 5:
            raise OSError("no disk")
        return rows(number)

    given = batch if kind == "function" else map(batch, range(30))
    # Not caught: no candidate has failed.
    with pytest.raises(OSError, match="no disk") as caught:
        solve(batches=given, catch=(OSError,))
    assert caught.value.__notes__ == ["mmes: this was batches=, for generation 5"]
    assert caught.value.result.nit == 5
    assert caught.value.result.failed == 0
