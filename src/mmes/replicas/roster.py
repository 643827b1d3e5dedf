"""The members: replicas are started, brought to the head's state, lost and replaced."""

from __future__ import annotations

import atexit
import math
import time
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mmes.base.memory import USABLE_SHARE
from mmes.errors import (
    EvaluationError,
    LostWorkerWarning,
    ReplicaMismatch,
    ReplicaWarning,
    in_number,
    warn_user,
)
from mmes.replicas import digests
from mmes.replicas.engine import Engine, Terms
from mmes.replicas.head import HeadState
from mmes.replicas.shares import Batch, SharedRound

_BLOCK_BYTES = 64 * 2**20
# Before looking for a place again, if there are enough replicas.
LOOK_SECONDS = 30.0
# Before another start after one that failed; doubled each time.
_FIRST_PAUSE = 0.05
_TURN_SECONDS = 0.1
_FAREWELL_SECONDS = 1.0
# Before it is said that the run waits.
SAY_SECONDS = 5.0

Message = tuple[Any, ...]
Conversation = Generator[Message, Message, None]


@dataclass(eq=False)
class Member:
    """A replica as the head sees it."""

    handle: Any  # The engine's name for it.
    # What must be exchanged before it can work: yields messages, receives answers.
    conversation: Conversation | None = None
    greeted: bool = False  # Whether it has answered at all.
    # place, host, available: its process, its machine, and the bytes that were free there.
    place: str = ""
    host: str = ""
    available: int = 0
    # run, generation: the run it follows, and its generation after it has read all messages.
    run: int = -1
    generation: int = -1
    pinned: bool = False  # Whether it is reading the head's state, which must not change meanwhile.
    # batch, since, overdue: the rows it is evaluating, since when, and whether a warning said
    # that this takes long.
    batch: Batch | None = None
    since: float = math.inf
    overdue: bool = False
    joined: bool = False  # Whether it has ever been ready.
    # asked, asked_at: the last message of the conversation, and its time.
    asked: str = ""
    asked_at: float = math.inf


@dataclass(frozen=True, eq=False)
class Work:
    """Rows of a round that a replica evaluates, and its answer: None if it was lost."""

    member: Member
    round: SharedRound
    batch: Batch
    answer: Message | None = None


@dataclass(frozen=True, eq=False)
class _Asked:
    """A message that has not been answered; `work` if it was one."""

    member: Member
    work: Work | None = None
    notice: bool = False


