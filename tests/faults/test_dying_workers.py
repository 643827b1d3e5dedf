"""Promises about workers that die: rows 1, 7, 26, 29, 34 and 35."""

import os
import re
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
import pytest

import mmes
from mmes.errors import LostWorkerWarning
from mmes.testing import hostile
from worker_runs import START, is_worker, make_executor, name_of, plain

pytestmark = [
    pytest.mark.usefixtures("no_orphans"),
    # Most of these kill; what is said of it has tests of its own.
    pytest.mark.filterwarnings("ignore::mmes.errors.LostWorkerWarning"),
]


@pytest.mark.parametrize("trouble", [hostile.Dies, hostile.Crashes, hostile.Exits])
def test_row07_a_dead_worker_changes_nothing(tmp_path, trouble, same):
    objective = trouble(str(tmp_path), at=(0, 13, 14, 40))
    result = mmes.minimize(objective, *START, seed=5, max_evaluations=150, workers=2)
    same(result, plain(max_evaluations=150))
    assert result.retried >= 4
    assert objective.calls >= 150 + 4


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (hostile.Dies, "killed by SIGKILL"),
        (hostile.Crashes, "killed by SIG"),
        (hostile.Exits, "exit code"),
    ],
)
def test_each_death_is_told_once_with_its_reason(tmp_path, trouble, reason):
    """Failed before: not a word."""
    objective = trouble(str(tmp_path), at=(13, 40))
    with pytest.warns(LostWorkerWarning) as said:
        mmes.minimize(objective, *START, seed=5, max_evaluations=60, workers=1, chunk_size=1)
    assert len(said) == 2
    words = (
        rf"worker process \d+ was lost in generation \d+ while it evaluated 1 candidate: {reason}"
    )
    assert all(re.match(words, str(one.message)) for one in said)


def test_a_worker_that_is_killed_at_the_limit_is_told(tmp_path):
    objective = hostile.Hangs(str(tmp_path), at=(13,))
    options = {"seed": 5, "max_evaluations": 30, "workers": 1, "evaluation_timeout": 0.5}
    with pytest.warns(LostWorkerWarning, match=r"1 candidate: it took longer than 0.5 s") as said:
        mmes.minimize(objective, *START, **options)
    assert len(said) == 1


def test_an_executor_that_broke_is_told_once(tmp_path):
    objective = hostile.Dies(str(tmp_path), at=(13,))
    with pytest.warns(LostWorkerWarning, match="the executor lost .* BrokenProcessPool") as said:
        mmes.minimize(
            objective, *START, seed=5, max_evaluations=60, workers=lambda: ProcessPoolExecutor(2)
        )
    assert len(said) == 1


def test_row07_an_evaluation_that_kills_every_worker_ends_the_run(tmp_path):
    began = time.monotonic()
    with pytest.raises(mmes.EvaluationError, match=r"died .* 4 times .* candidate \d") as caught:
        mmes.minimize(hostile.Dies(str(tmp_path)), *START, seed=5, workers=2)
    assert time.monotonic() - began < 30
    assert caught.value.generation == 0


@pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")
def test_row07_or_ranks_the_candidate_last(tmp_path):
    objective = hostile.Dies(str(tmp_path), at=range(12, 16))
    result = mmes.minimize(
        objective, *START, seed=5, workers=1, max_evaluations=50, on_lost="nan", chunk_size=1
    )
    assert result.failed == 1
    assert result.retried == 3
    assert result.nfev == 50


def test_row07_vectorized_chunks_survive_too(tmp_path, same):
    objective = hostile.Dies(str(tmp_path), hostile.spheres, at=(3, 5))
    result = mmes.minimize(
        objective, *START, seed=5, workers=2, max_evaluations=90, vectorized=True
    )
    same(result, plain(max_evaluations=90))
    assert result.retried > 0


def test_row07_an_executor_that_can_be_made_anew_is(tmp_path, same):
    objective = hostile.Dies(str(tmp_path), at=(11,))
    result = mmes.minimize(objective, *START, seed=5, max_evaluations=40, workers=make_executor)
    same(result, plain(max_evaluations=40))
    assert result.retried > 0


def test_row07_an_executor_that_cannot_says_what_to_do(tmp_path):
    objective = hostile.Dies(str(tmp_path))
    message = "a function that creates the executor"
    with make_executor() as executor, pytest.raises(mmes.EvaluationError, match=message):
        mmes.minimize(objective, *START, seed=5, workers=executor)


@pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")
def test_row35_only_the_candidate_that_breaks_the_executor_is_charged(tmp_path):
    reference = mmes.strategies.ActiveCMA(*START, seed=5).ask()
    objective = Poison(reference[3])
    with pytest.raises(mmes.EvaluationError, match=r"lost candidate 3 of generation 0") as caught:
        mmes.minimize(objective, *START, seed=5, workers=make_executor, retries=0)
    assert caught.value.candidate == 3
    result = mmes.minimize(
        objective,
        *START,
        seed=5,
        workers=make_executor,
        retries=1,
        on_lost="nan",
        max_evaluations=12,
    )
    assert result.failed == 1


