"""Files that only one process writes, and that are replaced atomically.

Anything else with that name is not written to: a link, a pipe, the file of a killed process. A file
that a running process is writing is not touched; an error says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

from mmes.errors import CheckpointError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None


@contextlib.contextmanager
def new_file(partial: Path) -> Iterator[IO[bytes]]:
    """Yield a new file of that name, which no other process writes to."""
    handle = _created(partial)
    with open(handle, "w+b") as file:
        yield file


def _created(partial: Path) -> int:
    flags = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    for _ in range(100):  # as often as others may come in between
        try:
            # A new file, whatever there is: a link, a pipe or a file of that name that someone has
            # put there is never written to.
            handle = os.open(partial, flags | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            _remove_left_over(partial, flags)
            continue
        try:
            lock(handle, partial)
            if is_same(partial, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # taken for one that was left over, before it was locked
    raise CheckpointError(f"other processes keep writing {partial}; give each run its own file")


def _remove_left_over(partial: Path, flags: int) -> None:
    """Remove an unfinished file of a killed process, but not one that is being written."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.lstat(partial).st_mode):
            os.unlink(partial)
            return
        handle = os.open(partial, flags | getattr(os, "O_NONBLOCK", 0))
        try:
            # Once it is locked, its owner may have finished and given it its name.
            lock(handle, partial)
            if is_same(partial, handle):
                os.unlink(partial)
        finally:
            os.close(handle)


def lock(handle: int, partial: Path) -> None:
    """Lock an open file; raise CheckpointError if another process is writing it."""
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckpointError(
                f"another process is writing the checkpoint {partial.with_suffix('')}; "
                "give each run its own file"
            ) from None
        except OSError:  # a file system without locks
            pass


def is_same(path: Path, handle: int) -> bool:
    """Return whether the path still names the file that is open."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def plain_name(name: str) -> str:
    """Return a name from a file or a label after checking that it stays in its folder.

    Raises ValueError if it is empty, hidden, or leads to another folder.
    """
    if not name or name.startswith(".") or any(c in "/\\:\0" for c in name):
        raise ValueError(f"{name!r} is not a valid file name here")
    return name


def write_atomically(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file atomically: it is complete or missing, even if the machine loses power."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{uuid.uuid4().hex}.part"
    try:
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_text(path: Path, text: str) -> None:
    """Write a text atomically."""
    write_atomically(path, lambda file: file.write(text.encode()))


def write_json(path: Path, data: Any) -> None:
    """Write data as JSON atomically."""
    write_text(path, json.dumps(data, indent=1, sort_keys=True))
