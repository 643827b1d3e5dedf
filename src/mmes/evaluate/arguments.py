"""Further arguments of an objective, as in SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mmes.evaluate.factory import Factory


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
