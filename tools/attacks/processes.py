"""Kills and signals at random moments, in every way to evaluate; the bits must not change."""

from __future__ import annotations

import contextlib
import random
import signal
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import mmes
from attacks.sandbox import PATIENCE, Script, children_of, left_alive
from attacks.tally import Tally
from mmes.testing import hostile

SIZE, SEED = 300, 9

# The damping keeps sigma where it is, so that the run has no end of its own.
OPTIONS = {"seed": SEED, "stagnation_window": "off", "damping": 1e6, "strategy": "mmes"}

SCRIPT = f"""
import os, signal, sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
import numpy as np
import mmes
from mmes.testing.hostile import sphere

def pool():
    return ProcessPoolExecutor(2)

def ways():
    yield "serial", None
    yield "workers", 2
    yield "pool", pool
    yield "threads", lambda: ThreadPoolExecutor(2)
    try:
        from mmes.replicas import Local
    except ImportError:
        return
    yield "replicas", Local(2)

def say(word):
    os.write(1, word.encode() + b"\\n")

def run(way, **more):
    return mmes.minimize(
        sphere, np.linspace(-2, 2, {SIZE}), 1.0, seed={SEED}, stagnation_window="off",
        damping=1e6, strategy="mmes", checkpoint="run.mmes", resume="auto",
        workers=dict(ways())[way], retries=1000, **more)

if __name__ == "__main__":
    way, what = sys.argv[1:]
    if what == "kills":
        run(way, checkpoint_seconds=0.02,
            callback=lambda p: say(str(p.generation)) if p.generation % 20 == 0 else None)
    while True:
        try:
            said = []

            def begun(progress):
                if not said:
                    said.append("begun")
                    say("begun")

            run(way, checkpoint_seconds=0.2, callback=begun)
            say("ended")
        except KeyboardInterrupt as error:
            say("SIGINT" if error.result is not None else "SIGINT without a result")
        except mmes.errors.Terminated as error:
            say("SIGTERM" if error.result is not None else "SIGTERM without a result")
"""


def ways() -> tuple[str, ...]:
    """Return the ways to evaluate that this version has."""
    try:
        import mmes.replicas  # noqa: F401
    except ImportError:
        return ("serial", "workers", "pool", "threads")
    return ("serial", "workers", "pool", "threads", "replicas")


def kills(tally: Tally, rng: random.Random) -> None:
    """Kill a run, its workers and its fork server, again and again; then compare the bits."""
    way = rng.choice(ways())
    kind = f"kills: {way}"
    with tempfile.TemporaryDirectory() as name:
        folder, reached = Path(name), 0
        for _ in range(rng.randint(2, 4)):
            script = Script(SCRIPT, folder, way, "kills")
            line = script.line()
            if not line:
                story = script.end()
                tally.fail(kind, "hangs" if line is None else "other", f"no generation: {story}")
                return
            # First what it started, one after the other; then the run itself.
            for _ in range(rng.randint(0, 20) if way in ("workers", "pool", "replicas") else 0):
                time.sleep(rng.uniform(0.02, 0.15))
                below = children_of(script.process.pid)
                if below:
                    with contextlib.suppress(Exception):
                        rng.choice(below).send_signal(
                            rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
                        )
                        tally.inject(kind)
            time.sleep(rng.uniform(0.0, 0.3))
            if script.process.poll() is not None:
                tally.fail(kind, "other", f"the run ended: {script.end()}")
                return
            below = children_of(script.process.pid)
            script.process.send_signal(signal.SIGKILL)
            script.end()
            tally.inject(kind)
            # Those of an executor are its own: CPython's outlive a killed process.
            for left in left_alive(below, 0 if way == "pool" else PATIENCE / 2):
                if way != "pool":
                    tally.fail(kind, "orphans", left)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if not mmes.checkpoint.exists(folder / "run.mmes"):
                    continue  # killed before the first one
                now = mmes.checkpoint.read(folder / "run.mmes")[0]["generations"]
            if now < reached:
                tally.fail(kind, "wrong bits", f"generation {now} after {reached}")
            reached = now
        compare(tally, kind, folder)


def signals(tally: Tally, rng: random.Random) -> None:
    """Interrupt one run after the other in the same process; none may be lost."""
    way = rng.choice(ways())
    kind = f"signals: {way}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = Script(SCRIPT, folder, way, "signals")
        for _ in range(20):
            line = script.line()
            if line != "begun":
                tally.fail(kind, "hangs" if line is None else "other", f"{line}: {script.end()}")
                return
            number = rng.choice((signal.SIGINT, signal.SIGTERM))
            time.sleep(rng.choice((0.0, rng.uniform(0.0, 0.03), rng.uniform(0.0, 0.3))))
            script.process.send_signal(number)
            tally.inject(kind)
            line = script.line()
            if line != number.name:
                below = children_of(script.process.pid)
                tally.fail(kind, "lost signals", f"{number.name} gave {line}: {script.end()}")
                left_alive(below)
                return
        below = children_of(script.process.pid)
        script.end()
        for left in left_alive(below, 0 if way == "pool" else PATIENCE / 2):
            if way != "pool":
                tally.fail(kind, "orphans", left)
        compare(tally, kind, folder)


def compare(tally: Tally, kind: str, folder: Path) -> None:
    """Go on from the checkpoint, and from the beginning, to the same generation."""
    path = folder / "run.mmes"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not mmes.checkpoint.exists(path):
            return
        end = mmes.checkpoint.read(path)[0]["generations"] + 3
        began = time.monotonic()
        resumed = mmes.resume(path, hostile.sphere, max_generations=end)
        start = np.linspace(-2, 2, SIZE)
        whole = mmes.minimize(hostile.sphere, start, 1.0, max_generations=end, **OPTIONS)
    if time.monotonic() - began > PATIENCE:
        tally.fail(kind, "hangs", f"{end} generations took {time.monotonic() - began:.0f} s")
    same = np.array_equal(resumed.x, whole.x) and np.array_equal(resumed.mean, whole.mean)
    if not same or (resumed.fun, resumed.nfev) != (whole.fun, whole.nfev):
        tally.fail(kind, "wrong bits", f"at generation {end}")