@dataclass(frozen=True)
class Poison:
    """A sphere that kills the process at one point."""

    point: Any

    def __call__(self, x):
        if np.array_equal(x, self.point):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.05)  # so that others are under way
        return hostile.sphere(x)


@pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")
def test_row35_only_the_candidate_that_kills_the_worker_is_charged():
    objective = Poison(mmes.strategies.ActiveCMA(*START, seed=5).ask()[3])
    result = mmes.minimize(
        objective, *START, seed=5, workers=2, chunk_size=4, retries=0, on_lost="nan",
        max_evaluations=12,
    )  # fmt: skip
    assert result.failed == 1
    assert result.retried == 4  # its batch, one by one


class KilledAsItIsLoaded:
    """A sphere whose first five copies in other processes get a signal as they are loaded."""

    def __init__(self, file, number):
        self.file, self.number, self.home = str(file), number, os.getpid()

    def __setstate__(self, state):
        vars(self).update(state)
        if os.getpid() == self.home:
            return
        with open(self.file, "ab", buffering=0) as file:
            if file.tell() < 5:
                file.write(b".")
                os.kill(os.getpid(), self.number)

    def __call__(self, x):
        return hostile.sphere(x)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_row07_workers_killed_one_after_the_other_as_they_start(tmp_path, number, same):
    """Failed before with SIGTERM: taken for a script that starts itself, after three."""
    objective = KilledAsItIsLoaded(tmp_path / "loaded", number)
    result = mmes.minimize(objective, *START, seed=5, max_evaluations=60, workers=1)
    same(result, plain(max_evaluations=60))
    assert (tmp_path / "loaded").stat().st_size == 5


def test_row34_a_killed_fork_server_is_replaced(tmp_path, same):
    objective = KillsTheForkServer(str(tmp_path), at=(20, 60, 100, 140))
    result = mmes.minimize(objective, *START, seed=5, max_evaluations=200, workers=2)
    same(result, plain(max_evaluations=200))
    assert result.retried >= 2


class KillsTheForkServer(hostile.Troubled):
    def trouble(self, x):
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)  # so that another is started at once


def test_row29_a_child_that_falls_through_a_fork_ends(script):
    """In a process of its own: libraries that other tests load may object to forks."""
    process = script("""
        import numpy as np
        import mmes
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context
        from mmes.testing import hostile

        def make_executor():
            return ProcessPoolExecutor(2, mp_context=get_context("forkserver"))

        if __name__ == "__main__":
            options = {"seed": 5, "max_evaluations": 60}
            plain = mmes.minimize(hostile.sphere, np.ones(6), 0.5, **options)
            for workers in (None, 2, make_executor):
                objective = hostile.ForksThrough(".", at=range(0, 200, 17))
                result = mmes.minimize(objective, np.ones(6), 0.5, workers=workers, **options)
                assert result.x.tobytes() == plain.x.tobytes()
                assert (result.fun, result.nfev) == (plain.fun, plain.nfev)
            print("the same")
    """)
    said, told = process.communicate()
    assert (process.returncode, said) == (0, "the same\n"), told
    assert "the objective called os.fork() and returned in the child" in told


def test_row07_an_objective_that_closes_all_files_is_a_dead_worker(tmp_path, same):
    objective = hostile.ClosesDescriptors(str(tmp_path), at=(3, 20))
    result = mmes.minimize(objective, *START, seed=5, max_evaluations=60, workers=2)
    same(result, plain(max_evaluations=60))
    assert result.retried > 0


@pytest.mark.parametrize("workers", [None, 2, "executor"])
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("unspeakable", "UnspeakableError at candidate \\d .*its message cannot be shown"),
        ("local", "LocalError"),
        ("unpicklable", "ValueError"),
    ],
)
def test_row01_errors_that_make_trouble_of_their_own(kind, message, workers):
    workers = make_executor if workers == "executor" else workers
    with pytest.raises(mmes.EvaluationError, match=message) as caught:
        mmes.minimize(hostile.RaisesOddly(kind), *START, seed=5, workers=workers)
    assert caught.value.__cause__ is not None


def test_row07_killed_from_outside_at_any_moment(same):
    stop, moved = threading.Event(), threading.Event()

    def kill_a_worker():
        while not stop.wait(0.1):
            if not moved.is_set():
                continue  # on a busy machine workers would end before they have begun
            for process in psutil.Process().children(recursive=True):
                if "mmes-worker" in name_of(process) or is_worker(process):
                    moved.clear()
                    process.kill()
                    break

    killer = threading.Thread(target=kill_a_worker)
    killer.start()
    try:
        result = mmes.minimize(
            hostile.uneven, *START, seed=5, max_evaluations=800, workers=2, retries=50,
            callback=lambda progress: moved.set(),
        )  # fmt: skip
    finally:
        stop.set()
        killer.join()
    same(result, plain(max_evaluations=800))
    assert result.retried > 0


def test_row26_retries_are_counted_apart(tmp_path):
    objective = hostile.Dies(str(tmp_path), at=(7, 21))
    result = mmes.minimize(objective, *START, seed=5, max_evaluations=61, workers=1, chunk_size=1)
    assert result.nfev == 61
    assert result.retried == 2
    assert objective.calls == 63
