"""The head's side: an evaluator whose replicas hold the optimizer themselves.

Only values are sent: to the head, those of a replica's rows; from it, those of all rows. With
constraints a row has several values on its way to the head, and the head sends those by which the
candidates are ranked, and what they are worth by the new multipliers. See `replica` for the
messages, `roster` for the members, `shares` for the distribution of the rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mmes.base.arrays import Vector
from mmes.base.tensors import to_numpy
from mmes.errors import LostWorkerWarning, ReplicaMismatch, ReplicaWarning, warn_user
from mmes.evaluate.protocol import Evaluator
from mmes.evaluate.remote import Task
from mmes.evaluate.workers.pickling import pickled
from mmes.replicas.engine import Engine, Terms
from mmes.replicas.head import HeadState
from mmes.replicas.roster import SAY_SECONDS, Member, Message, Roster, Work
from mmes.replicas.shares import Batch, Cutting, SharedRound, ranges, unpacked
from mmes.strategies import AskTell

_TURN_SECONDS = 0.1


class Crew(Evaluator):
    """Lets replicas evaluate the candidates, which they generate themselves.

    The task is pickled immediately. `retries`, `lost` and `timeout` as in `ProcessEvaluator`;
    `threads` are those of the kernel of a replica.
    """

    on_demand = True

    def __init__(
        self,
        engine: Engine,
        terms: Terms,
        task: Task,
        retries: int = 3,
        lost: str = "raise",
        timeout: float | None = None,
        threads: int | None = None,
    ):
        self.retried, self.words = 0, ""
        self._terms, self._task = terms, task
        self._retries, self._lost = retries, lost
        self._timeout = math.inf if timeout is None else timeout
        settings = {"evaluation_timeout": timeout, "retries": retries, "on_lost": lost}
        setup = (pickled(task), terms.each, settings | {"chunk_size": None}, threads)
        self.roster = Roster(engine, terms, setup, retries)
        # Of one evaluation, and of all else between a message and its answer; smoothed.
        self._seconds, self._overhead = math.inf, math.inf
        self._runs = 0
        self._round: SharedRound | None = None

    # The evaluator

    @property
    def polls(self) -> bool:  # type: ignore[override]
        """See `Evaluator.polls`: true, except while the replicas start, which may take long."""
        return self.roster.underway

    def memory_limit(self) -> tuple[int, str] | None:
        """See `Evaluator.memory_limit`: the smallest machine; replicas on one machine share it."""
        self.roster.assemble()
        return self.roster.memory_limit()

    def follow(self, es: AskTell) -> None:
        """Let the replicas follow an optimizer from now on; return when they hold its state."""
        self._round = None
        self._runs += 1
        self.roster.follow(HeadState(es, self._runs))
        count, rows = len(self.roster.ready) + self._terms.head_evaluates, es.population_size
        share = rows / (count * math.ceil(rows / count)) if count else 0.0
        self.words = f"{count} participants, {rows} candidates: at most {share:.0%} busy"

    def begin(self, generation: int, rows: int) -> None:
        """Send the first shares of a generation before the head asks its optimizer."""
        head = self.roster.head
        if head is None or rows < 1:
            return
        if head.outgrown:
            self.follow(head.es)
            head = self.roster.head
            assert head is not None
        self._round = current = self._opened(generation, rows)
        current.numbers = head.numbers()
        if head.generation % self._terms.check == 0:
            current.vectors = head.vectors()
        self._deal(current)

    def evaluate(self, points: Vector, generation: int, keep_going: Callable[[], bool]) -> Vector:
        """See `Evaluator.evaluate`; points that are not of the current generation are sent."""
        current, self._round = self._round, None
        if current is None:
            if not keep_going():
                return np.empty(0)
            self.roster.assemble()
            current = self._opened(generation, points.shape[0])
            current.shipped = True
        current.points = points
        self._collect(current, keep_going)
        values = current.first_part()
        # With constraints the values that are told are known later.
        if not (current.shipped or self._task.constrained) and values.size == points.shape[0]:
            self._announce(values)
        return values

    def told(self, values: Vector) -> None:
        """Remember the values of a generation that the optimizer was told."""
        head = self.roster.head
        if head is not None:
            joining = [m for m in self.roster.members if m.conversation and m.run == head.run]
            needed = min((member.generation for member in joining), default=head.generation)
            head.told(values, needed)

    def revalued(self, values: Vector) -> None:
        """Remember the other values of that generation."""
        if self.roster.head is not None:
            self.roster.head.revalued(values)

    def close(self) -> None:
        """See `Evaluator.close`: replicas end immediately."""
        self._round = None
        self.roster.close()

    # One round

    def _opened(self, generation: int, rows: int) -> SharedRound:
        current = SharedRound(generation, rows)
        parts = max(len(self.roster.ready) + self._terms.head_evaluates, 1)
        current.waiting.extend(
            Cutting(parts, self._task.vectorized, self._seconds, self._terms.chunk_size).batches(
                rows
            ),
        )
        return current

    def _collect(self, current: SharedRound, keep_going: Callable[[], bool]) -> None:
        roster = self.roster
        while not current.done.all():
            if not keep_going():
                current.waiting.clear()  # those being evaluated are finished: they may cost much
            if not current.waiting and not roster.at_work(current):
                break
            roster.hire()
            self._deal(current)
            here = self._terms.head_evaluates and bool(current.waiting)
            if here:
                self._evaluate_here(current)
            for work in roster.turn(0 if here else _TURN_SECONDS):
                self._take(work)
            self._end_hanging()
        while any(member.pinned for member in roster.members):
            for work in roster.turn(_TURN_SECONDS):
                self._take(work)

    def _deal(self, current: SharedRound) -> None:
        ready = self.roster.ready
        if len(ready) < self._terms.least:
            return
        for member in ready:
            if member.batch is None:
                batch = self._next_batch(current)
                if batch is None:
                    return
                self._give(member, current, batch)

    def _next_batch(self, current: SharedRound) -> Batch | None:
        if current.waiting:
            return current.waiting.popleft()
        if self._terms.steal == "never":
            return None
        running = self.roster.at_work(current)
        slow = [batch for batch in running if running.count(batch) == 1]
        slow = [batch for batch in slow if not current.done[list(batch)].all()]
        if not slow:
            return None
        self.retried += len(slow[0])
        return slow[0]

    def _give(self, member: Member, current: SharedRound, batch: Batch) -> None:
        head = self.roster.head
        if current.shipped or head is None:
            assert current.points is not None
            message: Message = ("points", current.generation, to_numpy(current.points[list(batch)]))
        else:
            told = head.since(member.generation)
            if told is None:
                current.waiting.appendleft(batch)
                self.roster.rebuild(member)
                return
            now, first = head.generation, member.generation
            check = current.vectors is not None
            message = ("work", head.run, now, first, told, ranges(batch), check)
            member.generation = now
        self.roster.send_work(member, message, current, batch)

    def _announce(self, values: Vector) -> None:
        """Send the values of a generation early: replicas process them together with the head."""
        head = self.roster.head
        assert head is not None
        for member in self.roster.ready:
            before = head.since(member.generation)
            if before is not None:
                told = (*before, values.tobytes())
                message = ("told", head.run, member.generation, told)
                member.generation = head.generation + 1
                self.roster.send_notice(member, message)

    def _evaluate_here(self, current: SharedRound) -> None:
        batch = current.waiting.popleft()
        assert current.points is not None
        points = current.points[list(batch)]
        outcome = self._task(points)
        outcome.raise_error(points, batch, current.generation)
        current.take(batch, outcome.values)

    def _end_hanging(self) -> None:
        now = time.monotonic()
        for member in self.roster.members.copy():
            if member.batch is not None and now > member.since + self._limit(member.batch):
                self.roster.lose(member, f"more than {self._timeout:g} s for an evaluation")
            elif member.batch is not None and not member.overdue:
                self._say_overdue(member, now - member.since)

    def _say_overdue(self, member: Member, seconds: float) -> None:
        """Warn that an answer takes unusually long: some engines notice a dead machine late."""
        usual = self._seconds * len(member.batch or ()) + self._overhead
        if seconds > SAY_SECONDS + 10 * usual:
            member.overdue = True
            warn_user(
                f"the replica on {self.roster.place(member)} has not answered for {seconds:.0f} "
                f"s (usually it takes {usual:.2g} s); the run waits for it",
                LostWorkerWarning,
            )

    def _limit(self, batch: Batch) -> float:
        """Return the seconds for a batch: one evaluation at the limit, the others as usual."""
        if self._timeout == math.inf or self._terms.each is not None:
            return math.inf  # worker processes inside the replica keep to the limit themselves
        calls = 1 if self._task.vectorized else len(batch)
        usual = min(10 * self._seconds, self._timeout)
        rest = self._terms.patience if self._overhead == math.inf else 1 + 10 * self._overhead
        return self._timeout + (calls - 1) * usual + rest

    # What comes back

    def _take(self, work: Work) -> None:
        member, current, batch, answer = work.member, work.round, work.batch, work.answer
        if answer is None:
            again = current.lose(batch, self._retries, self._lost, current.points)
            self.retried += len(again)
            current.waiting.extendleft((row,) for row in reversed(again))
            return
        if answer[0] == "behind":
            current.waiting.appendleft(batch)
            return
        _, data, seconds, repeated, numbers, vectors, failed = answer
        self.retried += repeated
        if numbers is not None and (numbers, vectors) != (current.numbers, current.vectors):
            self._take_diverged(member, current, batch, numbers != current.numbers)
            return
        if failed is not None:
            assert current.points is not None
            try:
                failed.raise_error(current.points[list(batch)], batch, current.generation)
            except BaseException as error:
                error.add_note(f"It was evaluated by the replica on {self.roster.place(member)}")
                raise
        current.take(batch, unpacked(data, len(batch)))
        self._learn(seconds / len(batch), max(time.monotonic() - member.since - seconds, 0.0))

    def _learn(self, one: float, rest: float) -> None:
        self._seconds = one if self._seconds == math.inf else 0.8 * self._seconds + 0.2 * one
        self._overhead = rest if self._overhead == math.inf else max(rest, 0.8 * self._overhead)

    def _take_diverged(
        self, member: Member, current: SharedRound, batch: Batch, numbers: bool
    ) -> None:
        text = (
            f"the {'numbers' if numbers else 'vectors'} of the replica on "
            f"{self.roster.place(member)} differ from those of the head in generation "
            f"{current.generation}: its memory or arithmetic is faulty"
        )
        if self._terms.diverged == "raise":
            raise ReplicaMismatch(
                f"{text}. Values since the last matching digests, at most {self._terms.check} "
                "generations ago, may belong to other points; diverged='rebuild' would continue"
            )
        warn_user(f"{text}; it is rebuilt from the head's state", ReplicaWarning)
        self.retried += len(batch)
        current.waiting.appendleft(batch)
        self.roster.rebuild(member)


class Engaged:
    """The base of `Local`, `Dask` and `Ray`: what is handed to `workers=`, and makes a crew."""

    terms: Terms

    @property
    def holds_devices(self) -> bool:
        """See `HoldsDevices`: processes of a replica do not see its device."""
        return self.terms.each is None

    def _engine(self) -> tuple[Engine, int | None]:
        """Return the engine, and the threads of the kernel of each replica."""
        raise NotImplementedError(f"{type(self).__name__} must define _engine")

    def evaluator(
        self,
        task: Task,
        retries: int = 3,
        lost: str = "raise",
        timeout: float | None = None,
        chunk_size: int | None = None,
    ) -> Crew:
        """Return the crew that evaluates a task."""
        engine, threads = self._engine()
        terms = replace(self.terms, chunk_size=chunk_size)
        return Crew(engine, terms, task, retries, lost, timeout, threads)
