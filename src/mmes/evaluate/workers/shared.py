"""Candidates in shared memory, so that long ones are not sent through a pipe."""

from __future__ import annotations

import os
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import numpy as np

from mmes.base.arrays import Vector

# Longer batches than this go through shared memory: beyond the size of a pipe's buffer it is
# faster.
SHARED_BYTES = 2**16


class Slots:
    """A slot in shared memory for each worker, large enough for a batch of so many rows."""

    def __init__(self, count: int, rows: int, n: int):
        self.rows, self.n = rows, n
        self._bytes = rows * n * 8
        self._memory = SharedMemory(create=True, size=count * self._bytes)
        try:
            _reserve(self._memory)
        except OSError:
            self.close()
            raise

    @property
    def name(self) -> str:
        """The name under which workers find the memory."""
        return self._memory.name

    def put(self, slot: int, points: Vector) -> int:
        """Copy a batch into a slot and return its offset."""
        offset = slot * self._bytes
        _view(self._memory, offset, points.shape)[:] = points
        return offset

    def close(self) -> None:
        """Release the memory."""
        self._memory.close()
        self._memory.unlink()


class Attached:
    """The worker's side: opens the memory by name, once."""

    def __init__(self) -> None:
        self._memory: SharedMemory | None = None

    def batch(self, name: str, offset: int, shape: tuple[int, ...]) -> Vector:
        """Return a private copy of a batch: the objective may keep it."""
        if self._memory is None or self._memory.name != name:
            if self._memory is not None:
                self._memory.close()
            self._memory = SharedMemory(name)
        return _view(self._memory, offset, shape).copy()


def _view(memory: SharedMemory, offset: int, shape: tuple[int, ...]) -> Vector:
    return np.ndarray(shape, dtype=np.float64, buffer=memory.buf, offset=offset)


def _reserve(memory: SharedMemory) -> None:
    """Raise OSError if the memory does not exist."""
    # Linux gives it on first use, and then kills the process if there is none left.
    file = Path("/dev/shm") / memory.name.lstrip("/")
    if hasattr(os, "posix_fallocate") and file.exists():
        handle = os.open(file, os.O_RDWR)
        try:
            os.posix_fallocate(handle, 0, memory.size)
        finally:
            os.close(handle)
