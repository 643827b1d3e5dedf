"""The worker process: takes batches of points from its pipe, sends back their outcomes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from mmes.evaluate.shared import Attached

READY = "ready"


def serve(connection: Connection, task_bytes: bytes) -> None:
    """Answer batches until the pipe closes; first `READY`, or why there is no objective."""
    _stand_alone()
    try:
        task = pickle.loads(task_bytes)  # what our own process wrote, through our own pipe
    except BaseException as error:
        connection.send(f"{type(error).__name__}: {error}")
        return
    failure = task.prepared()
    if failure is not None:
        connection.send(failure)
        return
    connection.send(READY)
    memory = Attached()
    with contextlib.suppress(EOFError, OSError):
        while (batch := connection.recv()) is not None:
            connection.send(task(_points(batch, memory)))


def _points(batch: Any, memory: Attached) -> np.ndarray[Any, Any]:
    shape, data, name, offset = batch
    if name is not None:
        return memory.batch(name, offset, shape)
    return np.frombuffer(bytearray(data), dtype=np.float64).reshape(shape)


def _stand_alone() -> None:
    """Leave the signals of the terminal to the parent, and end when the parent does.

    In a process group of its own, a worker can be ended together with all that an objective may
    have started.
    """
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    if hasattr(os, "killpg"):
        os.killpg(os.getpgid(0), signal.SIGKILL)
    os._exit(1)
