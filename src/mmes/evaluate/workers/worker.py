"""The worker process: receives batches of points and sends back their outcomes."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from mmes.errors import in_words
from mmes.evaluate.workers.channel import Line
from mmes.evaluate.workers.shared import Attached

READY = "ready"
DONE_ONE = "done one"
"""Sent after each evaluation of a batch that has a time limit for each of them."""

IMPORTED_IN = os.getpid()
"""The process that loaded this module: the fork server, or the worker itself."""

_PR_SET_PDEATHSIG = 1


def serve(connection: Connection, task_bytes: bytes) -> None:
    """Answer batches until the pipe closes; first send `READY`, or why there is no objective."""
    stand_alone()
    line = Line(connection)
    try:
        task = pickle.loads(task_bytes)  # what our own process wrote, through our own pipe
    except BaseException as error:
        line.send(f"{type(error).__name__}: {in_words(error)}")
        return
    failure = task.prepared()
    if failure is not None:
        line.send(failure)
        return
    line.send(READY)
    memory = Attached()
    with contextlib.suppress(EOFError, OSError):
        while (batch := line.receive()) is not None:
            *where, beats, ticket = batch
            if ticket is not None:
                task.objective.take(pickle.loads(ticket))  # what our own process wrote
            after_each = (lambda: line.send(DONE_ONE)) if beats else None
            line.send(task(_points(where, memory), after_each))


def _points(where: Any, memory: Attached) -> np.ndarray[Any, Any]:
    shape, data, name, offset = where
    if name is not None:
        return memory.batch(name, offset, shape)
    return np.frombuffer(bytearray(data), dtype=np.float64).reshape(shape)


def stand_alone() -> None:
    """Leave the signals of the terminal to the parent, and end when the parent does.

    In a separate process group, a worker can be killed together with all processes that the
    objective has started.
    """
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)
    if os.getpid() != IMPORTED_IN:
        _end_with_the_fork_server()
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with_the_fork_server() -> None:
    """Have Linux kill this process when the fork server ends."""
    server = forkserver._forkserver
    # The fork server lives as long as anyone holds this; that must be the run, not its workers.
    held = server._forkserver_alive_fd  # type: ignore[attr-defined]
    if held is not None:
        server._forkserver_alive_fd = None  # type: ignore[attr-defined]
        with contextlib.suppress(OSError):
            os.close(held)
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != IMPORTED_IN:  # it ended before it could be asked for
        os._exit(1)


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    if hasattr(os, "killpg"):
        os.killpg(os.getpgid(0), signal.SIGKILL)
    os._exit(1)
