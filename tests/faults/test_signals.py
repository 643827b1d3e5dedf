"""Promises about ending a run from outside: rows 9 and 10, and signals inside of runs."""

import signal
import subprocess
import threading

import numpy as np
import psutil
import pytest

import mmes
from mmes.base.interrupts import Interrupts
from mmes.testing import hostile

START = (np.ones(6), 0.5)

SLEEPER = """
    import time
    import numpy as np, mmes

    from mmes.testing.hostile import sphere

    def slow(x):
        time.sleep(0.02)
        return sphere(x)

    if __name__ == "__main__":
        try:
            mmes.minimize(slow, np.ones(6), 0.5, seed=5, checkpoint="run.mmes", workers={workers},
                          max_evaluations=100_000,
                          callback=lambda p: p.generation < 4 and print(p.generation, flush=True))
        except BaseException as error:
            print(type(error).__name__, error.result.nfev, error.__notes__[-1], flush=True)
            raise
    """


@pytest.mark.parametrize(
    ("number", "name", "status", "workers"),
    [
        (signal.SIGINT, "KeyboardInterrupt", -signal.SIGINT, 2),
        (signal.SIGTERM, "Terminated", 143, None),
    ],
)
def test_row09_a_signal_ends_the_run_with_a_checkpoint(
    script, tmp_path, workers, number, name, status, same
):
    process = script(SLEEPER.format(workers=workers))
    assert [process.stdout.readline() for _ in range(3)] == ["1\n", "2\n", "3\n"]
    children = psutil.Process(process.pid).children(recursive=True)
    assert bool(children) == bool(workers)
    process.send_signal(number)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == status
    kind, evaluations, note = out.split(" ", 2)
    assert kind == name
    assert 0 < int(evaluations) < 500
    assert "mmes.resume" in note
    _, left = psutil.wait_procs(children, timeout=10)
    assert not left
    resumed = mmes.resume(tmp_path / "run.mmes", hostile.sphere, max_evaluations=500)
    same(resumed, mmes.minimize(hostile.sphere, *START, seed=5, max_evaluations=500))


def test_row34_workers_end_when_the_process_is_killed(script):
    process = script(SLEEPER.format(workers=2))
    assert process.stdout.readline() == "1\n"
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 3  # two workers and the fork server
    process.kill()
    _, left = psutil.wait_procs(children, timeout=10)
    assert not left


def test_row09_ctrl_c_in_the_objective_is_raised_with_the_result(tmp_path, same):
    objective = hostile.Interrupts(str(tmp_path), at=(33,))
    path = tmp_path / "run.mmes"
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(KeyboardInterrupt) as caught:
        mmes.minimize(objective, *START, seed=5, checkpoint=path)
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before
    assert caught.value.result.nit == 3
    resumed = mmes.resume(path, hostile.sphere, max_evaluations=100)
    same(resumed, mmes.minimize(hostile.sphere, *START, seed=5, max_evaluations=100))


def test_row09_a_run_inside_a_run_ends_both(tmp_path):
    inner = hostile.Interrupts(str(tmp_path), at=(40,))
    ended = []

    def outer(x):
        try:
            return mmes.minimize(inner, x, 0.1, seed=1, max_evaluations=30).fun
        except KeyboardInterrupt as error:
            ended.append(error.result.nfev)
            raise

    with pytest.raises(KeyboardInterrupt) as caught:
        mmes.minimize(outer, *START, seed=5)
    assert len(ended) == 1
    assert caught.value.result.nfev == 1  # of the outer run: no generation was completed


def test_row09_a_signal_during_an_update_waits_for_its_end():
    reached = []
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)  # held back: nothing says that this place is safe
        reached.append("the end of the update")
        with interrupts.interruptible():
            pytest.fail("it should have been raised on entry")
    assert reached


def test_row09_a_second_signal_does_not_wait():
    with pytest.raises(KeyboardInterrupt), Interrupts():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("it should have been raised")


def test_row30_inside_an_evaluator_with_locks_a_signal_waits_for_the_next_check():
    reached = []
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts, interrupts.guarded():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        reached.append("still inside")
        interrupts.check()
        pytest.fail("it should have been raised")
    assert reached
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts, interrupts.guarded():
        for _ in range(3):  # an executor that never comes back can still be left
            signal.raise_signal(signal.SIGINT)
        pytest.fail("it should have been raised")


def test_row30_a_signal_after_the_last_look_is_raised_at_the_end():
    with pytest.raises(mmes.errors.Terminated), Interrupts():
        signal.raise_signal(signal.SIGTERM)