class Roster:
    """The replicas, and the conversations with them.

    `setup` are the arguments of `Replica`; `retries` is the minimum number of replicas in a row
    that may end before they were ready.
    """

    def __init__(self, engine: Engine, terms: Terms, setup: tuple[Any, ...], retries: int):
        self.engine = engine
        self.head: HeadState | None = None
        self.rebuilt = 0  # replicas started in place of lost ones
        self.members: list[Member] = []
        self._terms, self._setup, self._retries = terms, setup, retries
        self._asked: dict[Any, _Asked] = {}
        self._finished: list[Work] = []
        self._count = terms.count
        self._hired = 0
        self.underway = False  # whether the crew has gathered and follows a run
        self._failed_starts = 0
        self._last_failure = ""
        self._next_look = -math.inf
        self._short_since: float | None = None
        self._said_short = False
        self._last_turn = time.monotonic()
        self._told: set[str] = set()

    @property
    def ready(self) -> list[Member]:
        """The replicas that can work."""
        return [member for member in self.members if member.conversation is None]

    def place(self, member: Member) -> str:
        """Return where a replica is, for messages."""
        return member.place or self.engine.describe(member.handle)

    def follow(self, head: HeadState) -> None:
        """Bring all replicas to another run."""
        self.head = head
        for member in self.ready:
            self._converse(member, self._joining_run(member))
        self.assemble()
        self.underway = True

    def assemble(self) -> None:
        """Start replicas, and wait until all are ready, or enough of them after a while."""
        if self._count is None:
            self._count = max(self.engine.capacity(), self._terms.least)
        if not self.members:
            atexit.register(self.close)
        self.hire()
        patience = time.monotonic() + self._terms.patience
        while len(self.ready) < len(self.members) or not self.members:
            talking = any(m.greeted and m.conversation is not None for m in self.members)
            late = time.monotonic() > patience
            if late and not talking and len(self.ready) >= self._terms.least:
                break
            self.hire()
            self.turn(_TURN_SECONDS)

    def memory_limit(self) -> tuple[int, str] | None:
        """Return the usable bytes of the machine with the least, and its name."""
        hosts = [member.host for member in self.ready]
        shares = [(m.available // hosts.count(m.host), self.place(m)) for m in self.ready]
        if not shares:
            return None
        least, place = min(shares)
        return int(least * USABLE_SHARE), place

    def close(self) -> None:
        """Kill all replicas."""
        members, self.members = self.members, []
        self._asked.clear()
        self._finished.clear()
        if self._terms.each is not None:
            self._bid_farewell(members)
        for member in members:
            self.engine.kill(member.handle)
        self.engine.close()
        self.underway = False
        atexit.unregister(self.close)

    # Coming and going

    def hire(self) -> None:
        """Start replicas until there are as many as requested, if there are resources."""
        count = self._count or 0
        while len(self.members) < count:
            now = time.monotonic()
            if now < self._next_look and len(self.ready) >= self._terms.least:
                return
            handle = self.engine.start(self._setup)
            if handle is None:
                self._next_look = now + LOOK_SECONDS
                return
            self.rebuilt += self._hired >= count
            self._hired += 1
            member = Member(handle)
            self.members.append(member)
            self._converse(member, self._joining(member))

    def lose(self, member: Member, why: str) -> None:
        """Remove a replica; `turn` returns what it was evaluating without an answer.

        Raises EvaluationError if none is ready, and many in a row ended before they were ready.
        """
        if member not in self.members:
            return
        self._last_failure = f" The last one lost: {self.place(member)} ({why})."
        rows = len(member.batch or ())
        held = f" while it evaluated {in_number(rows, 'candidate')}" if rows else ""
        self._dismiss(member)
        if not member.joined:
            self._failed_starts += 1
        warn_user(f"the replica on {self.place(member)} was lost{held}: {why}", LostWorkerWarning)
        if member.joined:
            return
        if self.ready:
            pause = min(_FIRST_PAUSE * 2**self._failed_starts, LOOK_SECONDS)
            self._next_look = time.monotonic() + pause
        elif self._failed_starts > max(self._retries, self._count or 0):
            raise EvaluationError(
                f"{self._failed_starts} replicas in a row ended before they were ready."
                f"{self._last_failure}"
            )

    def _dismiss(self, member: Member) -> None:
        self.members.remove(member)
        self.engine.kill(member.handle)
        held = [asked for asked in self._asked.values() if asked.member is member]
        self._asked = {f: asked for f, asked in self._asked.items() if asked.member is not member}
        self._finished += [asked.work for asked in held if asked.work is not None]

    def _refuse(self, member: Member, error: Exception) -> None:
        """Raise before the run; during it, continue without the new replica."""
        if not self.underway:
            raise error
        warn_user(f"a replica was rejected: {error}", ReplicaWarning)
        self._dismiss(member)
        self._count = (self._count or 1) - 1

    def _watch_strength(self) -> None:
        """Raise if there have been too few replicas for too long."""
        talking = any(m.greeted and m.conversation is not None for m in self.members)
        now, least = time.monotonic(), self._terms.least
        if talking or len(self.ready) >= least:
            self._short_since, self._said_short = None, False
        elif self._short_since is None:
            self._short_since = now
        elif self.underway and not self._said_short and now - self._short_since > SAY_SECONDS:
            self._said_short = True
            patience = f"the run waits up to {self._terms.patience:g} s"
            warn_user(f"{self._shortage()}; {patience}", LostWorkerWarning)
        elif now - self._short_since > self._terms.patience:
            raise EvaluationError(
                f"{self._shortage()}; waited {self._terms.patience:g} s. "
                f"{self.engine.shortage()}.{self._last_failure}"
            )

    def _shortage(self) -> str:
        least = self._terms.least
        return f"{len(self.ready)} replicas are ready and at least {least} are needed"

    def _part_from_silent(self) -> None:
        """Remove replicas that stopped answering before they were ready."""
        now, patience = time.monotonic(), self._terms.patience
        for member in self.members.copy():
            if member.greeted and member.conversation and now - member.asked_at > patience:
                self.lose(member, f"no answer to {member.asked!r} for {patience:g} s")

    def _bid_farewell(self, members: list[Member]) -> None:
        """Let idle replicas end their worker processes."""
        futures = []
        for member in members:
            if member.conversation is None and member.batch is None:
                try:
                    futures.append(self.engine.call(member.handle, ("close",)))
                except self.engine.lost:
                    continue
        patience = time.monotonic() + _FAREWELL_SECONDS
        while futures and (left := patience - time.monotonic()) > 0:
            done = self.engine.wait(futures, left)
            futures = [future for future in futures if future not in done]

    # Messages and answers

    def send_work(
        self, member: Member, message: Message, current: SharedRound, batch: Batch
    ) -> None:
        """Let a replica evaluate rows."""
        member.batch, member.since, member.overdue = batch, time.monotonic(), False
        self._call(member, message, _Asked(member, Work(member, current, batch)))

    def send_notice(self, member: Member, message: Message) -> None:
        """Send a message whose answer does not matter, unless it is an error."""
        self._call(member, message, _Asked(member, notice=True))

    def at_work(self, current: SharedRound) -> list[Batch]:
        """Return the batches of a round that are being evaluated or were answered."""
        works = [asked.work for asked in self._asked.values() if asked.work is not None]
        return [work.batch for work in works + self._finished if work.round is current]

    def turn(self, seconds: float) -> list[Work]:
        """Wait for answers up to a time limit, process them, and return the finished work."""
        # The head does not read answers while it evaluates: the replicas were not silent.
        away = time.monotonic() - self._last_turn
        for member in self.members:
            member.asked_at += away
        if not self._asked and not self._finished:
            time.sleep(seconds)
        elif self._asked:
            for future in self.engine.wait(list(self._asked), 0 if self._finished else seconds):
                self._receive(future)
        self._part_from_silent()
        self._watch_strength()
        self._last_turn = time.monotonic()
        finished, self._finished = self._finished, []
        return finished

    def _call(self, member: Member, message: Message, asked: _Asked) -> None:
        member.asked, member.asked_at = message[0], time.monotonic()
        try:
            self._asked[self.engine.call(member.handle, message)] = asked
        except self.engine.lost as error:
            if asked.work is not None:
                self._finished.append(asked.work)
            self.lose(member, f"{type(error).__name__}: {error}")

    def _receive(self, future: Any) -> None:
        asked = self._asked.get(future)
        if asked is None:  # gone with its replica, a moment ago
            return
        member = asked.member
        try:
            answer = self.engine.result(future)
        except self.engine.lost as error:
            self.lose(member, f"{type(error).__name__}: {error}")
            return
        if answer[0] == "failed" and (asked.work is not None or asked.notice):
            self.lose(member, f"{answer[1]}: {answer[2]}")
            return
        del self._asked[future]
        if asked.work is not None:
            member.batch = None
            self._finished.append(replace(asked.work, answer=answer))
        elif not asked.notice:
            self._go_on(member, answer)
        if answer[0] == "behind":
            # This should not happen; send the state again.
            member.generation = -1

    # What is said before the work

    def rebuild(self, member: Member) -> None:
        """Let a replica copy the head's state."""
        self._converse(member, self._adopting(member))

    def _converse(self, member: Member, conversation: Conversation) -> None:
        member.conversation = conversation
        self._call(member, next(conversation), _Asked(member))

    def _go_on(self, member: Member, answer: Message) -> None:
        """Pass the answer to the conversation, and send its next message."""
        member.greeted = True
        assert member.conversation is not None
        try:
            if answer[0] == "failed":
                raise self._start_error(member, answer)
            message = member.conversation.send(answer)
        except StopIteration:
            member.conversation, member.joined, self._failed_starts = None, True, 0
        except (EvaluationError, MemoryError, TypeError) as error:
            self._refuse(member, error)
        else:
            self._call(member, message, _Asked(member))

    def _start_error(self, member: Member, answer: Message) -> Exception:
        _, kind, text, trace = answer
        made = {"MemoryError": MemoryError, "TypeError": TypeError}.get(kind, EvaluationError)
        error = made(f"the replica on {self.place(member)} cannot start: {kind}: {text}")
        error.add_note(f"The traceback there:\n{trace.rstrip()}")
        return error

    def _joining(self, member: Member) -> Conversation:
        _, found = yield ("hello",)
        member.host, member.available = found["host"], found["available bytes"]
        member.place = f"{member.host}, process {found['process']}"
        self._compare(member, digests.machine(), found)
        yield ("prepare",)
        yield from self._joining_run(member)

    def _joining_run(self, member: Member) -> Conversation:
        """Bring a replica to the run of the head, which may change meanwhile."""
        while (head := self.head) is not None and member.run != head.run:
            _, found = yield ("probe", head.kind, head.probe)
            self._compare(member, head.fingerprint, found)
            yield from self._adopting(member)

    def _adopting(self, member: Member) -> Conversation:
        """Send the head's state in blocks, each after the previous one has arrived."""
        assert self.head is not None
        state = self.head.snapshot(copy=self.underway)
        member.run, member.generation, member.pinned = state.run, state.generation, not state.copied
        shapes = {name: (array.dtype.str, array.shape) for name, array in state.arrays.items()}
        yield ("state", state.run, state.entries, shapes)
        for name, array in state.arrays.items():
            flat = np.ascontiguousarray(array).reshape(-1)
            size = max(_BLOCK_BYTES // array.itemsize, 1)
            for first in range(0, flat.size, size):
                yield ("block", state.run, name, first, flat[first : first + size])
        yield ("adopt", state.run, state.last)
        member.pinned = False

    def _compare(self, member: Member, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
        """Raise if required entries differ; warn once about other differences."""
        place, here = self.place(member), digests.machine()["host"]
        differing = {
            name: f"{name} is {ours[name]} on {here} and {theirs[name]} on {place}"
            for name in (*digests.MUST_AGREE, *digests.MAY_DIFFER)
            if name in theirs and ours[name] != theirs[name]
        }
        text = "; ".join(differing.values())
        if any(name in digests.MUST_AGREE for name in differing):
            raise ReplicaMismatch(f"a replica would not follow the same path: {text}")
        if differing and text not in self._told:
            self._told.add(text)
            warn_user(f"{text}; a test search must give the same bits", ReplicaWarning)
