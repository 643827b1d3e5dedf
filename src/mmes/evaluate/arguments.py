"""What an objective is called with besides a point: further arguments, and a batch of data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mmes.evaluate.factory import Factory, made


class WithArguments:
    """An objective that is called with further arguments; unlike a closure it can be pickled."""

    def __init__(self, fun: Callable[..., Any], args: tuple[Any, ...]):
        self.fun, self.args = fun, args

    def __call__(self, x: Any, *batch: Any) -> Any:
        """Return the value or values of the objective; a batch precedes the further arguments."""
        return self.fun(x, *batch, *self.args)


def with_arguments(fun: Any, args: Any) -> Any:
    """Return the objective of one argument; as in SciPy, a single one need not be in a tuple."""
    args = args if isinstance(args, tuple) else (args,)
    if not args or not callable(fun):
        return fun
    if isinstance(fun, Factory):
        raise TypeError("args cannot be combined with a Factory: pass them to the Factory")
    return WithArguments(fun, args)


class OnBatch:
    """An objective that is called with the batch of the current generation.

    It is sent to workers like any objective. The batch is sent with the candidates, or only its
    number if every worker can compute the batch from the number: `numbered` returns the batch of a
    generation. `ticket` is the number or the batch. `fun` may be a `Factory`.
    """

    def __init__(self, fun: Callable[..., Any], numbered: Callable[[int], Any] | None = None):
        self.fun, self.numbered = fun, numbered
        self.ticket: Any = None
        self._held: tuple[Any, Any] = (None, None)

    def take(self, ticket: Any) -> None:
        """Use this batch, or the batch of this number."""
        self.ticket = ticket

    @property
    def batch(self) -> Any:
        """The batch of the current generation."""
        if self.numbered is None:
            return self.ticket
        ticket, batch = self._held
        if ticket != self.ticket:
            ticket, batch = self._held = self.ticket, self.numbered(self.ticket)
        return batch

    def __call__(self, x: Any) -> Any:
        """Return the value or values of the objective on the current batch."""
        call: Any = made(self.fun)
        return call(x, self.batch)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_held": (None, None)}


def with_batches(fun: Any, batches: Any, workers: Any) -> Any:
    """Return the objective of one argument; with batches, the one of the current batch."""
    if batches is None or not callable(fun):
        return fun
    return OnBatch(fun, batches if callable(batches) and workers is not None else None)


def take_number(objective: Any, generation: int) -> None:
    """Give an objective on batches the batch of a generation; others ignore it."""
    if isinstance(objective, OnBatch):
        objective.take(generation)
