"""What all tests share."""

from __future__ import annotations

import os
import signal

# Before numpy is imported, here and in the processes that tests start: where others use the cores
# too, threads of BLAS wait for one another, and small products take forty times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_configure() -> None:
    """Let Ctrl-C mean Ctrl-C: a shell starts background jobs with SIGINT ignored, and so CI may."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
