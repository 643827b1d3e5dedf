"""Code in a forked process with a time limit, checked for what it leaves behind."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import psutil

Say = Callable[[str], None]

PATIENCE = 60.0
"""Seconds after which something counts as hanging, on a machine that has other work too."""


def children_of(pid: int) -> list[psutil.Process]:
    """Return all processes below one."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def left_alive(processes: list[psutil.Process], seconds: float = PATIENCE / 2) -> list[str]:
    """Return which of the processes do not end; they are killed."""
    _, left = psutil.wait_procs(processes, timeout=seconds)
    names = []
    for process in left:
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                names.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
                process.kill()
    return names


def apart(work: Callable[[], str], seconds: float = PATIENCE) -> tuple[str, str]:
    """Run a function in a forked process; return how it ended, and what it returned.

    How: "done", "raised", "hung" or "crashed".
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _in_the_child(work, writing)
    os.close(writing)
    answer = b""
    limit = time.monotonic() + seconds
    with open(reading, "rb", buffering=0) as pipe:
        while (left := limit - time.monotonic()) > 0:
            if select.select([pipe], [], [], left)[0]:
                part = pipe.read(65536)
                if not part:
                    break
                answer += part
        else:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "hung", answer.decode(errors="replace")
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    how = {0: "done", 1: "raised"}.get(code, "crashed")
    return how, answer.decode(errors="replace") or f"exit code {code}"


def _in_the_child(work: Callable[[], str], writing: int) -> None:
    code = 1
    try:
        os.setpgid(0, 0)
        faulthandler.disable()
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            answer, code = work(), 0
        except BaseException:
            answer = traceback.format_exc()
        with open(writing, "wb") as pipe:
            pipe.write(answer.encode())
    finally:
        os._exit(code)


class Victim:
    """A function in a forked process, in a folder of its own, which says lines.

    A fork, since a new interpreter would take most of the time.
    """

    def __init__(self, work: Callable[[Say], None], folder: Path):
        self._reading, writing = os.pipe()
        self._errors = folder / "errors"
        self._buffer = b""
        self.pid = os.fork()
        if self.pid == 0:
            self._suffer(work, writing)
        os.close(writing)
        self.ended_by: int | None = None

    def _suffer(self, work: Callable[[Say], None], writing: int) -> None:
        try:
            # A shell starts what runs in the background with SIGINT ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.close(self._reading)
            os.chdir(self._errors.parent)
            errors = os.open(self._errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(errors, 1)
            os.dup2(errors, 2)
            said = open(writing, "w", buffering=1)  # noqa: SIM115  # closed with the process
            work(lambda word: print(word, file=said))
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(1)

    def line(self, seconds: float = PATIENCE) -> str | None:
        """Return the next line that is said; None if none comes, "" at the end."""
        limit = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            left = limit - time.monotonic()
            if left <= 0 or not select.select([self._reading], [], [], left)[0]:
                return None
            part = os.read(self._reading, 65536)
            if not part:
                return ""
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace")

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        if self.ended_by is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.ended_by = status if pid else None
        return self.ended_by is not None

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if not self.ended:
            os.kill(self.pid, number)

    def end(self) -> str:
        """Kill it, and return what it wrote about errors."""
        self.send(signal.SIGKILL)
        if self.ended_by is None:
            _, self.ended_by = os.waitpid(self.pid, 0)
        os.close(self._reading)
        return self._errors.read_text()[-3000:]
