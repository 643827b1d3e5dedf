"""Replicas as actors on the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future
from typing import Any

from mmes.replicas.crew import Engaged
from mmes.replicas.engine import Engine, Terms
from mmes.replicas.replica import Replica

_START_SECONDS = 10.0
_EVALUATIONS = ("work", "points")


class Dask(Engaged):
    """Replicas as actors on the workers of a Dask cluster.

    >>> mmes.minimize(f, x0, 0.5, workers=mmes.replicas.Dask(client))         # doctest: +SKIP

    Parameters
    ----------
    client : distributed.Client
        The cluster; it stays open.
    count : int, optional
        Number of actors; by default one per worker.
    **terms
        See `mmes.replicas.engine.TERMS`.
    """

    def __init__(self, client: Any, count: int | None = None, **terms: Any):
        try:
            from distributed import Client  # type: ignore[import-not-found]
        except ImportError:
            raise ImportError(
                'replicas on Dask need distributed: pip install "mmes[dask]"'
            ) from None
        if not isinstance(client, Client):
            raise TypeError(f"client must be a distributed.Client, not {client!r}")
        self.client = client
        self.terms = Terms.checked("Dask", count=count, **terms)

    def _engine(self) -> tuple[Engine, None]:
        return DaskEngine(self.client, self.terms.count), None


class _Actor:
    """A replica: the actor, its worker, and one call at a time."""

    def __init__(self, address: str, future: Any):
        self.address, self.future = address, future
        self.actor: Any = None  # once it is made
        self.lock = asyncio.Lock()
        self.evaluating = 0


class DaskEngine(Engine):
    """See `Engine`; `count` is the number of requested actors, for messages.

    The client stays open.
    """

    lost: tuple[type[BaseException], ...] = (ConnectionError,)

    def __init__(self, client: Any, count: int | None):
        self._client, self._count = client, count
        self._actors: list[_Actor] = []

    def capacity(self) -> int:
        return len(self._client.nthreads())

    def start(self, setup: tuple[Any, ...]) -> _Actor | None:
        """See `Engine.start`: on the worker with the fewest."""
        load = dict.fromkeys(self._client.nthreads(), 0)
        for actor in self._actors:
            if actor.address in load:
                load[actor.address] += 1
        if not load:
            return None
        address = min(load, key=lambda one: load[one])
        future = self._client.submit(
            Replica, *setup, workers=[address], actor=True, pure=False, allow_other_workers=False
        )
        self._actors.append(_Actor(address, future))
        return self._actors[-1]

    def call(self, handle: _Actor, message: tuple[Any, ...]) -> Future[Any]:
        call: Future[Any] = Future()
        handle.evaluating += message[0] in _EVALUATIONS
        self._client.loop.add_callback(self._carry, handle, message, call)
        return call

    async def _carry(self, handle: _Actor, message: tuple[Any, ...], call: Future[Any]) -> None:
        answer = error = None
        try:
            async with handle.lock:  # Dask itself does not keep the order of two calls
                if handle.actor is None:
                    # On a worker that has gone meanwhile it would never be made.
                    handle.actor = await asyncio.to_thread(handle.future.result, _START_SECONDS)
                answer = await handle.actor.handle(message)
        # Whatever goes wrong in `Replica` is an answer: this is a lost actor.
        except (Exception, asyncio.CancelledError) as raised:
            error = ConnectionError(f"{type(raised).__name__}: {raised}")
        handle.evaluating -= message[0] in _EVALUATIONS
        if error is None:
            call.set_result(answer)
        else:
            call.set_exception(error)

    def kill(self, handle: _Actor) -> None:
        """See `Engine.kill`: the worker is restarted, because a thread cannot be killed."""
        self._actors.remove(handle)
        handle.future.release()
        if handle.evaluating and handle.address in self._client.nthreads():
            threading.Thread(target=self._restart, args=(handle.address,), daemon=True).start()

    def _restart(self, address: str) -> None:
        with contextlib.suppress(Exception):  # it has no nanny, or the cluster is gone
            self._client.restart_workers([address], raise_for_error=False)

    def describe(self, handle: _Actor) -> str:
        return f"Dask worker {handle.address}"

    def shortage(self) -> str:
        return (
            f"{self._count or 'One per worker'} Dask actors were requested; the cluster has "
            f"{self.capacity()} workers"
        )
