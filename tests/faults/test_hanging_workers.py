"""Promises about workers that hang, stop or leave processes behind: rows 17, 33 and 34."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

import mmes
from mmes.evaluate.workers import lost, pool
from mmes.testing import hostile
from worker_runs import START, is_worker, make_executor, no_memory, plain

pytestmark = [
    pytest.mark.usefixtures("no_orphans"),
    # Most of these kill; what is said of it has tests of its own.
    pytest.mark.filterwarnings("ignore::mmes.errors.LostWorkerWarning"),
]


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
    monkeypatch.setattr(lost, "START_SECONDS", 1.0)
    with pytest.raises(mmes.EvaluationError, match=r"took longer than 1 s before they were ready"):
        mmes.minimize(hostile.SlowToLoad(), *START, workers=1, evaluation_timeout=0.5)


@pytest.mark.filterwarnings("ignore::mmes.errors.FailedEvaluationWarning")
def test_row33_a_stopped_worker_cannot_keep_the_run_from_sending(monkeypatch, same):
    """Candidates larger than a pipe holds, without shared memory: the run waits with a limit."""
    monkeypatch.setattr(pool, "Slots", no_memory)
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
                while child.num_threads() < 2:  # it has just begun, and still holds the server
                    time.sleep(0.01)
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
