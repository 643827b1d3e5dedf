"""Constraints with replicas: the run without them, to the bit."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import numpy as np
import pytest

import mmes
from mmes.errors import LostWorkerWarning, ReplicaMismatch
from mmes.replicas import Local
from replica_runs import Inside, Replicas, equal

# Replicas cannot import the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

N = 12


def sphere(x: Any) -> float:
    return float(np.add.reduce((x - 0.25) ** 2))


def wall(x: Any) -> Any:
    """Return two constraints: x_0 >= 1, and a ball around 2."""
    return [1.0 - x[0], float(np.add.reduce((x - 2.0) ** 2)) - 30.0]


def both(x: Any) -> tuple[float, Any]:
    return sphere(x), wall(x)


def spheres(points: Any) -> Any:
    return np.array([sphere(x) for x in points])


def walls(points: Any) -> Any:
    return np.array([wall(x) for x in points])


def unreliable(x: Any) -> Any:
    """Return a constraint that fails for a few points, and always for some generations."""
    return np.nan if x[1] * 1e6 % 10 < 1 else 1.0 - x[0]


def raising(x: Any) -> float:
    if x[1] * 1e6 % 10 < 1:
        raise ArithmeticError("no value here")
    return 1.0 - x[0]


def whimsical(x: Any) -> Any:
    return np.zeros(1 + int(x[0] > 3.0))


def half(x: Any) -> float:
    return 0.5 - float(x[1] - 0.1 * x[2])


def run(fun: Any = sphere, **more: Any) -> mmes.Result:
    given: dict[str, Any] = {"strategy": "adaptive", "seed": 5, "max_evaluations": 900} | more
    return mmes.minimize(fun, np.full(N, 3.0), 1.0, **given)


def same(one: mmes.Result, other: mmes.Result) -> None:
    equal(one, other)
    for name in ("multipliers", "active"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    for name in ("constraint_violation", "reason", "success", "best_seen", "noisy"):
        assert getattr(one, name) == getattr(other, name), name


LINEAR = SimpleNamespace(A=np.ones((1, N)), lb=8.0, ub=9.0)
CASES: dict[str, dict[str, Any]] = {
    "several": {"constraints": [wall, mmes.Equality(half, 1e-3), LINEAR]},
    "mmes": {"constraints": wall, "strategy": "mmes"},
    "sep-cma": {"constraints": wall, "strategy": "sep-cma", "max_evaluations": 5000},
    "returned": {"fun": both, "returns_constraints": True},
    "vectorized": {"fun": spheres, "constraints": walls, "vectorized": True},
    "restarts": {"constraints": wall, "restarts": 2, "stagnation_window": 8, "xtol": 0.3},
    "integers": {"constraints": wall, "integers": [0, 3], "bounds": (-5.0, 9.0)},
    "noise": {"constraints": wall, "noise": "yes", "max_evaluations": 500},
    "probes": {"constraints": wall, "step_size": "probes"},
    "few rows": {"constraints": wall, "rows_at_once": 3},
    "fails": {"constraints": unreliable},
    "caught": {"constraints": raising, "catch": (ArithmeticError,)},
    "fails as a whole": {
        "fun": spheres,
        "constraints": lambda points: [raising(x) for x in points],
        "vectorized": True,
        "catch": (ArithmeticError,),
    },
    "small budget": {"constraints": wall, "max_evaluations": 7},
    "reevaluations": {"constraints": wall, "reevaluations": 3},
}


@pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")
@pytest.mark.parametrize("name", CASES)
def test_replicas_give_the_serial_bits(name: str) -> None:
    crew = Replicas(2, Inside, check=1)
    if name == "fails as a whole":  # with other calls, other candidates fail
        crew = Replicas(1, Inside, check=1)
    alone = run(**CASES[name])
    assert alone.failed > 0 or name not in ("fails", "caught")
    same(run(workers=crew, **CASES[name]), alone)


@pytest.mark.parametrize("terms", [{}, {"each": 1}, {"head_evaluates": True, "steal": "idle"}])
def test_processes_give_the_serial_bits(terms: dict[str, Any]) -> None:
    given = {"constraints": wall, "max_evaluations": 400}
    same(run(workers=Local(2, **terms), **given), run(**given))


@pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")
def test_a_constraint_that_always_fails_is_known_by_no_one() -> None:
    given: dict[str, Any] = {"constraints": lambda x: np.nan, "max_generations": 20}
    same(run(workers=Replicas(2, Inside), **given), run(**given))


def test_as_little_travels_for_many_variables() -> None:
    spent = {}
    for n in (100, 10_000):
        crew = Replicas(2)
        given: dict[str, Any] = {"constraints": walls, "vectorized": True, "population_size": 20}
        result = mmes.minimize(
            spheres,
            np.full(n, 3.0),
            1.0,
            workers=crew,
            strategy="adaptive",
            seed=1,
            max_generations=20,
            evaluate_x0=False,
            **given,
        )
        first = next(k for k, (kind, _) in enumerate(crew.engine.sent) if kind == "work")
        spent[n] = sum(size for _, size in crew.engine.sent[first:]) / (2 * result.nit)
        # 3 values of 10 rows to the head; told and revalued, of 20, from it.
        assert spent[n] <= 8 * (3 * 10 + 2 * 20) + 600
    assert abs(spent[100] - spent[10_000]) <= 8


def test_a_replica_that_dies_changes_nothing() -> None:
    crew, shot = Replicas(2), []

    def before(handle: Any, message: Any) -> None:
        if message[0] == "work" and message[2] in (4, 9) and message[2] not in shot:
            shot.append(message[2])
            os.kill(handle.process.pid, signal.SIGKILL)

    crew.engine.before = before
    given = {"constraints": wall, "max_evaluations": 400}
    with pytest.warns(LostWorkerWarning):
        found = run(workers=crew, **given)
    assert shot == [4, 9]
    same(found, run(**given))


def test_a_run_may_be_resumed_with_replicas_and_without(tmp_path: Path) -> None:
    whole = run(constraints=wall)
    for first, second in ((Replicas(2, Inside), None), (None, Replicas(2, Inside))):
        path = tmp_path / str(second is None)
        run(constraints=wall, workers=first, max_evaluations=300, checkpoint=path)
        more: dict[str, Any] = {"workers": second, "max_evaluations": 900}
        same(mmes.resume(path, sphere, constraints=wall, **more), whole)


class Forgetful(Inside):
    """The first replica is not told what candidates are worth by the new multipliers."""

    def call(self, handle: Any, message: Any) -> Any:
        if message[0] == "work" and message[2] > 5 and handle is self.replicas[0]:
            told = tuple(data[: len(data) // 2] for data in message[4])
            message = (*message[:4], told, *message[5:])
        return super().call(handle, message)


def test_values_that_are_not_taken_over_are_noticed() -> None:
    """The digests hold the values that were told, and those by the new multipliers."""
    with pytest.raises(ReplicaMismatch, match="differ from those of the head in generation 6"):
        run(constraints=wall, workers=Replicas(2, Forgetful))


@pytest.mark.parametrize("workers", [None, 1, "replicas"])
def test_a_changing_number_of_values_is_refused_everywhere(workers: Any) -> None:
    workers = Replicas(2, Inside) if workers == "replicas" else workers
    with pytest.raises(ValueError, match="the same number of values at every point") as caught:
        run(constraints=whimsical, workers=workers)
    assert caught.value.result.nfev == 1  # type: ignore[attr-defined]
    assert any("candidates of generation 0" in note for note in caught.value.__notes__)


def test_a_constraint_that_raises_is_named(tmp_path: Path) -> None:
    with pytest.raises(mmes.EvaluationError, match="ArithmeticError") as caught:
        run(constraints=[wall, raising], workers=Local(1))
    cause = caught.value.__cause__
    assert cause is not None
    assert any("raised by constraints[1]" in note for note in cause.__notes__)
