"""Objectives that misbehave: they raise, hang, kill their process, write where they must not.

All of them can be pickled. They count their calls over all processes in a file, so that failures
occur at chosen calls for any number of workers.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def sphere(x: Vector) -> float:
    """Return the sum of squares: the well-behaved objective behind the others."""
    return float(np.add.reduce(x * x))


def spheres(points: Vector) -> Vector:
    """Return `sphere` of each row: the vectorized form, equal to the bit."""
    return np.array([sphere(x) for x in points])


def uneven(x: Vector) -> float:
    """Return `sphere` after a delay, which is ten times as long for some points."""
    time.sleep(0.01 if sphere(x) * 1e6 % 10 < 1 else 0.001)
    return sphere(x)


@dataclass(frozen=True)
class Counting:
    """Counts its calls, and calls another objective.

    Attributes
    ----------
    folder : str
        Folder of the count, which is the length of a file.
    inner : callable
        The objective that returns the value.
    """

    folder: str
    inner: Callable[[Any], Any] = sphere

    def __call__(self, x: Vector) -> Any:
        """Count, and return the inner objective's value."""
        self.count()
        return self.inner(x)

    def count(self) -> int:
        """Count one call and return its number, 0 for the first, over all processes."""
        with open(self._file, "ab", buffering=0) as file:
            file.write(b".")
            return file.tell() - 1  # right after what was appended

    @property
    def calls(self) -> int:
        """The number of calls so far."""
        return self._file.stat().st_size if self._file.exists() else 0

    @property
    def _file(self) -> Path:
        return Path(self.folder) / "calls"


@dataclass(frozen=True)
class Troubled(Counting):
    """Misbehaves at chosen calls, and behaves well at all others.

    Attributes
    ----------
    at : collection of int or None
        Numbers of the calls at which it misbehaves, 0 for the first; None for all.
    """

    at: Collection[int] | None = None

    def __call__(self, x: Vector) -> Any:
        """Misbehave if it is time; return the inner objective's value."""
        number = self.count()
        if self.at is None or number in self.at:
            answer = self.trouble(x)
            if answer is not None:
                return answer
        return self.inner(x)

    def trouble(self, x: Vector) -> Any:
        """Misbehave; the return value, unless None, becomes the value."""
        raise NotImplementedError


class Raises(Troubled):
    """Raises a ZeroDivisionError."""

    def trouble(self, x: Vector) -> Any:
        """Divide by zero."""
        return 1 / 0


class Interrupts(Troubled):
    """Sends SIGINT, like Ctrl-C, to its process."""

    def trouble(self, x: Vector) -> None:
        """Send the signal."""
        os.kill(os.getpid(), signal.SIGINT)


class Dies(Troubled):
    """Kills its process, as the operating system does when memory runs out."""

    def trouble(self, x: Vector) -> None:
        """Send SIGKILL."""
        os.kill(os.getpid(), signal.SIGKILL)


class Crashes(Troubled):
    """Reads invalid memory: a segmentation fault."""

    def trouble(self, x: Vector) -> None:
        """Follow a null pointer, without the report that a debugging Python would print."""
        import faulthandler

        faulthandler.disable()
        ctypes.string_at(0)


class Exits(Troubled):
    """Leaves the process by ``os._exit``."""

    def trouble(self, x: Vector) -> None:
        """Exit with status 3."""
        os._exit(3)


class Hangs(Troubled):
    """Waits for an hour and ignores signals, with a child process that waits too."""

    def trouble(self, x: Vector) -> None:
        """Hang; the process ids are written to the folder first."""
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        (Path(self.folder) / f"hanging-{os.getpid()}").write_text(f"{os.getpid()} {child.pid}")
        time.sleep(3600)


class HoldsTheLock(Troubled):
    """Sleeps in C code that holds the interpreter lock: no other thread of the process runs."""

    def trouble(self, x: Vector) -> None:
        """Sleep for an hour with the lock held."""
        (Path(self.folder) / f"holding-{os.getpid()}").touch()
        ctypes.PyDLL(None).sleep(3600)


