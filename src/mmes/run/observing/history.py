"""The convergence of a run as a table of bounded size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mmes.base.arrays import Arrays, Vector
from mmes.base.saved_numbers import LARGEST_COUNT

COLUMNS = ("evaluations", "best", "sigma", "start")


WHOLE = ("evaluations", "start")


class History:
    """The convergence of a run, thinned so that it never grows beyond a fixed size.

    A line is kept for every k-th generation; when the table is full, every other line is dropped
    and k doubles. The last generation is always there. There are at most `limit` lines, with the
    columns `further` besides `COLUMNS`.
    """

    def __init__(self, limit: int = 2000, further: tuple[str, ...] = ()):
        self._limit, self._names = limit, COLUMNS + further
        self._stride = 1
        self._seen = 0
        self._lines: list[tuple[float, ...]] = []
        self._last: tuple[float, ...] | None = None

    def record(self, *line: float) -> None:
        """Add one generation: a number for each column."""
        line = tuple(map(float, line))
        if self._seen % self._stride == 0:
            self._lines.append(line)
            if len(self._lines) >= self._limit:
                self._lines = self._lines[::2]
                self._stride *= 2
        self._last = line
        self._seen += 1

    def amend(self, value: float) -> None:
        """Set the last column of the last line, if there is one."""
        if self._last is not None:
            kept = bool(self._lines) and self._lines[-1] is self._last
            self._last = (*self._last[:-1], value)
            if kept:
                self._lines[-1] = self._last

    @property
    def last_best(self) -> float:
        """The best value of the last line; NaN if there is none."""
        return math.nan if self._last is None else self._last[1]

    def table(self) -> Vector:
        """Return the lines kept, one per row, with the columns `COLUMNS` and further ones."""
        lines = list(self._lines)
        if self._last is not None and (not lines or lines[-1] != self._last):
            lines.append(self._last)
        return np.array(lines, dtype=np.float64).reshape(-1, len(self._names))

    def columns(self, last: tuple[float, ...] | None = None) -> Arrays:
        """Return arrays of evaluations, best value so far, sigma and number of the start.

        `last` is a line to add, of a generation that was not completed.
        """
        table = self.table() if last is None else np.vstack([self.table(), last])
        found = dict(zip(self._names, table.T, strict=True))
        return found | {name: found[name].astype(np.int64) for name in WHOLE}

    def scalars(self) -> dict[str, Any]:
        """Return the entries that a checkpoint stores as text."""
        return {"limit": self._limit, "stride": self._stride, "seen": self._seen}

    @classmethod
    def restored(
        cls, scalars: dict[str, Any], table: Vector, further: tuple[str, ...] = ()
    ) -> History:
        """Return the history that `scalars` and `table` were taken from."""
        if table.shape[1:] != (len(COLUMNS + further),):
            raise ValueError(f"the history has the shape {table.shape}")
        for name in ("limit", "stride", "seen"):
            if type(scalars[name]) is not int or scalars[name] < (name != "seen"):
                raise ValueError(f"{name} of the history must be an integer, not {scalars[name]!r}")
        counts, best, sigma = table[:, [0, 3]], table[:, 1], table[:, 2]
        if not ((counts >= 0) & (counts < LARGEST_COUNT)).all() or np.isnan(best).any():
            raise ValueError("the history must hold counts and values")
        if not ((sigma > 0) & np.isfinite(sigma)).all():
            raise ValueError("the history must hold mutation strengths > 0")
        made = cls(scalars["limit"], further)
        made._stride, made._seen = scalars["stride"], scalars["seen"]
        made._lines = [tuple(map(float, line)) for line in table]
        if made._lines:
            made._last = made._lines[-1]
            if (made._seen - 1) % made._stride != 0:
                made._lines.pop()  # the last generation was not one of the kept ones
        return made
