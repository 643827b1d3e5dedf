"""Objectives that misbehave, and extreme numbers."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from typing import Any

import numpy as np

import mmes
from attacks.processes import WAYS
from attacks.sandbox import apart
from attacks.tally import Tally
from mmes.strategies.registry import STRATEGIES
from mmes.testing import hostile

BUDGET = 80

# What is harmless where the value comes back all the same: the bits are those of a quiet run.


class LeavesThreads(hostile.Troubled):
    """Starts a thread that does not end."""

    def trouble(self, x: Any) -> None:
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()


class TakesTheHandlers(hostile.Troubled):
    """Puts signal handlers of its own in place, and a mask."""

    def trouble(self, x: Any) -> None:
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, lambda *_: None)
            signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})


class HoldsTheLockAWhile(hostile.Troubled):
    """Sleeps in C code that keeps the interpreter's lock."""

    def trouble(self, x: Any) -> None:
        ctypes.PyDLL(None).usleep(50_000)


class ChangesSettings(hostile.Troubled):
    """Changes what a process has only once: folder, warnings, numpy's errors, the collector."""

    def trouble(self, x: Any) -> None:
        os.chdir("/")
        os.umask(0o777)
        np.seterr(all="raise")
        warnings.simplefilter("ignore")
        np.random.seed(1)  # noqa: NPY002
        random.seed(1)
        gc.disable()
        sys.setswitchinterval(1e-6)


class MakesItWritable(hostile.Troubled):
    """Makes the point writable, and writes into it."""

    def trouble(self, x: Any) -> None:
        point = x
        while isinstance(point, np.ndarray):
            with contextlib.suppress(ValueError):
                point.flags.writeable = True
                value = hostile.sphere(x)
                point[...] = 1e300
                return value
            point = point.base
        return None


class StartsASession(hostile.Troubled):
    """Starts a process in a session of its own, which ends soon."""

    def trouble(self, x: Any) -> None:
        subprocess.Popen(["sleep", "2"], start_new_session=True)


class ReapsChildren(hostile.Troubled):
    """Waits for any child of the process, also those that are not its own."""

    def trouble(self, x: Any) -> None:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)


class Aborts(hostile.Troubled):
    """Calls abort."""

    def trouble(self, x: Any) -> None:
        os.abort()


class StopsItself(hostile.Troubled):
    """Stops its process: it neither ends nor goes on."""

    def trouble(self, x: Any) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)


HARMLESS = (
    LeavesThreads, HoldsTheLockAWhile, StartsASession, ReapsChildren, MakesItWritable,
    hostile.ForksThrough, TakesTheHandlers, ChangesSettings,
)  # fmt: skip
DEADLY = (
    hostile.Dies, hostile.Crashes, hostile.Exits, hostile.ClosesDescriptors, Aborts,
)  # fmt: skip
POSSIBLE = {
    "harmless": tuple(WAYS),
    "errors": ("serial", "workers", "pool", "replicas"),
    "deadly": ("workers", "pool", "replicas"),
    "endless": ("workers", "replicas"),
}
"""The ways to evaluate that survive each group."""
ENDLESS = (hostile.Hangs, hostile.HoldsTheLock, StopsItself)


class RaisesAnything:
    """Raises what is not an ordinary error."""

    def __init__(self, number: int):
        self.number = number

    def __call__(self, x: Any) -> float:
        """Raise it."""
        if self.number < 3:
            return hostile.RaisesOddly(("unspeakable", "local", "unpicklable")[self.number])(x)
        kinds = (SystemExit, GeneratorExit, StopIteration, RecursionError, MemoryError, OSError)
        raise kinds[self.number - 3]


