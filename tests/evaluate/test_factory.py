"""Factories: one objective per process, never sent; failures before the first generation."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import mmes

X0 = np.ones(6)
OPTIONS = {"seed": 2, "max_evaluations": 61}


class Model:
    """An objective that cannot be pickled, and leaves a note for each time it was made."""

    def __init__(self, folder, power: int = 2):
        with open(Path(folder) / f"made-{os.getpid()}", "a") as file:
            file.write("made\n")
        self.power = power
        self.unpicklable = lambda: None

    def __call__(self, x):
        return float((np.abs(x) ** self.power).sum())


def broken(message):
    raise OSError(message)


def notes(folder) -> list[int]:
    return sorted(len(p.read_text().split()) for p in Path(folder).glob("made-*"))


def plain():
    return mmes.minimize(lambda x: float((np.abs(x) ** 2).sum()), X0, 0.5, **OPTIONS)


def test_in_this_process_it_is_made_once(tmp_path) -> None:
    r = mmes.minimize(mmes.Factory(Model, tmp_path), X0, 0.5, **OPTIONS)
    np.testing.assert_array_equal(r.x, plain().x)
    assert notes(tmp_path) == [1]


def test_each_worker_makes_one(tmp_path) -> None:
    r = mmes.minimize(mmes.Factory(Model, str(tmp_path), power=2), X0, 0.5, workers=2, **OPTIONS)
    np.testing.assert_array_equal(r.x, plain().x)
    assert 1 <= len(notes(tmp_path)) <= 2
    assert set(notes(tmp_path)) == {1}


def test_each_process_of_an_executor_makes_one_although_each_batch_is_pickled(tmp_path) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("forkserver")) as executor:
        factory = mmes.Factory(Model, str(tmp_path))
        r = mmes.minimize(factory, X0, 0.5, workers=executor, **OPTIONS)
    np.testing.assert_array_equal(r.x, plain().x)
    assert set(notes(tmp_path)) == {1}


def test_threads_share_one(tmp_path) -> None:
    with ThreadPoolExecutor(3) as executor:
        mmes.minimize(mmes.Factory(Model, str(tmp_path)), X0, 0.5, workers=executor, **OPTIONS)
    assert notes(tmp_path) == [1]


def test_what_it_made_is_not_pickled(tmp_path) -> None:
    factory = mmes.Factory(Model, str(tmp_path), power=4)
    assert factory(X0) == 6.0
    sent = pickle.loads(pickle.dumps(factory))
    assert sent(2 * X0) == 6 * 16.0
    assert copy.deepcopy(factory)(X0) == 6.0
    assert "Model" in repr(factory)


@pytest.mark.parametrize("workers", [None, 2, lambda: ThreadPoolExecutor(2)])
def test_a_factory_that_raises_ends_the_run_before_the_first_generation(workers) -> None:
    told = []
    where = "the factory broken raised OSError on .*process .*: no such model"
    with pytest.raises(mmes.EvaluationError, match=where) as e:
        mmes.minimize(
            mmes.Factory(broken, "no such model"),
            X0,
            0.5,
            workers=workers,
            catch=(Exception,),
            callback=told.append,
        )
    assert not told
    if workers is not None:
        assert "raise OSError(message)" in "".join(e.value.__notes__)


def test_a_factory_must_make_something_to_call() -> None:
    with pytest.raises(TypeError, match="make must be callable, not 3"):
        mmes.Factory(3)
    with pytest.raises(mmes.EvaluationError, match=r"must return a callable objective.* 3 \(a int"):
        mmes.minimize(mmes.Factory(int, "3"), X0, 0.5)


def test_with_an_unpicklable_argument_the_part_is_named() -> None:
    with pytest.raises(TypeError, match=r"the objective\.args\[0\]"):
        mmes.minimize(mmes.Factory(Model, threading.Lock()), X0, 0.5, workers=1)
