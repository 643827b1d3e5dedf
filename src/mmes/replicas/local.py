"""Replicas in processes of this machine, over pipes: no engine is needed.

Meant for tests and trials. To use the cores of one machine, `workers=8` is better, because it
stores the state only once.
"""

from __future__ import annotations

import contextlib
import math
import select
import socket
from collections import deque
from collections.abc import Collection
from concurrent.futures import Future
from multiprocessing.connection import Connection
from typing import Any

from mmes.base.cores import usable_cores
from mmes.evaluate.workers import children, worker
from mmes.evaluate.workers.channel import Channel, Line
from mmes.replicas.crew import Engaged
from mmes.replicas.engine import Engine, Terms
from mmes.replicas.replica import Replica

_FAREWELL_SECONDS = 1.0


class Local(Engaged):
    """Replicas in processes of this machine.

    >>> mmes.minimize(f, x0, 0.5, workers=mmes.replicas.Local(2))       # doctest: +SKIP

    Parameters
    ----------
    count : int, optional
        Number of replicas besides this process; by default one per core.
    **terms
        See `mmes.replicas.engine.TERMS`.
    """

    def __init__(self, count: int | None = None, **terms: Any):
        self.terms = Terms.checked("Local", count=count, **terms)

    def _engine(self) -> tuple[Engine, int]:
        count = self.terms.count or usable_cores()
        return LocalEngine(count), max(usable_cores() // (count + 1), 1)


class _Process:
    """A replica's process, the channel to it, and the calls that it has not answered."""

    def __init__(self, setup: tuple[Any, ...]):
        context = children.start_context()
        ours, theirs = context.Pipe()
        self.channel = Channel(ours)
        self.process = context.Process(target=_serve, args=(theirs, setup), name="mmes-replica")
        self.waiting: deque[_Call] = deque()  # in the order of the answers
        try:
            with children.script_from_a_pipe():
                self.process.start()
        finally:
            theirs.close()


class _Call(Future[Any]):
    """The future of an answer; `wait` itself fulfils it."""

    def __init__(self, to: _Process):
        super().__init__()
        self.to = to


class LocalEngine(Engine):
    """See `Engine`."""

    lost: tuple[type[BaseException], ...] = (EOFError, OSError)

    def __init__(self, count: int):
        self._count = count

    def capacity(self) -> int:
        return self._count

    def start(self, setup: tuple[Any, ...]) -> _Process | None:
        try:
            return _Process(setup)
        except (EOFError, OSError):  # the fork server has died; the next start makes a new one
            return None

    def call(self, handle: _Process, message: tuple[Any, ...]) -> _Call:
        call = _Call(handle)
        handle.waiting.append(call)
        handle.channel.send(message)
        return call

    def wait(self, futures: Collection[_Call], timeout: float | None) -> list[_Call]:
        done = [call for call in futures if call.done()]
        if done:
            return done
        asked = list({id(call.to): call.to for call in futures}.values())
        events = select.poll()
        for to in asked:
            events.register(to.process.sentinel, select.POLLIN)
            unsent = select.POLLOUT if to.channel.unsent else 0
            events.register(to.channel.fileno(), select.POLLIN | unsent)
        happened = dict(events.poll(None if timeout is None else math.ceil(timeout * 1000)))
        for to in asked:
            ended = to.process.sentinel in happened
            if ended or to.channel.fileno() in happened:
                to.channel.flush()
                # It may have answered and died since; its answers count.
                for answer in to.channel.messages():
                    to.waiting.popleft().set_result(answer)
                if ended or to.channel.ended:
                    _lose(to)
        return [call for call in futures if call.done()]

    def kill(self, handle: _Process) -> None:
        children.kill(handle.process)
        children.join(handle.process, _FAREWELL_SECONDS)
        _lose(handle)
        handle.channel.close()

    def describe(self, handle: _Process) -> str:
        return f"{socket.gethostname()}, process {handle.process.pid}"

    def shortage(self) -> str:
        return f"{self._count} processes were requested, on {usable_cores()} cores"


def _lose(to: _Process) -> None:
    while to.waiting:
        to.waiting.popleft().set_exception(EOFError(f"process {to.process.pid} has ended"))


def _serve(connection: Connection, setup: tuple[Any, ...]) -> None:
    """Answer messages until the pipe closes."""
    worker.stand_alone()
    line = Line(connection)
    replica = Replica(*setup)
    with contextlib.suppress(EOFError, OSError):
        while True:
            line.send(replica.handle(line.receive()))
