"""Ctrl-C and SIGTERM during a run: raised where nothing is half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from mmes.errors import Terminated


class Interrupts:
    """Holds a signal back until the run is at a point where it can end cleanly.

    Inside `interruptible` (the user's code is running) a signal raises at once: KeyboardInterrupt
    for SIGINT, `Terminated` for SIGTERM. Elsewhere (the state is being updated, a checkpoint
    written) it raises at the next such place. A second signal raises at once, wherever that is.

    As a context manager it puts its handlers in place of Python's own and restores them; handlers
    of the user's own are left alone. Runs inside runs stack. Outside the main thread, where Python
    delivers no signals, it does nothing.
    """

    def __init__(self) -> None:
        self._former: dict[int, Any] = {}
        self._pending: int | None = None
        self._open = False

    def __enter__(self) -> Interrupts:
        self._pending = None
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                current = signal.getsignal(number)
                ours = isinstance(getattr(current, "__self__", None), Interrupts)
                if ours or current in (signal.SIG_DFL, signal.default_int_handler):
                    self._former[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, former in self._former.items():
            if signal.getsignal(number) == self._handle:
                signal.signal(number, former)
        self._former.clear()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let a signal raise at once inside; raise one that came before."""
        self._open = True
        try:
            self.check()
            yield
        finally:
            self._open = False

    def check(self) -> None:
        """Raise if a signal has come."""
        if self._pending is not None:
            self._raise(self._pending)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again = self._pending is not None
        self._pending = number
        if self._open or again:
            self._raise(number)

    def _raise(self, number: int) -> None:
        self._open = False
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated
