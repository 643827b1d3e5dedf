"""Further arguments of an objective, as in SciPy."""

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
        Arguments after the point.
    """

    fun: Callable[..., Any]
    args: tuple[Any, ...]

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
