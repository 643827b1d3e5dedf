"""Workers that died, hung or were killed, and what happens to their evaluations."""

from __future__ import annotations

import signal
from collections.abc import Sequence

import numpy as np

from mmes.base.arrays import Vector
from mmes.errors import EvaluationError, LostWorkerWarning, in_number, warn_user

_STARTS_THAT_MAY_FAIL = 3
_STARTS_THAT_MAY_BE_KILLED = 20  # in a row, by another process
_FORK_SERVER_DIED = 255  # the exit code that multiprocessing gives its children then
# Exit codes of workers that something outside has ended.
_FROM_OUTSIDE = (
    *(None, _FORK_SERVER_DIED),
    *(-number for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)),
)
# With a time limit for evaluations, a worker must start within this time, in which it loads the
# user's script and the objective's data.
START_SECONDS = 60.0

Batch = range
"""The candidates of a batch: consecutive rows."""


def tell_loss(pid: int | None, why: str, generation: int, batch: Sequence[int]) -> None:
    """Warn of a lost worker, with what it held."""
    held = f" while it evaluated {in_number(len(batch), 'candidate')}" if batch else ""
    warn_user(
        f"worker process {pid} was lost in generation {generation}{held}: {why}", LostWorkerWarning
    )


class Losses:
    """The lost evaluations of one generation: repeated, given up as NaN, or the end of the run.

    `retries` and `on_lost` are options of `minimize`.
    """

    def __init__(self, rows: int, retries: int, on_lost: str):
        self._counts = np.zeros(rows, dtype=int)
        self._retries, self._on_lost = retries, on_lost

    def split(self, batch: Batch, point: Vector, generation: int) -> list[int]:
        """Return the rows of a lost batch that are to be repeated; the others are given up.

        They are repeated one by one, to find the candidate that causes it: a loss counts only for a
        candidate that was alone with its worker. `point` is the first of the batch.
        """
        if len(batch) == 1:
            self._counts[batch] += 1
        repeated = [row for row in batch if self._counts[row] <= self._retries]
        if len(repeated) < len(batch) and self._on_lost == "raise":
            row = batch.start
            raise EvaluationError(
                f"the worker process died or was killed at the time limit {self._counts[row]} "
                "times while it evaluated "
                f"candidate {row} of generation {generation}; on_lost='nan' would rank such "
                "candidates last",
                np.array(point),
                row,
                generation,
            )
        return repeated


class FailedStarts:
    """Counts the workers in a row that ended before they were ready."""

    def __init__(self) -> None:
        self._count = 0

    def forget(self) -> None:
        """Start counting again: a worker is ready."""
        self._count = 0

    def count(self, code: int | None, late: bool) -> None:
        """Count one more, with its exit code; `late` says that it took too long.

        Raises EvaluationError if there were too many: the next would fail as well.
        """
        killed = not late and code in _FROM_OUTSIDE
        self._count += 1
        if self._count < (_STARTS_THAT_MAY_BE_KILLED if killed else _STARTS_THAT_MAY_FAIL):
            return
        what = f"took longer than {START_SECONDS:g} s" if late else f"ended (exit code {code})"
        raise EvaluationError(
            f"{self._count} worker processes in a row {what} before they were ready. If "
            "minimize is called at the top of a script, put it under if __name__ == '__main__':, "
            "because a worker imports the script"
        )