def test_row30_a_signal_that_the_objective_swallows_is_raised_again(tmp_path):
    interrupting = hostile.Interrupts(str(tmp_path), at=(33,))

    def swallows(x):
        try:
            return interrupting(x)
        except KeyboardInterrupt:
            return hostile.sphere(x)

    with pytest.raises(KeyboardInterrupt) as caught:
        mmes.minimize(swallows, *START, seed=5)
    assert caught.value.result.nit == 3


def test_row30_a_signal_while_the_result_is_made_is_not_lost(monkeypatch):
    run = mmes.Run(hostile.sphere, *START, seed=5, max_evaluations=100)
    made, sent = run._ending.result, []

    def interrupted(*arguments):
        if not sent:
            sent.append(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return made(*arguments)

    monkeypatch.setattr(run._ending, "result", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        run.run()
    assert caught.value.result.nfev == 100


IN_AN_EXECUTOR = """
    import faulthandler, os, signal, threading, time
    from concurrent.futures import ThreadPoolExecutor, _base
    import numpy as np, mmes

    def slow(x):
        time.sleep(0.01)
        return float(x @ x)

    # The signal comes while the run holds the locks of the futures it waits for.
    acquire = _base._AcquireFutures.__enter__
    sent = []

    def enter(self):
        acquire(self)
        if len(sent) == 5:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
        sent.append(1)

    _base._AcquireFutures.__enter__ = enter
    faulthandler.dump_traceback_later(15, exit=True)
    with ThreadPoolExecutor(2) as executor:
        try:
            mmes.minimize(slow, np.ones(6), 0.5, workers=executor)
        except KeyboardInterrupt as error:
            print("interrupted", error.result.reason.name, flush=True)
    print("closed", flush=True)
    """


def test_row30_ctrl_c_while_waiting_for_threads_leaves_no_lock_behind(script):
    process = script(IN_AN_EXECUTOR)
    out, errors = process.communicate(timeout=30)
    assert out == "interrupted INTERRUPTED\nclosed\n", errors
    assert process.returncode == 0


def test_row09_handlers_of_the_user_are_left_alone():
    seen = []
    former = signal.signal(signal.SIGINT, lambda *_: seen.append("mine"))
    try:
        with Interrupts() as interrupts, interrupts.interruptible():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, former)
    assert seen == ["mine"]


def test_row09_a_half_made_update_is_never_saved(tmp_path, monkeypatch, same):
    """A handler of the user's own may raise anywhere, even in the middle of an update."""
    path = tmp_path / "run.mmes"
    run = mmes.Run(
        hostile.sphere,
        *START,
        seed=5,
        max_evaluations=200,
        checkpoint=path,
        checkpoint_generations=4,
    )
    update = run._state.es.search.update
    calls = []

    def broken(*arguments):
        calls.append(1)
        if len(calls) == 10:
            run._state.es.search.state.sigma *= 3  # half done
            raise KeyboardInterrupt
        return update(*arguments)

    monkeypatch.setattr(run._state.es.search, "update", broken)
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert mmes.checkpoint.read(path)[0]["generations"] == 8
    same(
        mmes.resume(path, hostile.sphere),
        mmes.minimize(hostile.sphere, *START, seed=5, max_evaluations=200),
    )


def test_row09_in_another_thread_signals_are_not_touched():
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def callback(progress):
        seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(
        target=mmes.minimize,
        args=(hostile.sphere, *START),
        kwargs={"max_evaluations": 30, "callback": callback},
    )
    thread.start()
    thread.join()
    assert seen
    assert set(seen) == {before}


def test_row10_a_callback_stops_by_word_or_exception():
    def says(progress):
        return progress.generation == 3

    def raises(progress):
        if progress.generation == 3:
            raise StopIteration

    for callback in (says, raises):
        result = mmes.minimize(hostile.sphere, *START, seed=5, callback=callback)
        assert result.reason is mmes.StopReason.CALLBACK
        assert result.nit == 3


@pytest.mark.parametrize("workers", [None, 2])
def test_row10_another_thread_may_stop_the_run(workers):
    run = mmes.Run(hostile.uneven, *START, seed=5, workers=workers, stagnation_window="off")
    threading.Timer(0.4, run.request_stop).start()
    result = run.run()
    assert result.reason is mmes.StopReason.REQUESTED
    # The start point and whole generations.
    assert result.nfev == 1 + result.nit * run._state.es.population_size


def test_row10_a_daemon_thread_with_workers_does_not_keep_the_interpreter(script):
    process = script(
        """
        import threading, time
        import numpy as np, mmes
        from mmes.testing.hostile import uneven

        if __name__ == "__main__":
            threading.Thread(
                target=mmes.minimize, args=(uneven, np.ones(5), 1.0),
                kwargs={"workers": 2, "stagnation_window": "off"}, daemon=True
            ).start()
            time.sleep(1)
        """,
        stderr=subprocess.DEVNULL,
    )
    assert process.wait(timeout=20) == 0
