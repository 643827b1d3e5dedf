"""Kills and signals at random moments, with every kind of evaluation; the bits must not change."""

from __future__ import annotations

import contextlib
import random
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import mmes
from attacks.sandbox import PATIENCE, Say, Victim, children_of, left_alive
from attacks.tally import Tally
from mmes.replicas import Local
from mmes.testing import hostile

SIZE, SEED = 300, 9

# The damping keeps sigma where it is, so that the run has no end of its own.
OPTIONS = {"seed": SEED, "stagnation_window": "off", "damping": 1e6, "strategy": "mmes"}


def pool() -> ProcessPoolExecutor:
    """Return an executor of processes."""
    return ProcessPoolExecutor(2)


def threads() -> ThreadPoolExecutor:
    """Return an executor of threads."""
    return ThreadPoolExecutor(2)


WAYS: dict[str, Callable[[], Any]] = {
    "serial": lambda: None,
    "workers": lambda: 2,
    "pool": lambda: pool,
    "threads": lambda: threads,
    "replicas": lambda: Local(2),
}
"""Each way to evaluate, with what `workers=` gets."""

SIGNALS = {"serial": 80, "workers": 20, "pool": 20, "threads": 80, "replicas": 20}
"""Signals in a turn: where no process must start after each, there are more."""


def run(way: str, **more: Any) -> None:
    """Run without an end, and go on where the run before was."""
    mmes.minimize(
        hostile.sphere, np.linspace(-2, 2, SIZE), 1.0, checkpoint="run.mmes", resume="auto",
        workers=WAYS[way](), retries=1000, **OPTIONS, **more,
    )  # fmt: skip


def run_to_be_killed(way: str, say: Say) -> None:
    """Run, and say every twentieth generation."""

    def told(progress: mmes.Progress) -> None:
        if progress.generation % 20 == 0:
            say(str(progress.generation))

    run(way, checkpoint_seconds=0.02, callback=told)


def runs_to_be_interrupted(way: str, say: Say) -> None:
    """Run again and again; say when each has begun, and by what it was ended."""
    while True:
        said: list[str] = []

        def begun(progress: mmes.Progress, said: list[str] = said) -> None:
            if not said:
                said.append("begun")
                say("begun")

        try:
            run(way, checkpoint_seconds=0.2, callback=begun)
            say("ended")
        except KeyboardInterrupt as error:
            say("SIGINT" if error.result is not None else "SIGINT without a result")
        except mmes.errors.Terminated as error:
            say("SIGTERM" if error.result is not None else "SIGTERM without a result")


def neglected(tally: Tally, what: str, times: Mapping[str, int]) -> str:
    """Return the way to evaluate that was attacked least, each so many times in a turn."""
    return min(WAYS, key=lambda way: tally.injected[f"{what}: {way}"] / times[way])


def kills(tally: Tally, rng: random.Random) -> None:
    """Kill a run, its workers and its fork server, again and again; then compare the bits."""
    way = neglected(tally, "kills", dict.fromkeys(WAYS, 1))
    kind = f"kills: {way}"
    with tempfile.TemporaryDirectory() as name:
        folder, reached = Path(name), 0
        for _ in range(rng.randint(2, 4)):
            victim = Victim(partial(run_to_be_killed, way), folder)
            line = victim.line()
            if not line:
                story = victim.end()
                tally.fail(kind, "hangs" if line is None else "other", f"no generation: {story}")
                return
            # First what it started, one after the other; then the run itself.
            for _ in range(rng.randint(0, 20) if way in ("workers", "pool", "replicas") else 0):
                time.sleep(rng.uniform(0.02, 0.15))
                below = children_of(victim.pid)
                if below:
                    with contextlib.suppress(Exception):
                        rng.choice(below).send_signal(
                            rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
                        )
                        tally.inject(kind)
            time.sleep(rng.uniform(0.0, 0.3))
            if victim.ended:
                tally.fail(kind, "other", f"the run ended: {victim.end()}")
                return
            below = children_of(victim.pid)
            victim.send(signal.SIGKILL)
            victim.end()
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
    way = neglected(tally, "signals", SIGNALS)
    kind = f"signals: {way}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        victim = Victim(partial(runs_to_be_interrupted, way), folder)
        for _ in range(SIGNALS[way]):
            line = victim.line()
            if line != "begun":
                tally.fail(kind, "hangs" if line is None else "other", f"{line}: {victim.end()}")
                return
            number = rng.choice((signal.SIGINT, signal.SIGTERM))
            time.sleep(rng.choice((0.0, rng.uniform(0.0, 0.03), rng.uniform(0.0, 0.3))))
            victim.send(number)
            tally.inject(kind)
            line = victim.line()
            if line != number.name:
                below = children_of(victim.pid)
                tally.fail(kind, "lost signals", f"{number.name} gave {line}: {victim.end()}")
                left_alive(below)
                return
        below = children_of(victim.pid)
        victim.end()
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
