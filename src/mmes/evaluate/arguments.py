"""Further arguments of an objective, in SciPy's manner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mmes.evaluate.factory import Factory


@dataclass(frozen=True)
class WithArguments:
    """An objective that is called with further arguments; unlike a closure it can be pickled.

    Attributes
    ----------
    fun : callable
        The objective.
    args : tuple
        What it is given after the point.
    """

    fun: Callable[..., Any]
    args: tuple[Any, ...]

    def __call__(self, x: Any, *batch: Any) -> Any:
        """Return the objective's value, or values; a batch comes before the further arguments."""
        return self.fun(x, *batch, *self.args)


def with_arguments(fun: Any, args: Any) -> Any:
    """Return the objective of one argument; as in SciPy, a single one need not be in a tuple."""
    args = args if isinstance(args, tuple) else (args,)
    if not args or not callable(fun):
        return fun
    if isinstance(fun, Factory):
        raise TypeError("args cannot be combined with a Factory: give them to the Factory itself")
    return WithArguments(fun, args)
