"""What is seen of a run while it goes on: progress for callbacks, and a history of bounded size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

COLUMNS = ("evaluations", "best", "sigma", "start")


class History:
    """The convergence of a run, thinned so that it never grows beyond a fixed size.

    A line is kept for every k-th generation; when the table is full, every other line is dropped
    and k doubles. The last generation is always there.

    Parameters
    ----------
    limit : int
        Lines kept at most.
    """

    def __init__(self, limit: int = 2000):
        self._limit = limit
        self._stride = 1
        self._seen = 0
        self._lines: list[tuple[float, ...]] = []
        self._last: tuple[float, ...] | None = None

    def record(self, evaluations: int, best: float, sigma: float, start: int) -> None:
        """Take note of one generation."""
        line = (float(evaluations), best, sigma, float(start))
        if self._seen % self._stride == 0:
            self._lines.append(line)
            if len(self._lines) >= self._limit:
                self._lines = self._lines[::2]
                self._stride *= 2
        self._last = line
        self._seen += 1

    def table(self) -> NDArray[np.float64]:
        """Return the lines kept, one a row, with the columns `COLUMNS`."""
        lines = list(self._lines)
        if self._last is not None and (not lines or lines[-1] != self._last):
            lines.append(self._last)
        return np.array(lines, dtype=np.float64).reshape(-1, len(COLUMNS))

    def columns(self) -> dict[str, NDArray[np.float64]]:
        """Return evaluations, best value so far, sigma and number of the start, an array each."""
        return dict(zip(COLUMNS, self.table().T, strict=True))

    def scalars(self) -> dict[str, Any]:
        """Return what a checkpoint writes as text."""
        return {"limit": self._limit, "stride": self._stride, "seen": self._seen}

    @classmethod
    def restored(cls, scalars: dict[str, Any], table: NDArray[np.float64]) -> History:
        """Return the history that `scalars` and `table` were taken from."""
        made = cls(scalars["limit"])
        made._stride, made._seen = scalars["stride"], scalars["seen"]
        made._lines = [tuple(map(float, line)) for line in table]
        if made._lines:
            made._last = made._lines[-1]
            if (made._seen - 1) % made._stride != 0:
                made._lines.pop()  # the last generation was not one of the kept ones
        return made


@dataclass(frozen=True)
class Progress:
    """What a callback sees at the end of a generation.

    Attributes
    ----------
    evaluations : int
        Evaluations so far, over all starts.
    generation : int
        Generations so far, over all starts.
    best_value : float
        Best value so far.
    sigma : float
        Mutation strength of the current start.
    start : int
        Number of the current start, 0 for the first.
    elapsed : float
        Seconds since the run (or its resumption) began.
    max_evaluations : int or None
        The budget, for displays.
    """

    evaluations: int
    generation: int
    best_value: float
    sigma: float
    start: int
    elapsed: float
    max_evaluations: int | None
    _best_x: Callable[[], NDArray[np.float64]]
    _mean: Callable[[], NDArray[np.float64]]
    _request_stop: Callable[[], None]

    @property
    def best_x(self) -> NDArray[np.float64]:
        """The best point so far, read-only."""
        return self._best_x()

    @property
    def mean(self) -> NDArray[np.float64]:
        """The centre of the current start's search, read-only."""
        return self._mean()

    def request_stop(self) -> None:
        """Ask the run to end at the end of this generation; may be called from any thread."""
        self._request_stop()