class ForksThrough(Troubled):
    """Forks without ending the child: both processes return a value."""

    def trouble(self, x: Vector) -> None:
        """Fork."""
        if os.fork():
            os.wait()


class ClosesDescriptors(Troubled):
    """Closes every file of its process except the standard ones."""

    def trouble(self, x: Vector) -> None:
        """Close the descriptors 3 to 255."""
        os.closerange(3, 256)


class UnspeakableError(Exception):
    """An error whose message cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no message")


class LocalError(Exception):
    """An error that can be rebuilt in the process that raised it, and nowhere else."""

    def __init__(self, process: int):
        if process != os.getpid():
            raise RuntimeError("this is another process")
        super().__init__(process)


@dataclass(frozen=True)
class RaisesOddly:
    """Raises an error that itself misbehaves.

    Attributes
    ----------
    kind : str
        ``"unspeakable"``, ``"local"`` or ``"unpicklable"``.
    """

    kind: str

    def __call__(self, x: Vector) -> float:
        """Raise it."""
        if self.kind == "unspeakable":
            raise UnspeakableError
        if self.kind == "local":
            raise LocalError(os.getpid())
        raise ValueError(threading.Lock())


@dataclass
class SlowToLoad:
    """Takes an hour to be unpickled."""

    def __call__(self, x: Vector) -> float:
        """Return `sphere`."""
        return sphere(x)

    def __getstate__(self) -> dict[str, Any]:
        return {"slow": True}

    def __setstate__(self, state: dict[str, Any]) -> None:
        time.sleep(3600)


class WritesIntoX(Troubled):
    """Writes into the point it was given."""

    def trouble(self, x: Vector) -> None:
        """Set x to zero."""
        x[...] = 0


@dataclass(frozen=True)
class Returns:
    """Returns a fixed object for any point, to test invalid values.

    Attributes
    ----------
    answer : object
        What is returned.
    """

    answer: Any

    def __call__(self, x: Vector) -> Any:
        """Return the answer."""
        return self.answer


@dataclass(frozen=True)
class Noisy:
    """A sphere with noise that no seed controls.

    Attributes
    ----------
    strength : float
        Standard deviation of the noise.
    """

    strength: float = 1.0

    def __call__(self, x: Vector) -> float:
        """Return a noisy value."""
        fresh = np.random.Generator(np.random.PCG64(int.from_bytes(os.urandom(8))))
        return sphere(x) + self.strength * float(fresh.standard_normal())


def messy(x: Vector) -> float:
    """Return `sphere` after printing, forking, and starting a thread and a process."""
    print("the objective prints", flush=True)
    print("on both streams", file=sys.stderr, flush=True)
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    subprocess.run([sys.executable, "-c", ""], check=True)
    if hasattr(os, "fork"):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    return sphere(x)


def nested(x: Vector) -> float:
    """Return the best value of a nested optimization around x."""
    from mmes import minimize

    return minimize(sphere, x, 0.1, seed=1, max_evaluations=30).fun


REFUSED: tuple[tuple[Any, type[Exception]], ...] = (
    (None, TypeError),
    ("3.0", TypeError),
    (True, TypeError),
    (np.bool_(True), TypeError),
    (1 + 2j, TypeError),
    (np.array([1.0, 2.0]), ValueError),
    (np.array([]), ValueError),
    ([1.0], TypeError),
    (object, TypeError),
)
"""What is not a value, with the error that it must give."""

ACCEPTED: tuple[tuple[Any, float], ...] = (
    (3, 3.0),
    (np.float32(0.5), 0.5),
    (np.int64(4), 4.0),
    (np.array(2.5), 2.5),
    (np.array([2.5]), 2.5),
    (np.array([[2]]), 2.0),
    (np.inf, np.inf),
    (np.nan, np.nan),
)
"""What is a value, with the float that it must become."""
