"""Evaluation in worker processes that may die, hang or be killed without harm to the run.

Why not `concurrent.futures.ProcessPoolExecutor`: the death of one of its workers ends them all, and
it does not tell which worker holds which evaluation, so that a hanging one cannot be killed. Here
each worker has its own pipe.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.errors import EvaluationError
from mmes.evaluate import worker
from mmes.evaluate.pickling import pickled
from mmes.evaluate.protocol import Evaluator, first_part
from mmes.evaluate.remote import Outcome, Task
from mmes.evaluate.shared import SHARED_BYTES, Slots

# Batches of short evaluations are made about this long, so that handing them over costs little.
_BATCH_SECONDS = 2e-3
_STARTS_THAT_MAY_FAIL = 3
_FAREWELL_SECONDS = 1.0

Batch = range
"""The candidates of a batch: consecutive rows."""


@dataclass(eq=False)
class _Worker:
    process: Any
    connection: Connection
    slot: int
    ready: bool = False
    batch: Batch | None = None
    deadline: float = math.inf


class ProcessEvaluator(Evaluator):
    """Evaluates in a crew of worker processes, handing out candidates one at a time.

    A worker that dies (killed, segmentation fault, out of memory) or runs past the time limit (it
    is killed) is replaced, and the evaluation it held is repeated elsewhere. No value depends on
    which worker computed it, so the result is that of the undisturbed run.

    Parameters
    ----------
    task : Task
        The objective and how to call it; pickled here and now.
    workers : int
        Number of processes.
    timeout : float or None
        Seconds for one evaluation (one call of a vectorized objective).
    retries : int
        How often a lost evaluation is repeated.
    lost : str
        ``"raise"`` or ``"fail"``: what becomes of an evaluation that was lost once more.
    chunk_size : int or None
        Candidates handed out at a time; by default one, or about 2 ms of work if evaluations are
        shorter than that, or an equal share of the generation for a vectorized objective.
    """

    def __init__(
        self,
        task: Task,
        workers: int,
        timeout: float | None = None,
        retries: int = 3,
        lost: str = "raise",
        chunk_size: int | None = None,
    ):
        self.retried = 0
        self._vectorized = task.vectorized
        self._task_bytes = pickled(task)
        self._count = workers
        self._timeout = math.inf if timeout is None else timeout
        self._retries = retries
        self._lost = lost
        self._chunk_size = chunk_size
        self._context = _context()
        self._crew: list[_Worker] = []
        self._slots: Slots | None = None
        self._slots_refused = False
        self._failed_starts = 0
        self._seconds = math.inf  # of one evaluation, smoothed

    def evaluate(
        self, points: NDArray[np.float64], generation: int, keep_going: Callable[[], bool]
    ) -> NDArray[np.float64]:
        """See `Evaluator.evaluate`."""
        rows = points.shape[0]
        values = np.empty(rows)
        done = np.zeros(rows, dtype=bool)
        losses = np.zeros(rows, dtype=int)
        waiting = _batches(range(rows), self._batch_size(rows))
        self._make_slots(waiting, points)
        while waiting or self._busy():
            if waiting and not keep_going():
                waiting.clear()  # those being evaluated are finished: they may have cost much
                if not self._busy():
                    break
            self._hand_out(waiting, points)
            for who, outcome in self._answers():
                batch = who.batch
                who.batch, who.deadline = None, math.inf
                if outcome is None:
                    self._dismiss(who)
                    if batch is not None:
                        losses[batch] += 1
                        waiting.extendleft(
                            reversed(self._again(batch, losses, points, values, done, generation))
                        )
                    continue
                assert batch is not None  # a worker answers what it was asked
                outcome.raise_error(points[batch.start : batch.stop], batch.start, generation)
                values[batch] = outcome.values
                done[batch] = True
                self._learn_duration(outcome.seconds / len(batch))
        return first_part(values, done)

    def close(self) -> None:
        """See `Evaluator.close`: idle workers are let go, busy ones killed."""
        crew, self._crew = self._crew, []
        for who in crew:
            if who.ready and who.batch is None:
                with contextlib.suppress(OSError):
                    who.connection.send(None)
            else:
                _kill(who.process)
        patience = time.monotonic() + _FAREWELL_SECONDS
        for who in crew:
            who.process.join(max(patience - time.monotonic(), 0))
            _kill(who.process)  # also what the objective left running
            who.process.join()
            who.connection.close()
        if self._slots is not None:
            self._slots.close()
            self._slots = None
        atexit.unregister(self.close)

    # The crew

    def _busy(self) -> bool:
        return any(who.batch is not None for who in self._crew)

    def _hand_out(self, waiting: deque[Batch], points: NDArray[np.float64]) -> None:
        while len(self._crew) < self._count and self._idle() < len(waiting):
            self._hire()
        for who in self._crew:
            if who.ready and who.batch is None and waiting:
                batch = waiting.popleft()
                who.batch = batch
                who.deadline = time.monotonic() + self._timeout
                # If the worker is dead already, `_answers` will see that.
                with contextlib.suppress(OSError):
                    who.connection.send(self._message(who, points[batch.start : batch.stop]))

    def _idle(self) -> int:
        return sum(who.batch is None for who in self._crew)

    def _hire(self) -> None:
        if not self._crew:
            atexit.register(self.close)
        taken = {who.slot for who in self._crew}
        slot = next(k for k in range(self._count) if k not in taken)
        ours, theirs = self._context.Pipe()
        # Not a daemon: an objective may start processes of its own.
        process = self._context.Process(
            target=worker.serve, args=(theirs, self._task_bytes), name=f"mmes-worker-{slot}"
        )
        with _script_from_a_pipe():
            process.start()
        theirs.close()
        self._crew.append(_Worker(process, ours, slot))

    def _dismiss(self, who: _Worker) -> None:
        _kill(who.process)
        who.process.join()
        who.connection.close()
        self._crew.remove(who)

    def _answers(self) -> list[tuple[_Worker, Outcome | None]]:
        """Wait until something happens; return the outcomes, None for a worker that was lost."""
        nearest = min(who.deadline for who in self._crew)
        seconds = None if nearest == math.inf else max(nearest - time.monotonic(), 0)
        by_signal: dict[Any, _Worker] = {who.connection: who for who in self._crew}
        by_signal |= {who.process.sentinel: who for who in self._crew}
        happened = {id(by_signal[one]): by_signal[one] for one in wait(list(by_signal), seconds)}
        found: list[tuple[_Worker, Outcome | None]] = []
        for who in happened.values():
            try:
                # A worker may have answered and died since; its answer counts.
                message = who.connection.recv() if who.connection.poll() else None
            except (EOFError, OSError):
                message = None
            if message is None:
                self._count_failed_start(who)
                found.append((who, None))
            elif isinstance(message, Outcome):
                if not who.ready:  # what a factory of the user's raised
                    message.raise_error(np.empty((0, 0)), 0, 0)
                found.append((who, message))
            elif message == worker.READY:
                who.ready, self._failed_starts = True, 0
            else:
                raise TypeError(f"the objective cannot be loaded in a worker process: {message}")
        now = time.monotonic()
        late = [who for who in self._crew if who.deadline <= now and id(who) not in happened]
        return found + [(who, None) for who in late]

    def _count_failed_start(self, who: _Worker) -> None:
        if who.ready:
            return
        self._failed_starts += 1
        if self._failed_starts >= _STARTS_THAT_MAY_FAIL:
            who.process.join()
            raise EvaluationError(
                f"{self._failed_starts} worker processes in a row ended before they were ready "
                "(exit code "
                f"{who.process.exitcode}). If minimize is called at the top of a script, put it "
                "under "
                "if __name__ == '__main__':, because a worker imports the script"
            )

    # Batches

    def _batch_size(self, rows: int) -> int:
        if self._chunk_size is not None:
            return self._chunk_size
        if self._vectorized:
            return math.ceil(rows / self._count)
        if self._timeout < math.inf:
            return 1  # the limit is for one evaluation
        fair = max(rows // (2 * self._count), 1)
        return min(max(int(_BATCH_SECONDS / self._seconds), 1), fair) if self._seconds else fair

    def _learn_duration(self, seconds: float) -> None:
        known = self._seconds < math.inf
        self._seconds = 0.8 * self._seconds + 0.2 * seconds if known else seconds

    def _again(
        self,
        batch: Batch,
        losses: NDArray[np.int_],
        points: NDArray[np.float64],
        values: NDArray[np.float64],
        done: NDArray[np.bool_],
        generation: int,
    ) -> list[Batch]:
        """Return what of a lost batch is to be evaluated again: one by one, to find the culprit."""
        given_up = [row for row in batch if losses[row] > self._retries]
        if given_up and self._lost == "raise":
            row = given_up[0]
            raise EvaluationError(
                f"the worker process died or was killed at the time limit {losses[row]} times "
                "while it evaluated "
                f"candidate {row} of generation {generation}; lost='fail' would rank such "
                "candidates last",
                np.array(points[row]),
                row,
                generation,
            )
        values[given_up], done[given_up] = np.nan, True
        kept = [row for row in batch if losses[row] <= self._retries]
        self.retried += len(kept)
        return [range(row, row + 1) for row in kept]

    # How points travel

    def _make_slots(self, waiting: deque[Batch], points: NDArray[np.float64]) -> None:
        rows, n = max(map(len, waiting), default=0), math.prod(points.shape[1:])
        if rows * n * 8 < SHARED_BYTES or self._slots_refused:
            return
        if self._slots is not None:
            if self._slots.rows >= rows:
                return
            self._slots.close()
            self._slots = None
        try:
            self._slots = Slots(self._count, rows, n)
        except OSError:  # none there, or too little of it: pipes do it too, more slowly
            self._slots_refused = True

    def _message(self, who: _Worker, points: NDArray[np.float64]) -> tuple[Any, ...]:
        if self._slots is None:
            return points.shape, points.tobytes(), None, 0
        return points.shape, None, self._slots.name, self._slots.put(who.slot, points)


def _batches(rows: range, size: int) -> deque[Batch]:
    return deque(range(first, min(first + size, len(rows))) for first in rows[::size])


def _context() -> Any:
    """Return how processes start: never by fork, which would copy locks that other threads hold."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mmes.evaluate.worker"])
    return context


@contextlib.contextmanager
def _script_from_a_pipe() -> Iterator[None]:
    """Keep multiprocessing from importing a script that is no file: ``python - < script``."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if main is None or file is None or os.path.exists(file):
        yield
        return
    main.__file__ = None
    try:
        yield
    finally:
        main.__file__ = file


def _kill(process: Any) -> None:
    """End a worker and what it has started."""
    with contextlib.suppress(OSError, AttributeError):  # gone already; or no process groups here
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(OSError, ValueError):
        process.kill()
