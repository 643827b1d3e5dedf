"""Points that are generated on demand, if all of them do not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


class RowsOnDemand:
    """Behaves like an array of points, one per row, and generates rows when they are read.

    `make` returns the points of given rows, always the same ones; at most `at_once` are made at a
    time. `shape` is that of an array of all of them.
    """

    def __init__(self, make: Callable[[Any], Any], shape: tuple[int, ...], at_once: int):
        self._make = make
        self.shape = shape
        self.at_once = at_once

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._make(range(len(self))[index])
        rows = np.arange(len(self))[index]
        return self._make([int(rows)])[0] if rows.ndim == 0 else self._make(rows)


def parts(points: Any) -> Iterator[tuple[int, Any]]:
    """Yield (first row, some of the points) in order; an array is one part.

    Delete each part before the next one to save its memory.
    """
    if not isinstance(points, RowsOnDemand):
        yield 0, points
        return
    for first in range(0, len(points), points.at_once):
        yield first, points[first : first + points.at_once]
