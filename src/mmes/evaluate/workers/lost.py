"""Workers and executors that were lost, and what happens to their evaluations."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from mmes.base.arrays import Vector
from mmes.base.tensors import to_numpy
from mmes.errors import EvaluationError, LostWorkerWarning, in_number, in_words, warn_user
from mmes.evaluate.values import together

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


def tell_loss(pid: int | None, why: str, generation: int, batch: Sequence[int]) -> None:
    """Warn of a lost worker, with what it held."""
    held = f" while it evaluated {in_number(len(batch), 'candidate')}" if batch else ""
    warn_user(
        f"worker process {pid} was lost in generation {generation}{held}: {why}", LostWorkerWarning
    )


class Round:
    """The rows of one generation while they are evaluated elsewhere; `who` evaluates them.

    Rows that are evaluated together are a batch. Lost ones are repeated, given up as NaN, or end
    the run.
    """

    def __init__(self, generation: int, rows: int, who: str = "the worker process"):
        self.generation = generation
        self.waiting: deque[Any] = deque()  # batches
        self.values: list[Any] = [np.nan] * rows
        self.done = np.zeros(rows, dtype=bool)
        self._losses, self._who = np.zeros(rows, dtype=int), who

    def take(self, batch: Sequence[int], values: Sequence[Any] | Vector) -> None:
        """Enter the values of a batch; with constraints, a row of them for each point."""
        for row, value in zip(batch, values, strict=True):
            if not self.done[row]:  # of two answers, the first counts
                self.values[row], self.done[row] = value, True

    def lose(
        self,
        batch: Sequence[int],
        retries: int,
        on_lost: str,
        points: Any,
        guilty: bool = True,
        cause: Exception | None = None,
    ) -> list[int]:
        """Return the rows of a lost batch that are to be repeated; the others are given up.

        They are repeated one by one, to find the candidate that causes it: a loss counts only for a
        candidate that was alone, and not if another batch may be `guilty`. Raises EvaluationError
        if one was lost more than `retries` times and `on_lost` is ``"raise"``; `points` are the
        candidates, None if nobody has them. `cause` is what an executor raised.
        """
        missing = [row for row in batch if not self.done[row]]
        if guilty and len(batch) == 1:
            self._losses[missing] += 1
        given_up = [row for row in missing if self._losses[row] > retries]
        if given_up and on_lost == "raise":
            row = given_up[0]
            which, times = f"candidate {row} of generation {self.generation}", self._losses[row]
            what = (
                f"died or was killed at the time limit {times} times while it evaluated {which}"
                if cause is None
                else f"lost {which} {times} times ({type(cause).__name__}: {in_words(cause)})"
            )
            failure = EvaluationError(
                f"{self._who} {what}; on_lost='nan' would rank such candidates last",
                None if points is None else np.array(to_numpy(points[row])),
                row,
                self.generation,
            )
            if cause is None:
                raise failure
            raise failure from cause
        self.done[given_up] = True  # as NaN
        return [row for row in missing if row not in given_up]

    def first_part(self) -> Vector:
        """Return the values before the first missing one."""
        return together(self.values if self.done.all() else self.values[: int(self.done.argmin())])


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
