"""Code that runs apart: in a forked process, with a limit, watched for what it leaves behind."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import psutil

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
        os.write(writing, answer.encode()[-60_000:])
    finally:
        os._exit(code)


class Script:
    """A Python script of its own, in a folder of its own."""

    def __init__(self, text: str, folder: Path, *arguments: str):
        (folder / "script.py").write_text(text)
        self.process = subprocess.Popen(
            [sys.executable, str(folder / "script.py"), *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=open(folder / "errors", "w"),  # noqa: SIM115  # closed with the process
            bufsize=0,
        )
        self.folder = folder
        self._buffer = b""

    def line(self, seconds: float = PATIENCE) -> str | None:
        """Return the next line that the script prints; None if none comes, "" at its end."""
        limit = time.monotonic() + seconds
        assert self.process.stdout is not None
        while b"\n" not in self._buffer:
            left = limit - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            part = os.read(self.process.stdout.fileno(), 65536)
            if not part:
                return ""
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace")

    def end(self) -> str:
        """Kill what is left of it, and return what it wrote about errors."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return (self.folder / "errors").read_text()[-3000:]