def objectives(tally: Tally, rng: random.Random) -> None:
    """Run a hostile objective; the result is that of a quiet run, or an error that says so."""
    group = rng.choice(list(POSSIBLE))
    way = rng.choice(POSSIBLE[group])
    at = sorted(rng.sample(range(BUDGET), 3))
    number = rng.randrange(9)
    classes = {"harmless": HARMLESS, "deadly": DEADLY, "endless": ENDLESS, "errors": ()}[group]
    chosen = rng.choice(classes) if classes else RaisesAnything
    kind = f"hostile objectives: {group}"

    def work() -> str:
        with tempfile.TemporaryDirectory() as folder:
            objective = RaisesAnything(number) if group == "errors" else chosen(folder, at=at)
            options: dict[str, Any] = {"seed": 5, "strategy": "mmes"}
            quiet = mmes.minimize(
                hostile.sphere, np.ones(6), 0.5, max_evaluations=BUDGET, **options
            )
            if group == "endless":
                options["evaluation_timeout"] = 0.5
            try:
                result = mmes.minimize(
                    objective, np.ones(6), 0.5, max_evaluations=BUDGET, workers=WAYS[way](),
                    retries=20, checkpoint=f"{folder}/run.mmes", **options,
                )  # fmt: skip
            except mmes.EvaluationError:
                return "as expected" if group == "errors" else "an EvaluationError"
            except (SystemExit, GeneratorExit):
                return "as expected" if group == "errors" and way == "serial" else "another error"
            if group == "errors":
                return "no error"
            same = np.array_equal(result.x, quiet.x) and result.fun == quiet.fun
            return "as expected" if same and result.nfev == BUDGET else "wrong bits"

    how, answer = apart(work, 180)
    tally.inject(kind)
    if answer == "as expected":
        return
    failure = {"hung": "hangs", "crashed": "crashes"}.get(how, "other")
    failure = "wrong bits" if answer == "wrong bits" else failure
    tally.fail(kind, failure, f"{chosen.__name__}({number}, {at}) by {way}: {answer}")


# Numbers

SIZES = (1e-320, 1e-300, 1e-160, 1e-50, 1e-10, 1.0, 1e10, 1e39, 1e50, 1e160, 1e300, 1e307, 1.7e308)
ANSWERS = (
    np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 5e-324, 1.0, -1.0, 1e-300, 2.0**1000,
)  # fmt: skip


class Watched:
    """An objective that looks at its points and answers with numbers of all sizes."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.answers = rng.sample(ANSWERS, rng.randint(1, 5)) if rng.random() < 0.7 else None
        self.slope = rng.choice((1.0, -1.0, 1e200, -1e200))

    def __call__(self, x: Any) -> float:
        """Refuse a point that is not finite."""
        if not np.isfinite(x).all():
            raise AssertionError(f"a candidate is not finite: {x}")
        if self.answers is not None:
            return self.rng.choice(self.answers)
        with np.errstate(all="ignore"):
            return float(self.slope * x[0])


def numbers(tally: Tally, rng: random.Random) -> None:
    """Start a hundred runs with numbers of all sizes: refused at once, or finite to the end."""
    seed = rng.getrandbits(32)

    def work() -> str:
        for number in range(100):
            inner = random.Random(seed + number)
            strategy = inner.choice(list(STRATEGIES))
            n = inner.choice((1, 2, 3, 10))
            x0 = [inner.choice((0.0, 1.0, -1.0)) * inner.choice(SIZES) for _ in range(n)]
            options: dict[str, Any] = {"sigma0": inner.choice(SIZES)}
            if inner.random() < 0.3:
                options["scale"] = [inner.choice(SIZES) for _ in range(n)]
            if inner.random() < 0.3:
                widths = [inner.choice(SIZES) for _ in range(n)]
                options["bounds"] = ([-w for w in widths], widths)
            objective = Watched(inner)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    mmes.minimize(
                        objective, x0, seed=1, strategy=strategy, max_evaluations=600, **options
                    )
            except ValueError:
                continue
            except Exception as error:
                cause = error.__cause__ or error
                return f"{number} {strategy} {x0} {options}: {type(cause).__name__}: {cause}"
        return "as expected"

    how, answer = apart(work, 180)
    tally.inject("hostile numbers", 100)
    if answer != "as expected":
        failure = {"hung": "hangs", "crashed": "crashes"}.get(how, "other")
        tally.fail("hostile numbers", failure, f"seed {seed}: {answer}")
