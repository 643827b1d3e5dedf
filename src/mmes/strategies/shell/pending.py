"""Small parts of the shell: values told in parts, exclusive access."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmes.base.arrays import Vector
from mmes.errors import TellError
from mmes.evaluate.values import as_values


class Pending:
    """The values of a generation that are told in parts."""

    def __init__(self, count: int):
        self.values: Vector = np.full(count, math.nan)
        self._told = np.zeros(count, dtype=bool)

    @property
    def complete(self) -> bool:
        """Whether every row was told."""
        return bool(self._told.all())

    def take(self, rows: NDArray[np.intp], values: Vector) -> None:
        """Store the values of some rows."""
        self.values[rows] = values
        self._told[rows] = True

    def told(self) -> tuple[NDArray[np.intp], Vector]:
        """Return the rows that were told, and their values."""
        rows = np.flatnonzero(self._told)
        return rows, self.values[rows]

    def checked_rows(self, index: ArrayLike | None) -> NDArray[np.intp]:
        """Return the rows of an index (all, if None); TellError if it is invalid."""
        count = self._told.size
        if index is None:
            index = np.arange(count)
        try:
            rows = checked_rows("index", index, count)
        except ValueError as error:
            raise TellError(str(error)) from None
        if np.unique(rows).size != rows.size:
            raise TellError(f"index contains a row twice: {index!r}")
        again = self._told[rows]
        if again.any():
            raise TellError(f"row {int(rows[again.argmax()])} was told before")
        return rows


class ExclusiveAccess:
    """Allows one thread at a time; a second one gets an error instead of waiting."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(False):
            raise RuntimeError(
                "another thread is using this optimizer: use one optimizer per thread"
            )

    def __exit__(self, *exception: object) -> None:
        self._lock.release()


def checked_rows(name: str, given: ArrayLike, count: int) -> NDArray[np.intp]:
    """Return the given rows as indices; ValueError if one is invalid. Rows may repeat."""
    # A few at a time: at n = 1e6 on a GPU, checks of arrays take as long as the candidates.
    if type(given) is range and given and given[0] in range(count) and given[-1] in range(count):
        return np.arange(given.start, given.stop, given.step, dtype=np.intp)
    rows = np.atleast_1d(np.asarray(given))
    if rows.size == 0:
        return np.empty(0, np.intp)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise ValueError(f"{name} must list rows as integers, not {given!r}")
    beyond = (rows < 0) | (rows >= count)
    if beyond.any():
        raise ValueError(
            f"{name} must lie in 0..{count - 1}, the rows asked, not {rows[beyond.argmax()]}"
        )
    return rows.astype(np.intp)


def received(
    pending: Pending | None, values: Any, index: ArrayLike | None, count: int
) -> tuple[Pending | None, Vector | None]:
    """Store the values of some of `count` rows, or of all.

    Return what is pending, and the values of all rows once they are complete.
    """
    if index is None and pending is None:
        return None, told_values(values, count)
    pending = pending or Pending(count)
    rows = pending.checked_rows(index)
    pending.take(rows, told_values(values, rows.size))
    return pending, pending.values if pending.complete else None


def told_values(values: Any, count: int) -> Vector:
    """Return told values after checking them; a wrong number of them is a TellError."""
    try:
        return as_values(values, count, "tell needs {}, one per row, but was given {}")
    except ValueError as error:
        raise TellError(str(error)) from None
