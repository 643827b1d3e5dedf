"""An evaluator of the user's own: as `workers`, in the suite, and what the loop tells it."""

from __future__ import annotations

import numpy as np
import pytest

import mmes
from mmes.errors import EvaluationError
from mmes.evaluate.values import as_value, as_values
from mmes.testing.evaluators import CHECKS

X0 = np.ones(6)


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


class Plain:
    """The least that is an evaluator, without any part of the library's own."""

    def __init__(self, task):
        self.task = task
        self.closed = 0

    def evaluate(self, points, generation, keep_going):
        if self.task.vectorized:
            go_on = len(points) and keep_going()
            return as_values(self.task.objective(points), len(points)) if go_on else []
        values = []
        for row, x in enumerate(points):
            if not keep_going():
                break
            try:
                values.append(as_value(self.task.objective(x)))
            except self.task.catch:
                values.append(np.nan)
            except (TypeError, ValueError) as error:
                if "objective must return" in str(error):
                    raise
                raise EvaluationError(str(error), np.array(x), row, generation) from error
            except Exception as error:
                raise EvaluationError(str(error), np.array(x), row, generation) from error
        return np.array(values)

    def close(self):
        self.closed += 1


class Objective:
    """What stands in for a task."""

    vectorized = False
    catch = ()
    objective = staticmethod(sphere)


class Listening(Plain):
    """Writes down what it is told."""

    def __init__(self, task=Objective):
        super().__init__(task)
        self.heard = []

    def follow(self, es):
        self.heard.append(("follow", es.generation))
        self.es = es

    def begin(self, generation, rows):
        assert generation == self.es.generation
        self.heard.append(("begin", rows))

    def evaluate(self, points, generation, keep_going):
        self.heard.append(("evaluate", len(points)))
        return super().evaluate(points, generation, keep_going)

    def told(self, values):
        self.heard.append(("told", len(values)))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_an_evaluator_without_anything_of_ours_passes_the_suite(check) -> None:
    check(Plain)


def test_the_objective_may_be_left_out() -> None:
    own = Plain(Objective)
    r = mmes.minimize(None, X0, 0.5, seed=1, max_evaluations=100, workers=own)
    plain = mmes.minimize(sphere, X0, 0.5, seed=1, max_evaluations=100)
    np.testing.assert_array_equal(r.x, plain.x)
    assert r.retried == 0
    assert own.closed > 0
    with pytest.raises(TypeError, match="fun must be callable, not None"):
        mmes.minimize(None, X0, 0.5)


def test_it_hears_of_every_generation_in_order() -> None:
    own = Listening()
    mmes.minimize(None, X0, 0.5, seed=1, max_evaluations=25, workers=own, strategy="mmes")
    first = [("follow", 0), ("begin", 10), ("evaluate", 10), ("told", 10)]
    second = [("begin", 9), ("evaluate", 9), ("told", 9)]
    assert own.heard == [*first, *second, ("begin", 6), ("evaluate", 6)]


def test_it_follows_every_start_and_what_is_resumed(tmp_path) -> None:
    own = Listening()
    options = {"seed": 1, "stagnation_window": 3, "restarts": 2, "strategy": "mmes"}
    options |= {"checkpoint": tmp_path / "run.mmes", "max_generations": 30}

    class Flat(Objective):
        objective = staticmethod(lambda x: 1.0)

    own.task = Flat
    r = mmes.minimize(None, X0, 0.5, workers=own, **options)
    assert r.starts == 3
    assert sum(word == "follow" for word, _ in own.heard) == 3
    again = Listening(Flat)
    mmes.resume(tmp_path / "run.mmes", None, workers=again, restarts=3)
    assert again.heard[0] == ("follow", own.es.generation)
    assert 0 < own.es.generation < r.nit
    assert again.heard[1] == ("follow", 0)
    assert again.heard[2][0] == "begin"


def test_a_maker_of_evaluators_gets_the_task_and_the_options() -> None:
    class Maker:
        def evaluator(self, task, retries, lost, timeout):
            self.got = task, retries, lost, timeout
            return Plain(task)

    maker = Maker()
    options = {"seed": 1, "max_evaluations": 50, "retries": 5, "on_lost": "nan"}
    r = mmes.minimize(sphere, X0, 0.5, workers=maker, evaluation_timeout=2.0, **options)
    assert r.nfev == 50
    assert maker.got[0].objective is sphere
    assert maker.got[1:] == (5, "nan", 2.0)
    maker.evaluator = lambda *_: 3
    with pytest.raises(TypeError, match="must return an object with evaluate and close, not 3"):
        mmes.minimize(sphere, X0, 0.5, workers=maker)


@pytest.mark.parametrize(
    "options",
    [{"vectorized": True}, {"catch": (ValueError,)}, {"retries": 1}, {"chunk_size": 2}],
    ids=str,
)
def test_what_it_decides_itself_is_refused(options) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))}=.* a custom evaluator"):
        mmes.minimize(None, X0, 0.5, workers=Plain(Objective), **options)


@pytest.mark.parametrize("count", [3, 11])
def test_a_wrong_number_of_values_is_an_error(count) -> None:
    class Wrong(Plain):
        def evaluate(self, points, generation, keep_going):
            return np.zeros(count)

    with pytest.raises(ValueError, match=f"10 values for 10 points, not {count}"):
        mmes.minimize(None, X0, 0.5, workers=Wrong(Objective), strategy="mmes")


def test_a_class_is_no_evaluator() -> None:
    with pytest.raises(TypeError):
        mmes.minimize(sphere, X0, 0.5, workers=Plain)
