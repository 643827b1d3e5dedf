"""The long proofs: many kills, and the same result to the bit. Run by make test-all."""

import random
import signal
import threading
import time
import warnings

import numpy as np
import psutil
import pytest

import mmes
from mmes.errors import CheckpointWarning, LostWorkerWarning
from mmes.testing import hostile

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]

START = (np.linspace(-2, 2, 400), 1.0)


def test_row07_a_worker_is_killed_every_second_of_fifty_thousand_evaluations(same):
    # The damping keeps sigma where it is, so that the run has no end of its own.
    options = {"seed": 9, "max_evaluations": 50_000, "stagnation_window": "off", "damping": 1e6}
    undisturbed = mmes.minimize(hostile.sphere, *START, **options)
    assert undisturbed.nfev == 50_000
    over, killed = threading.Event(), []
    rng = random.Random(1)

    def kill_workers():
        own = psutil.Process()
        while not over.wait(1.0):
            workers = [p for p in own.children(recursive=True) if p.ppid() != own.pid]
            if workers:
                victim = rng.choice(workers)
                victim.kill()
                killed.append(victim.pid)

    killer = threading.Thread(target=kill_workers)
    killer.start()
    began = time.monotonic()
    try:
        with pytest.warns(LostWorkerWarning, match="killed by SIGKILL"):
            result = mmes.minimize(hostile.sphere, *START, workers=4, retries=100, **options)
    finally:
        over.set()
        killer.join()
    seconds = time.monotonic() - began
    print(f"{len(killed)} workers killed in {seconds:.0f} s, {result.retried} evaluations repeated")
    assert len(killed) >= min(seconds / 2, 5)
    same(result, undisturbed)


RUNNER = """
    import numpy as np, mmes
    from mmes.testing.hostile import sphere

    if __name__ == "__main__":
        print("imported", flush=True)
        # The damping keeps sigma where it is, so that the run has no end of its own.
        mmes.minimize(sphere, np.linspace(-2, 2, 3000), 1.0, seed=9, stagnation_window="off",
                      damping=1e6, checkpoint="run.mmes", resume="auto",
                      checkpoint_seconds=0.05, {workers})
    """


def test_row12_thirty_kills_of_the_whole_process(script, tmp_path, same):
    rng = random.Random(3)
    path = tmp_path / "run.mmes"
    reached = [0]
    for kill in range(30):
        # Now in this process, now with workers: the state does not depend on it.
        process = script(RUNNER.format(workers="workers=2" if kill % 5 == 4 else ""))
        assert process.stdout.readline() == "imported\n"
        time.sleep(rng.uniform(0.0, 1.0))
        assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CheckpointWarning)
            if mmes.checkpoint.exists(path):
                reached.append(mmes.checkpoint.read(path)[0]["generations"])
    print(f"generations reached: {reached}")
    assert reached == sorted(reached)  # nothing that was saved is lost again
    assert len(set(reached)) > 12
    end = reached[-1] + 100
    resumed = mmes.resume(path, hostile.sphere, max_generations=end)
    options = {"seed": 9, "stagnation_window": "off", "damping": 1e6, "max_generations": end}
    same(resumed, mmes.minimize(hostile.sphere, np.linspace(-2, 2, 3000), 1.0, **options))


SIGNALLED = """
    import os
    import numpy as np, mmes
    from mmes.testing.hostile import sphere

    def say(word):
        os.write(1, word.encode() + b"\\n")

    def begun(progress):
        if not said:
            said.append(say("begun"))

    if __name__ == "__main__":
        while True:
            try:
                said = []
                mmes.minimize(sphere, np.ones(50), 1.0, seed=9, stagnation_window="off",
                              damping=1e6, strategy="mmes", workers={workers},
                              callback=begun)
            except KeyboardInterrupt as error:
                say("SIGINT" if error.result is not None else "no result")
            except mmes.errors.Terminated as error:
                say("SIGTERM" if error.result is not None else "no result")
    """


@pytest.mark.parametrize("workers", [None, 2])
def test_row30_of_three_hundred_signals_none_is_lost(script, workers):
    """A hundred and fifty for each way, at random moments, in one process after the other's run."""
    rng = random.Random(4)
    process = script(SIGNALLED.format(workers=workers))
    for _ in range(150):
        assert process.stdout.readline() == "begun\n"
        time.sleep(rng.choice((0.0, rng.uniform(0.0, 0.01), rng.uniform(0.0, 0.1))))
        number = rng.choice((signal.SIGINT, signal.SIGTERM))
        process.send_signal(number)
        assert process.stdout.readline() == f"{number.name}\n"
