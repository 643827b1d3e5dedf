"""Child processes of the library's own: how they start, and how they are ended."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any


def start_context() -> Any:
    """Return how processes start: never by fork, which would copy locks that other threads hold."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mmes.evaluate.workers.server"])
    return context


@contextlib.contextmanager
def script_from_a_pipe() -> Iterator[None]:
    """Keep multiprocessing from importing a script that is not a file: ``python - < script``."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if main is None or file is None or os.path.exists(file):
        yield
        return
    main.__file__ = None
    try:
        yield
    finally:
        main.__file__ = file


def ending(process: Any, seconds: float) -> str:
    """Return how a process ended, in words, after waiting at most so long for it."""
    join(process, seconds)
    code = None if process.pid is None else process.exitcode
    if code is None:
        return "its pipe was closed"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


def kill(process: Any) -> None:
    """End a worker and what it has started, in its group of processes."""
    if process.pid is None:
        return
    with contextlib.suppress(OSError, AttributeError):  # gone already; or no process groups here
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(OSError, ValueError):
        process.kill()


def join(process: Any, seconds: float) -> None:
    """Wait for the end of a process at most so long; one that never started has none."""
    if process.pid is not None:
        process.join(max(seconds, 0))
