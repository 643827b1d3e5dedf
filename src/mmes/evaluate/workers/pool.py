"""Evaluation in worker processes that may die, hang or be killed without harm to the run.

Why not `concurrent.futures.ProcessPoolExecutor`: the death of one of its workers ends them all, and
it does not tell which worker holds which evaluation, so that a hanging one cannot be killed. Here
each worker has its own pipe.
"""

from __future__ import annotations

import atexit
import math
import os
import select
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmes.base.arrays import Vector
from mmes.evaluate.arguments import OnBatch
from mmes.evaluate.protocol import Evaluator
from mmes.evaluate.remote import Outcome, Task
from mmes.evaluate.workers import children, lost, worker
from mmes.evaluate.workers.channel import Channel
from mmes.evaluate.workers.lost import FailedStarts, Round, tell_loss
from mmes.evaluate.workers.pickling import pickled, pickled_ticket
from mmes.evaluate.workers.shared import SHARED_BYTES, Slots

# Batches of short evaluations are made about this long, so that handing them over costs little.
_BATCH_SECONDS = 2e-3
_FAREWELL_SECONDS = 1.0
# No wait is longer, so that a signal or the end of the time is seen soon.
_LOOK_SECONDS = 0.05


@dataclass(eq=False)
class _Worker:
    process: Any
    channel: Channel
    slot: int
    ready: bool = False
    batch: range | None = None
    deadline: float = math.inf
    ticket: bytes | None = None  # the batch of data that it has, or its number
    lost: str = ""  # why it was lost, once it is


