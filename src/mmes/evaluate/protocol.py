"""The interface of an evaluator: points in, values out, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from mmes.base.arrays import Vector
from mmes.base.tensors import to_numpy
from mmes.errors import EvaluationError, in_words

Exceptions = tuple[type[BaseException], ...]


class Evaluator(Protocol):
    """Turns the candidates of a generation into values.

    A custom evaluator only needs `evaluate` and `close`.
    """

    retried: int = 0
    """Evaluations repeated so far because a worker was lost; they are not counted as evaluations.
    """

    polls: bool = False
    """Whether `evaluate` calls `keep_going` many times per second, also while it waits. Ctrl-C and
    SIGTERM are then raised by `keep_going` alone, so that they find no lock held and no process
    half started; otherwise they are raised wherever the evaluator is at that moment.
    """

    on_demand: bool = False
    """Whether `evaluate` takes `RowsOnDemand` in place of an array; else it is called in parts."""

    caught: str = ""
    """The first exception that was caught, in words; empty if there was none, or nobody knows."""

    words: str = ""
    """What is worth saying about who evaluates, for the first line of a display."""

    def memory_limit(self) -> tuple[int, str] | None:
        """Return the bytes that an optimizer may use on other machines, and the limiting machine.

        Called before the first generation, if other machines hold the optimizer too.
        """
        return None

    def follow(self, es: Any) -> None:
        """Receive a new optimizer: at the start, after a restart, after resuming."""

    def begin(self, generation: int, rows: int) -> None:
        """Prepare for a generation, whose first `rows` candidates will come to `evaluate`.

        Called before the optimizer is asked, so that work elsewhere can start early.
        """

    def told(self, values: Vector) -> None:
        """Receive the values of a complete generation, after the optimizer was told.

        With constraints these are the values by which candidates were ranked.
        """

    def revalued(self, values: Vector) -> None:
        """Receive other values of that generation, which the optimizer has taken in since.

        Called after `told`, with constraints only: their multipliers adapt.
        """

    def evaluate(self, points: Vector, generation: int, keep_going: Callable[[], bool]) -> Vector:
        """Return the values of the points, in their order; NaN for a failed one.

        Parameters
        ----------
        points : ndarray, shape (k, n)
            The candidates, read-only.
        generation : int
            Number of the generation, for messages.
        keep_going : callable
            Called between evaluations; once it returns False, the evaluator may return only the
            first values.

        Raises
        ------
        EvaluationError
            If the objective raised; the original exception is the cause.
        TypeError, ValueError
            If it returned something that is not a value; see `mark`.
        """
        ...

    def close(self) -> None:
        """Release processes and memory, if any are held."""


@runtime_checkable
class MakesEvaluator(Protocol):
    """Replicas, which create the evaluator of a run themselves, as `workers=`."""

    def evaluator(self, task: Any, retries: int, lost: str, timeout: float | None) -> Any:
        """Return the evaluator."""
        ...


@runtime_checkable
class HoldsDevices(Protocol):
    """Replicas that may hold the optimizer on a device and evaluate there."""

    @property
    def holds_devices(self) -> bool:
        """Whether these do."""
        ...


@runtime_checkable
class SharesResult(Protocol):
    """Workers whose processes all make the same call, like the ranks of an MPI job."""

    def share(self, run: Callable[[], Any], objective: Callable[[bool, bool], Any]) -> Any:
        """Run in one process for all, and return the result in each.

        `objective` returns the objective of the others; it takes whether that is vectorized, and
        whether it returns constraints, too: a process that resumes does not know.
        """
        ...


@runtime_checkable
class Submits(Protocol):
    """An executor with the interface of `concurrent.futures`."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """Start a call and return its future."""
        ...


def located(error: BaseException, x: Any, candidate: int, generation: int) -> EvaluationError:
    """Return the error that says where an objective raised; raise it from the original."""
    hint = ""
    if np.ndim(x) == 1 and _looks_for_rows(error):
        hint = "; if it takes many points at once, one per row, give vectorized=True"
    elif isinstance(error, ValueError) and "read-only" in in_words(error):
        hint = "; if it changes x, let it change a copy: x = x.copy()"
    elif generation > 0:  # it worked before: more likely the point than a mistake in the code
        hint = f"; to rank such points last and go on, give catch={type(error).__name__}"
    return EvaluationError(
        f"the objective raised {type(error).__name__} at candidate {candidate} "
        f"of generation {generation}: {in_words(error)}{hint}",
        np.array(to_numpy(x)),
        candidate,
        generation,
    )


def _looks_for_rows(error: BaseException) -> bool:
    """Return whether a vectorized function raises this error when it is called with one point."""
    many = isinstance(error, IndexError) and "too many indices" in in_words(error)
    return many or isinstance(error, np.exceptions.AxisError)


def mark(error: BaseException, candidate: int | None, generation: int) -> None:
    """Add the location to an error about a returned value; see `location_of`.

    `candidate` is None if one call returned the values of several.
    """
    error.candidate, error.generation = candidate, generation  # type: ignore[attr-defined]


def location_of(error: BaseException) -> str:
    """Return the location of a refused value as a text; empty for any other error."""
    if not isinstance(error, TypeError | ValueError) or not hasattr(error, "generation"):
        return ""
    candidate = getattr(error, "candidate", None)
    who = "the candidates" if candidate is None else f"candidate {candidate}"
    return f"{who} of generation {error.generation}"  # type: ignore[attr-defined]
