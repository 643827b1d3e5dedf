"""The interface of an engine, which sends messages to replicas, and the common settings."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass
from typing import Any, Protocol

from mmes.base.options import Option, validated

TERMS = (
    Option(
        "count",
        int,
        "Number of replicas, not counting the head.",
        default_text="all that are available",
        low=1,
    ),
    Option("least", int, "Minimum number of ready replicas; with fewer, wait.", default=1, low=1),
    Option(
        "patience",
        float,
        "Seconds to wait while fewer than `least` replicas are ready, and for each answer of a "
        "replica that is getting ready.",
        default=60.0,
        low=0,
    ),
    Option(
        "each",
        int,
        "Worker processes inside each replica; -1 for one per core, None evaluates in the replica.",
        default_text="None",
        low=-1,
    ),
    Option(
        "check",
        int,
        "Generations between two comparisons of the vectors by digest; scalars are compared in "
        "every generation.",
        default=10,
        low=1,
    ),
    Option(
        "diverged",
        str,
        "What to do if the state of a replica differs from that of the head: 'raise' an error, or "
        "'rebuild' the replica with a warning.",
        default="raise",
        choices=("raise", "rebuild"),
    ),
    Option(
        "steal",
        str,
        "'idle' lets idle replicas repeat evaluations that others have not finished, and takes the "
        "first answer.",
        default="never",
        choices=("never", "idle"),
    ),
    Option("head_evaluates", bool, "Whether the head evaluates candidates, too.", default=False),
)


@dataclass(frozen=True)
class Terms:
    """The settings of replicas; see `TERMS` for the meaning of each."""

    count: int | None
    least: int
    patience: float
    each: int | None
    check: int
    diverged: str
    steal: str
    head_evaluates: bool
    chunk_size: int | None = None  # the option of the run: rows that are evaluated together

    @classmethod
    def checked(cls, owner: str, **given: Any) -> Terms:
        """Return the terms; TypeError or ValueError for an unknown name or a wrong value."""
        terms = cls(**validated(TERMS, given, owner))
        if terms.each == 0:
            raise ValueError("each must be an integer >= 1, -1 for one per core, or None, not 0")
        if terms.count is not None and terms.least > terms.count:
            raise ValueError(
                f"least must be at most count, but least={terms.least} and count={terms.count}"
            )
        return terms


class Engine(Protocol):
    """Starts replicas, sends messages to them, and reports when one is lost.

    Messages and answers are plain tuples. A replica answers calls in order. The futures are those
    of `concurrent.futures`, unless an engine has its own and defines `wait` and `result`, too.
    """

    lost: tuple[type[BaseException], ...]
    """The exceptions of `call` and `result` that mean a dead replica."""

    def capacity(self) -> int:
        """Return the default number of replicas: one per machine."""
        ...

    def start(self, setup: tuple[Any, ...]) -> Any:
        """Start a replica with the arguments of `Replica` and return its handle, without waiting.

        None means that there are no resources for another one now.
        """
        ...

    def call(self, handle: Any, message: tuple[Any, ...]) -> Any:
        """Send a message and return a future of its answer, without waiting."""
        ...

    def wait(self, futures: Collection[Any], timeout: float | None) -> Collection[Any]:
        """Return the futures that are done, after waiting at most `timeout` seconds for one."""
        return wait(futures, timeout, FIRST_COMPLETED).done

    def result(self, future: Any) -> Any:
        """Return the answer of a future that is done, or raise."""
        return future.result()

    def kill(self, handle: Any) -> None:
        """Kill a replica."""
        ...

    def describe(self, handle: Any) -> str:
        """Return the location of a replica, if known, for messages."""
        ...

    def shortage(self) -> str:
        """Return what was requested and what is available, for the error message."""
        ...

    def close(self) -> None:
        """Release the resources of the engine, if it holds any; replicas are killed before."""
