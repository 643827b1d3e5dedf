"""Code of the fork server: the workers that it starts, and how they end with it.

The fork server ends when the process of the run has ended for any reason. The groups of the workers
are then killed from here: a worker that is stopped, or in C code that holds the interpreter's lock,
cannot do it itself.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
from pathlib import Path

from mmes.evaluate.workers import worker

_SERVER = worker.IMPORTED_IN


@atexit.register
def _end_workers() -> None:
    if os.getpid() != _SERVER:
        return
    with contextlib.suppress(OSError):  # no /proc: each worker looks after itself
        children = Path(f"/proc/self/task/{_SERVER}/children").read_text().split()
        for child in map(int, children):
            with contextlib.suppress(OSError):
                os.killpg(child, signal.SIGKILL)
