"""An objective of a point and a batch of data, as one of a point alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mmes.evaluate.factory import made


class OnBatch:
    """An objective that is called with the batch of the present generation.

    It travels to workers as any objective does. Which batch is next travels with the candidates:
    the batch itself, or its number where every process can tell what a number stands for.

    Parameters
    ----------
    fun : callable
        Takes a point, or points, and a batch; may be a `Factory` of such a function.
    numbered : callable, optional
        Returns the batch of a generation, given its number.

    Attributes
    ----------
    ticket : object
        What was taken last: the number of the generation, or the batch.
    """

    def __init__(self, fun: Callable[..., Any], numbered: Callable[[int], Any] | None = None):
        self.fun, self.numbered = fun, numbered
        self.ticket: Any = None
        self._held: tuple[Any, Any] = (None, None)

    def take(self, ticket: Any) -> None:
        """Go on with this batch, or that of this number."""
        self.ticket = ticket

    @property
    def batch(self) -> Any:
        """The batch of the present generation."""
        if self.numbered is None:
            return self.ticket
        ticket, batch = self._held
        if ticket != self.ticket:
            ticket, batch = self._held = self.ticket, self.numbered(self.ticket)
        return batch

    def __call__(self, x: Any) -> Any:
        """Return the objective's value, or values, on the present batch."""
        call: Any = made(self.fun)
        return call(x, self.batch)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_held": (None, None)}


def with_batches(fun: Any, batches: Any) -> Any:
    """Return the objective of one argument, where batches are given the one of the present batch.

    Parameters
    ----------
    fun : callable or None
        The objective.
    batches : callable, iterable or None
        As in `mmes.minimize`.
    """
    if batches is None or not callable(fun):
        return fun
    return OnBatch(fun, batches if callable(batches) else None)


def take_number(objective: Any, generation: int) -> None:
    """Let an objective on batches go on with that of a generation; others have none."""
    if isinstance(objective, OnBatch):
        objective.take(generation)
