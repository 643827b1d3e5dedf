"""Replicas as actors of a Ray cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from typing import Any

from mmes.replicas.crew import Engaged
from mmes.replicas.engine import Engine, Terms
from mmes.replicas.replica import Replica

# A restarted actor has lost its state without a word; calls side by side would mix generations.
_REFUSED = ("max_restarts", "max_task_retries", "max_concurrency")


class Ray(Engaged):
    """Replicas as actors of a running Ray cluster, or of one started for the run.

    >>> mmes.minimize(f, x0, 0.5, workers=mmes.replicas.Ray(16))              # doctest: +SKIP

    Parameters
    ----------
    count : int, optional
        Number of actors; by default one for each node with free CPUs.
    cpus, gpus : float
        CPUs and GPUs per actor.
    resources : mapping, optional
        Further Ray resources per actor.
    actor_options : mapping, optional
        Further Ray options of the actors, such as ``scheduling_strategy``.
    address : str, optional
        As for ``ray.init``. A running Ray is used, and never shut down.
    **terms
        See `mmes.replicas.engine.TERMS`.
    """

    def __init__(
        self,
        count: int | None = None,
        *,
        cpus: float = 1,
        gpus: float = 0,
        resources: Mapping[str, float] | None = None,
        actor_options: Mapping[str, Any] | None = None,
        address: str | None = None,
        **terms: Any,
    ):
        self.terms = Terms.checked("Ray", count=count, **terms)
        options = dict(actor_options or {})
        for name in _REFUSED:
            if name in options:
                raise ValueError(
                    f"actor_options must not contain {name!r}: losses are handled here, and an "
                    "actor that Ray restarts has lost its state"
                )
        self.options: dict[str, Any] = {
            "num_cpus": cpus,
            "num_gpus": gpus,
            "resources": dict(resources or {}),
            "scheduling_strategy": "SPREAD",
            "enable_task_events": False,  # a record of every call would travel, too
        } | options
        self.address = address
        _imported()

    def _engine(self) -> tuple[Engine, None]:
        return RayEngine(self.terms.count, self.options, self.address), None


class RayEngine(Engine):
    """See `Engine`; `count` is the number of requested actors, for messages."""

    def __init__(self, count: int | None, options: dict[str, Any], address: str | None):
        self._ray = _imported()
        self._count, self._options, self._address = count, options, address
        self._started = False
        self._setup: Any = None
        # Whatever goes wrong in `Replica` is an answer: an error of Ray's means a lost replica.
        self.lost: tuple[type[BaseException], ...] = (self._ray.exceptions.RayError,)

    def capacity(self) -> int:
        self._connect()
        cpus = self._options["num_cpus"] or 1
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        able = sum(node.get("CPU", 0) >= cpus for node in nodes)
        return min(able, int(self._ray.available_resources().get("CPU", 0) // cpus))

    def start(self, setup: tuple[Any, ...]) -> Any:
        self._connect()
        if self._setup is None:
            # Once for all: the objective may be large.
            self._setup = self._ray.put(setup[0])
        actor = self._ray.remote(Replica).options(max_restarts=0, **self._options)
        return actor.remote(self._setup, *setup[1:])

    def call(self, handle: Any, message: tuple[Any, ...]) -> Any:
        return handle.handle.remote(message)

    def wait(self, futures: Collection[Any], timeout: float | None) -> list[Any]:
        futures = list(futures)
        done, rest = self._ray.wait(futures, timeout=timeout)
        if done and rest:
            done, _ = self._ray.wait(futures, num_returns=len(futures), timeout=0)
        return done

    def result(self, future: Any) -> Any:
        return self._ray.get(future)

    def kill(self, handle: Any) -> None:
        with contextlib.suppress(Exception):  # Ray itself may be gone
            self._ray.kill(handle)

    def describe(self, handle: Any) -> str:
        return f"Ray actor {handle._actor_id.hex()[:8]}"

    def shortage(self) -> str:
        asked = {"CPU": self._options["num_cpus"], "GPU": self._options["num_gpus"]}
        asked |= self._options["resources"]
        asked = {name: amount for name, amount in asked.items() if amount}
        there = {name: self._ray.cluster_resources().get(name, 0) for name in asked}
        free = {name: self._ray.available_resources().get(name, 0) for name in asked}
        return (
            f"{self._count or 'One per node'} Ray actors with {asked} each were requested; the "
            f"cluster has {there}, of which {free} are free"
        )

    def close(self) -> None:
        """See `Engine.close`: a Ray that was started here is shut down."""
        self._setup = None
        if self._started:
            self._ray.shutdown()
            self._started = False

    def _connect(self) -> None:
        if self._ray.is_initialized():
            return
        try:
            self._ray.init(address=self._address, logging_level="warning")
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ConnectionError(
                f"Ray cannot be reached at address {self._address!r} ({error}). With "
                "address=None, Ray also uses RAY_ADDRESS, or the address of the last cluster in "
                "its temporary folder"
            ) from error
        self._started = True


def _imported() -> Any:
    try:
        import ray  # type: ignore[import-not-found]
        import ray.exceptions  # type: ignore[import-not-found]
    except ImportError:
        raise ImportError('replicas on Ray need ray: pip install "mmes[ray]"') from None
    return ray