class ProcessEvaluator(Evaluator):
    """Evaluates in worker processes, which receive candidates one at a time.

    A worker that dies (killed, segmentation fault, out of memory) or runs past the time limit (it
    is killed) is replaced, and the evaluation it held is repeated elsewhere. No value depends on
    which worker computed it, so the result is the same as without failures.

    The task is pickled immediately. `timeout`, `retries`, `lost` and `chunk_size` are the options
    of `mmes.evaluate.options`; the time limit holds for one evaluation, for any number of
    candidates sent at a time. By default one is sent, or about 2 ms of work if evaluations are
    shorter than that, or an equal share of the generation for a vectorized objective.
    """

    polls = True

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
        self._on_batch = task.objective if isinstance(task.objective, OnBatch) else None
        self._ticket: bytes | None = None
        self._count = workers
        self._timeout = math.inf if timeout is None else timeout
        self._retries = retries
        self._lost = lost
        self._chunk_size = chunk_size
        self._context = children.start_context()
        self._crew: list[_Worker] = []
        self._owner = os.getpid()
        self._slots: Slots | None = None
        self._slots_refused = False
        self._failed_starts = FailedStarts()
        self._seconds = math.inf  # of one evaluation, smoothed

    def evaluate(self, points: Vector, generation: int, keep_going: Callable[[], bool]) -> Vector:
        rows = points.shape[0]
        current, size = Round(generation, rows), self._batch_size(rows)
        waiting = current.waiting
        waiting.extend(range(first, min(first + size, rows)) for first in range(0, rows, size))
        self._make_slots(waiting, points)
        self._ticket = None if self._on_batch is None else pickled_ticket(self._on_batch.ticket)
        for who in list(self._crew):
            if not who.process.is_alive():  # while it had nothing to do
                who.lost = children.ending(who.process, 0)
                self._dismiss(who)
                tell_loss(who.process.pid, who.lost, generation, ())
        while waiting or self._busy():
            if not keep_going():
                waiting.clear()  # those being evaluated are finished: they may have cost much
                if not self._busy():
                    break
            self._hand_out(waiting, points)
            for who, outcome in self._answers():
                batch = who.batch
                who.batch, who.deadline = None, math.inf
                if outcome is None:
                    self._dismiss(who)
                    tell_loss(who.process.pid, who.lost, generation, batch or ())
                    if batch is not None:
                        again = current.lose(batch, self._retries, self._lost, points)
                        self.retried += len(again)
                        waiting.extendleft(range(row, row + 1) for row in reversed(again))
                    continue
                assert batch is not None  # a worker answers what it was asked
                outcome.raise_error(points[batch.start : batch.stop], batch, generation)
                current.take(batch, outcome.values)
                self.caught = self.caught or outcome.caught
                self._learn_duration(outcome.seconds / len(batch))
        return current.first_part()

    def close(self) -> None:
        """See `Evaluator.close`: idle workers are released, busy ones killed."""
        if os.getpid() != self._owner:
            return  # in a child that an objective forked: the workers are not its own
        for who in self._crew:
            if who.ready and who.batch is None:
                who.channel.send(None)
            else:
                children.kill(who.process)
        patience = time.monotonic() + _FAREWELL_SECONDS
        while self._crew:  # one by one: it can be called again after an interruption
            children.join(self._crew[-1].process, patience - time.monotonic())
            self._dismiss(self._crew[-1])  # with what the objective left running
        if self._slots is not None:
            self._slots.close()
            self._slots = None
        atexit.unregister(self.close)

    # The crew

    def _busy(self) -> bool:
        return any(who.batch is not None for who in self._crew)

    def _hand_out(self, waiting: deque[range], points: Vector) -> None:
        while len(self._crew) < self._count and self._idle() < len(waiting):
            self._hire()
        for who in self._crew:
            if who.ready and who.batch is None and waiting:
                batch = waiting.popleft()
                who.batch = batch
                who.deadline = time.monotonic() + self._timeout
                # If the worker is dead already, `_answers` will see that.
                who.channel.send(self._message(who, points[batch.start : batch.stop]))

    def _idle(self) -> int:
        return sum(who.batch is None for who in self._crew)

    def _hire(self) -> None:
        if not self._crew:
            atexit.register(self.close)
        taken = {who.slot for who in self._crew}
        slot = next(k for k in range(self._count) if k not in taken)
        ours, theirs = self._context.Pipe()
        # Not a daemon: an objective may start processes.
        process = self._context.Process(
            target=worker.serve, args=(theirs, self._task_bytes), name=f"mmes-worker-{slot}"
        )
        who = _Worker(process, Channel(ours), slot)
        who.deadline = time.monotonic() + self._limit_of(who)
        self._crew.append(who)
        try:
            with children.script_from_a_pipe():
                process.start()
        except (EOFError, OSError):
            # The fork server has died; once it is known to be dead, a start makes a new one.
            self._count_failed_start(who, late=False)
            self._dismiss(who)
            time.sleep(_LOOK_SECONDS)
        finally:
            theirs.close()

    def _limit_of(self, who: _Worker) -> float:
        """Return the seconds for an evaluation, or for a worker's start."""
        starting = not who.ready and self._timeout < math.inf
        return max(self._timeout, lost.START_SECONDS) if starting else self._timeout

    def _dismiss(self, who: _Worker) -> None:
        children.kill(who.process)
        children.join(who.process, _FAREWELL_SECONDS)
        who.channel.close()
        self._crew.remove(who)

    def _answers(self) -> list[tuple[_Worker, Outcome | None]]:
        """Wait a moment for something to happen; return the outcomes, None for a lost worker."""
        happened = self._wait()
        found: list[tuple[_Worker, Outcome | None]] = []
        for who in list(self._crew):
            ended = who.process.sentinel in happened
            if ended or who.channel.fileno() in happened:
                who.channel.flush()
                # A worker may have answered and died since; its answer counts.
                outcome = self._heard(who)
                if outcome is not None:
                    found.append((who, outcome))
                    continue
            late = who.deadline <= time.monotonic()
            if ended or late or who.channel.ended:
                who.lost = (
                    f"it took longer than {self._limit_of(who):g} s"
                    if late
                    else children.ending(who.process, _FAREWELL_SECONDS)
                )
                if not who.ready:
                    self._count_failed_start(who, late)
                found.append((who, None))
        return found

    def _heard(self, who: _Worker) -> Outcome | None:
        outcome = None
        for message in who.channel.messages():
            if isinstance(message, Outcome):
                if not who.ready:  # the user's factory raised
                    message.raise_error(np.empty((0, 0)), (), 0)
                outcome = message
            elif message == worker.READY:
                who.ready, who.deadline = True, math.inf
                self._failed_starts.forget()
            elif message == worker.DONE_ONE:
                who.deadline = time.monotonic() + self._timeout
            else:
                raise TypeError(
                    f"the objective cannot be loaded in a worker process: {message}; define it in "
                    "a file that can be imported, or pip install cloudpickle"
                )
        return outcome

    def _wait(self) -> set[int]:
        """Return the descriptors on which something happened, after a moment at most."""
        nearest = min((who.deadline for who in self._crew), default=0.0)
        seconds = min(max(nearest - time.monotonic(), 0), _LOOK_SECONDS)
        events = select.poll()
        for who in self._crew:
            events.register(who.process.sentinel, select.POLLIN)
            unsent = select.POLLOUT if who.channel.unsent else 0
            events.register(who.channel.fileno(), select.POLLIN | unsent)
        return {descriptor for descriptor, _ in events.poll(math.ceil(seconds * 1000))}

    def _count_failed_start(self, who: _Worker, late: bool) -> None:
        children.kill(who.process)
        children.join(who.process, _FAREWELL_SECONDS)
        self._failed_starts.count(None if who.process.pid is None else who.process.exitcode, late)

    # Batches

    def _batch_size(self, rows: int) -> int:
        if self._chunk_size is not None:
            return self._chunk_size
        if self._vectorized:
            return max(math.ceil(rows / self._count), 1)
        if self._timeout < math.inf:
            return 1  # the limit is for one evaluation
        fair = max(rows // (2 * self._count), 1)
        return min(max(int(_BATCH_SECONDS / self._seconds), 1), fair) if self._seconds else fair

    def _learn_duration(self, seconds: float) -> None:
        known = self._seconds < math.inf
        self._seconds = 0.8 * self._seconds + 0.2 * seconds if known else seconds

    # How points travel

    def _make_slots(self, waiting: deque[range], points: Vector) -> None:
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

    def _message(self, who: _Worker, points: Vector) -> tuple[Any, ...]:
        beats = self._timeout < math.inf and len(points) > 1
        ticket = None if who.ticket == self._ticket else self._ticket
        who.ticket = self._ticket
        if self._slots is None:
            return points.shape, points.tobytes(), None, 0, beats, ticket
        place = self._slots.put(who.slot, points)
        return points.shape, None, self._slots.name, place, beats, ticket
