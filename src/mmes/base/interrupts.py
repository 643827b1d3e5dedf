"""Ctrl-C and SIGTERM during a run: raised only at safe points, and never lost."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from mmes.errors import Terminated


class Interrupts:
    """Holds a signal back until the run is at a point where it can end cleanly.

    Inside `interruptible` (the user's code is running) a signal raises at once: KeyboardInterrupt
    for SIGINT, `Terminated` for SIGTERM. Elsewhere (the state is being updated, a checkpoint
    written) it is noted, and raised by the next `check`, `interruptible` or the end of the run. A
    second signal raises at once. Inside `guarded` (an evaluator with locks and processes is
    running, which calls `check` many times per second) only a third one does.

    As a context manager it replaces Python's handlers and restores them at the end; handlers that
    the user installed are not replaced. Nested runs are supported. Outside the main thread, where
    Python delivers no signals, it does nothing.
    """

    def __init__(self) -> None:
        self._former: dict[int, Any] = {}
        self._pending: int | None = None
        self._count = 0
        self._patience = 1  # signals that are noted before one raises where it comes

    def __enter__(self) -> Interrupts:
        self._pending, self._count, self._patience = None, 0, 1
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
        # One that came after the last check, or that an objective's own handling swallowed.
        if not isinstance(error, KeyboardInterrupt | SystemExit):
            self.check()

    def interruptible(self) -> _Patience:
        """Let a signal raise immediately inside; raise one that arrived before."""
        return _Patience(self, 0)

    def guarded(self) -> _Patience:
        """Let only a third signal raise inside: what runs there calls `check` itself."""
        return _Patience(self, 2)

    def check(self) -> None:
        """Raise if a signal has arrived."""
        if self._pending is not None:
            self._raise(self._pending)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._pending = number
        self._count += 1
        if self._count > self._patience:
            self._raise(number)

    def _raise(self, number: int) -> None:
        self._patience = 1
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated


class _Patience:
    """Only note this many signals inside; the next one raises immediately."""

    def __init__(self, interrupts: Interrupts, signals: int):
        self._interrupts, self._signals = interrupts, signals

    def __enter__(self) -> None:
        self._interrupts._patience = self._signals
        try:
            self._interrupts.check()
        except BaseException:
            self._interrupts._patience = 1
            raise

    def __exit__(self, *exception: object) -> None:
        self._interrupts._patience = 1
