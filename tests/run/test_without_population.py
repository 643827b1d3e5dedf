"""`minimize` without a population: chosen by itself, named in the result, the same bits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import mmes
from mmes.base import memory
from mmes.errors import EvaluationError, ReducedArchiveWarning

N = 30
BEGIN: dict[str, Any] = {"seed": 3, "max_evaluations": 700, "strategy": "adaptive"}


def sphere(x: np.ndarray) -> float:
    return float(((x - 1) ** 2).sum())


def spheres(points: np.ndarray) -> np.ndarray:
    return np.array([sphere(x) for x in points])


def run(fun: Any = sphere, **options: Any) -> mmes.Result:
    return mmes.minimize(fun, np.zeros(N), 0.5, **BEGIN | options)


def equal(one: mmes.Result, other: mmes.Result) -> None:
    np.testing.assert_array_equal(one.x, other.x)
    np.testing.assert_array_equal(one.mean, other.mean)
    for name in ("fun", "nfev", "nit", "sigma", "reason", "failed", "starts"):
        assert getattr(one, name) == getattr(other, name), name
    for name, column in one.history.items():
        np.testing.assert_array_equal(column, other.history[name])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strategy": "mmes"},
        {"bounds": (-2.0, 0.8)},
        {"max_evaluations": 353},  # ends within a generation
        {"reevaluations": 3},
        {"restarts": 2, "max_evaluations": 9000, "sigma_min": 1e-3},
        {"noise": "yes"},
    ],
    ids=str,
)
def test_the_result_is_the_same_to_the_bit(options: dict[str, Any]) -> None:
    with_one = run(**options)
    without = run(rows_at_once=2, **options)
    equal(with_one, without)
    assert with_one.kernel.startswith("native")
    assert without.kernel == f"{with_one.kernel}, without a population: 2 candidates at a time"


def test_calls_see_a_few_rows_at_a_time() -> None:
    seen: list[int] = []

    def counted(points: np.ndarray) -> np.ndarray:
        seen.append(len(points))
        return spheres(points)

    equal(run(counted, vectorized=True, rows_at_once=4), run())
    assert max(seen) == 4
    assert sum(seen) == 700


@pytest.mark.parametrize("workers", [2, lambda: ThreadPoolExecutor(2)], ids=["two", "threads"])
@pytest.mark.parametrize("vectorized", [False, True])
def test_workers_get_their_rows(workers: Any, vectorized: bool) -> None:
    fun = spheres if vectorized else sphere
    found = run(fun, workers=workers, vectorized=vectorized, rows_at_once=3, max_evaluations=200)
    equal(found, run(max_evaluations=200))


class OfMyOwn:
    """An evaluator that knows arrays alone."""

    def __init__(self) -> None:
        self.most = 0

    def evaluate(self, points: np.ndarray, generation: int, keep_going: Any) -> np.ndarray:
        assert isinstance(points, np.ndarray)
        self.most = max(self.most, len(points))
        return spheres(points)

    def close(self) -> None:
        pass


def test_an_evaluator_of_the_users_own_gets_arrays() -> None:
    mine = OfMyOwn()
    found = mmes.minimize(None, np.zeros(N), 0.5, workers=mine, rows_at_once=3, **BEGIN)
    equal(found, run())
    assert mine.most == 3


@pytest.mark.parametrize("vectorized", [False, True])
def test_an_error_names_the_candidate(vectorized: bool) -> None:
    calls = 0

    def failing(points: np.ndarray) -> Any:
        nonlocal calls
        calls += 1 if not vectorized else len(points)
        if calls > 20:
            raise OSError("no licence")
        return spheres(points) if vectorized else sphere(points)

    with pytest.raises(EvaluationError, match=r"candidate 4 of generation 1|candidate 5 of") as it:
        run(failing, vectorized=vectorized, rows_at_once=2, population_size=15, evaluate_x0=False)
    assert it.value.candidate in (4, 5)
    assert np.shape(it.value.x)[-1] == N


def test_a_checkpoint_of_either_kind_goes_on_as_the_other(tmp_path: Any) -> None:
    whole = run()
    for before, after in ((None, 2), (2, None), (2, 3)):
        path = tmp_path / f"{before}-{after}.mmes"
        run(max_evaluations=350, checkpoint=path, rows_at_once=before)
        found = mmes.resume(path, sphere, max_evaluations=700, rows_at_once=after)
        np.testing.assert_array_equal(found.x, whole.x)
        assert found.nfev == whole.nfev
        assert ("without a population" in found.kernel) == (after is not None)


def test_it_is_chosen_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 1000
    needed = 8 * n * (24 + 5 + 2) + 4 * n * 24 + 4 * n * 20
    whole = mmes.minimize(sphere, np.zeros(n), 0.5, **BEGIN | {"archive_size": 20})
    monkeypatch.setattr(memory, "available_bytes", lambda: needed)
    found = mmes.minimize(sphere, np.zeros(n), 0.5, **BEGIN | {"archive_size": 20})
    np.testing.assert_array_equal(found.x, whole.x)
    assert "without a population: 5 candidates at a time" in found.kernel
    assert found.options["rows_at_once"] is None
    with pytest.raises(MemoryError, match="no archive fits: the population of 24 candidates"):
        mmes.minimize(sphere, np.zeros(n), 0.5, rows_at_once="all", archive_size=20, **BEGIN)
    with pytest.warns(ReducedArchiveWarning, match="m is reduced to"):
        mmes.minimize(sphere, np.zeros(n), 0.5, **BEGIN)
