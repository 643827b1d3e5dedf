"""Promises about workers that die, hang or cannot be reached: rows 7, 16, 17 and 26."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import mmes
from mmes.errors import LostWorkerWarning
from mmes.evaluate.workers import pickling, processes
from mmes.testing import hostile

START = (np.ones(6), 0.5)
pytestmark = [
    pytest.mark.usefixtures("no_orphans"),
    # Most of these kill; what is said of it has tests of its own.
    pytest.mark.filterwarnings("ignore::mmes.errors.LostWorkerWarning"),
]


def plain(**options):
    return mmes.minimize(hostile.sphere, *START, seed=5, **options)


# Row 7: a worker dies


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


def make_executor():
    return ProcessPoolExecutor(2, mp_context=get_context("forkserver"))


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


def name_of(process):
    try:
        return process.name()
    except psutil.Error:
        return ""


def is_worker(process):
    try:
        return "forkserver" in " ".join(process.cmdline()) and (
            process.ppid() != psutil.Process().pid
        )
    except psutil.Error:
        return False


# Row 16: objectives that cannot be sent


class Holder:
    def __init__(self):
        self.settings = {"lock": threading.Lock()}

    def __call__(self, x):
        return float(x @ x)

    def method(self, x):
        return float(x @ x)


def test_row16_the_part_that_cannot_be_pickled_is_named(tmp_path):
    lock = threading.Lock()

    def with_lock(x):
        with lock:
            return float(x @ x)

    for objective, part in (
        (Holder(), r"the objective\.settings\['lock'\]"),
        (Holder().method, r"the objective\.__self__\.settings\['lock'\]"),
        (with_lock, "its variable 'lock'"),
    ):
        with pytest.raises(TypeError, match=f"because {part}.*cannot be pickled.*lock"):
            mmes.Run(objective, *START, workers=2)  # before anything runs


def test_row16_lambdas_work_with_cloudpickle(same):
    pytest.importorskip("cloudpickle")
    factor = 1.0
    result = mmes.minimize(
        lambda x: factor * hostile.sphere(x), *START, seed=5, max_evaluations=60, workers=2
    )
    same(result, plain(max_evaluations=60))


def test_row16_without_cloudpickle_the_message_says_what_to_do(monkeypatch):
    monkeypatch.setattr(pickling, "cloudpickle", None)
    with pytest.raises(TypeError, match=r"lambda.*pip install cloudpickle"):
        mmes.Run(lambda x: float(x @ x), *START, workers=2)


def test_row16_an_objective_that_the_worker_cannot_load_is_found_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(pickling, "cloudpickle", None)
    (tmp_path / "only_here.py").write_text("def f(x):\n    return float(x @ x)\n")
    sys.path.insert(0, str(tmp_path))
    try:
        import only_here
    finally:
        sys.path.remove(str(tmp_path))
    with pytest.raises(TypeError, match=r"cannot be loaded in a worker process.*only_here"):
        mmes.minimize(only_here.f, *START, workers=2)


def test_row16_a_script_without_a_guard_is_told_so(script):
    process = script(
        """
        import numpy as np, mmes
        from mmes.testing.hostile import sphere
        mmes.minimize(sphere, np.ones(5), 1.0, workers=2, max_evaluations=50)
        """
    )
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "if __name__ == '__main__':" in errors.splitlines()[-1]


def test_row16_a_script_from_a_pipe_may_use_workers(tmp_path):
    pytest.importorskip("cloudpickle")
    code = (
        "import numpy as np, mmes\n"
        "def f(x): return float(x @ x)\n"
        "print(mmes.minimize(f, np.ones(5), 1.0, workers=2, max_evaluations=50).nfev)\n"
    )
    done = subprocess.run(
        [sys.executable, "-"], input=code, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout == "50\n", done.stderr


# Row 17: an evaluation hangs


@pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")
@pytest.mark.parametrize("retries", [0, 1])
def test_row17_a_hanging_evaluation_is_killed_with_all_it_started(tmp_path, retries):
    objective = hostile.Hangs(str(tmp_path), at=(4,))
    began = time.monotonic()
    result = mmes.minimize(
        objective,
        *START,
        seed=5,
        max_evaluations=30,
        workers=2,
        evaluation_timeout=1,
        retries=retries,
        on_lost="nan",
    )
    assert time.monotonic() - began < 5
    assert result.retried == retries
    assert result.failed == 1 - retries
    (notes,) = Path(tmp_path).glob("hanging-*")
    for process in map(int, notes.read_text().split()):
        assert not psutil.pid_exists(process) or psutil.Process(process).status() == "zombie"


class LeavesASession(hostile.Hangs):
    """Starts a process in a session of its own, and hangs."""

    def trouble(self, x):
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        (Path(self.folder) / "session").write_text(str(child.pid))
        super().trouble(x)


def test_row17_a_session_of_its_own_is_left_alone(tmp_path):
    """What f puts into another session is meant to outlive it; what it does not is ended."""
    objective = LeavesASession(str(tmp_path), at=(4,))
    mmes.minimize(
        objective, *START, seed=5, max_evaluations=30, workers=2, evaluation_timeout=1
    )  # fmt: skip
    session = psutil.Process(int((tmp_path / "session").read_text()))
    try:
        assert session.is_running()
        assert session.status() != psutil.STATUS_ZOMBIE
    finally:
        session.kill()
    (notes,) = tmp_path.glob("hanging-*")
    for process in map(int, notes.read_text().split()):
        assert not psutil.pid_exists(process) or psutil.Process(process).status() == "zombie"


def test_row17_a_hang_that_repeats_raises(tmp_path):
    objective = hostile.Hangs(str(tmp_path))
    with pytest.raises(mmes.EvaluationError, match="killed at the time limit 2 times"):
        mmes.minimize(objective, *START, workers=2, evaluation_timeout=0.3, retries=1)


def test_row33_the_limit_is_for_one_evaluation_of_a_batch(tmp_path):
    options = {"seed": 5, "workers": 2, "evaluation_timeout": 1.0, "chunk_size": 8, "retries": 0}
    result = mmes.minimize(takes_a_while, *START, max_evaluations=16, **options)
    assert result.nfev == 16
    hanging = hostile.Hangs(str(tmp_path), at=(5,))
    result = mmes.minimize(hanging, *START, max_evaluations=16, **options | {"retries": 1})
    assert result.retried == 8  # the batch it was in, one by one


def takes_a_while(x):
    time.sleep(0.2)  # eight of them are longer than the limit
    return hostile.sphere(x)


def test_row33_a_worker_that_never_gets_ready_is_killed(monkeypatch):
    monkeypatch.setattr(processes, "START_SECONDS", 1.0)
    with pytest.raises(mmes.EvaluationError, match=r"took longer than 1 s before they were ready"):
        mmes.minimize(hostile.SlowToLoad(), *START, workers=1, evaluation_timeout=0.5)


@pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")
def test_row33_a_stopped_worker_cannot_keep_the_run_from_sending(monkeypatch, same):
    """Candidates larger than a pipe holds, without shared memory: the run waits with a limit."""
    monkeypatch.setattr(processes, "Slots", no_memory)
    start = (np.ones(60_000), 0.5)
    stopped = []

    def stop_one(progress):
        if not stopped:
            found = [p for p in psutil.Process().children(recursive=True) if is_worker(p)]
            stopped.append(found[0])
            found[0].suspend()

    options = {"seed": 5, "max_evaluations": 60, "archive_size": 10}
    result = mmes.minimize(
        hostile.sphere, *start, workers=2, evaluation_timeout=1.0, callback=stop_one, **options
    )
    assert stopped
    assert result.retried > 0
    same(result, mmes.minimize(hostile.sphere, *start, **options))


def no_memory(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's prctl")
@pytest.mark.parametrize("how", ["stopped", "holding the lock"])
def test_row34_a_stuck_worker_ends_with_the_killed_process(script, tmp_path, how):
    process = script(
        """
        import numpy as np, mmes
        from mmes.testing import hostile

        if __name__ == "__main__":
            mmes.minimize(hostile.HoldsTheLock(".", hostile.uneven, at={at}), np.ones(6), 0.5,
                          workers=2, stagnation_window="off", callback=lambda p: print(p.generation,
                          flush=True))
        """.format(at="(40,)" if how != "stopped" else "()")
    )
    for _ in range(3):
        process.stdout.readline()
    while how != "stopped" and not list(tmp_path.glob("holding-*")):
        time.sleep(0.05)
    started = psutil.Process(process.pid).children(recursive=True)
    assert len(started) >= 3  # two workers and the fork server
    if how == "stopped":
        for child in started:
            if child.ppid() != process.pid:
                child.suspend()
    process.kill()
    _, left = psutil.wait_procs(started, timeout=10)
    for child in left:
        child.kill()
    assert not left


def test_row17_where_nothing_can_be_killed_the_option_is_refused():
    with pytest.raises(ValueError, match="this process cannot be interrupted; workers=1 uses"):
        plain(evaluation_timeout=1)
    with make_executor() as executor, pytest.raises(ValueError, match="cannot be killed"):
        plain(evaluation_timeout=1, workers=executor)


# Row 26, and what workers may be


def test_row26_retries_are_counted_apart(tmp_path):
    objective = hostile.Dies(str(tmp_path), at=(7, 21))
    result = mmes.minimize(objective, *START, seed=5, max_evaluations=61, workers=1, chunk_size=1)
    assert result.nfev == 61
    assert result.retried == 2
    assert objective.calls == 63


@pytest.mark.parametrize("workers", [0, -2, True, 1.5, "two", None])
def test_workers_must_be_a_number_or_an_executor(workers):
    if workers is None:
        assert plain(workers=None, max_evaluations=9).nfev == 9
        return
    with pytest.raises((TypeError, ValueError), match="workers must be a number of processes"):
        plain(workers=workers)


def test_catch_must_name_exceptions():
    with pytest.raises(TypeError, match="catch must be a tuple of exception types"):
        plain(catch=("ValueError",))


def test_long_candidates_go_through_shared_memory_or_else_the_pipe(monkeypatch, same):
    options = {"seed": 5, "max_evaluations": 60}
    start = (np.ones(10_000), 0.5)
    serial = mmes.minimize(hostile.sphere, *start, **options)
    same(mmes.minimize(hostile.sphere, *start, workers=2, **options), serial)

    monkeypatch.setattr(processes, "Slots", no_memory)
    same(mmes.minimize(hostile.sphere, *start, workers=2, **options), serial)
