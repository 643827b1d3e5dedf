"""Objectives that are created in each process that uses them, and never sent."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from mmes.errors import EvaluationError
from mmes.evaluate.constrained import ConstrainedObjective

Objective = Callable[[Any], Any]

# An executor unpickles the factory with every batch: these are the ones that a process used last.
# Two, since what they made may be large, and a run seldom has more.
_KEPT = 2
_known: OrderedDict[str, Factory] = OrderedDict()
_making = threading.RLock()


class Factory:
    """An objective that is created once in each process that evaluates.

    Only the function and its arguments are pickled for worker processes and other machines. What
    the function creates (a model, an open file, a simulator) stays in its process.

    Parameters
    ----------
    make : callable
        Returns the objective; called in each process before its first evaluation.
    *args, **kwargs
        Arguments of `make`.

    Examples
    --------
    >>> import mmes, numpy as np, functools, operator
    >>> f = mmes.Factory(functools.partial, np.linalg.norm, ord=2)
    >>> float(f(np.array([3.0, 4.0])))
    5.0
    """

    def __init__(self, make: Callable[..., Objective], /, *args: Any, **kwargs: Any):
        if not callable(make):
            raise TypeError(f"make must be callable, not {make!r} (a {type(make).__name__})")
        self.make, self.args, self.kwargs = make, args, kwargs
        self._key = os.urandom(16).hex()
        self._made: Objective | None = None

    def __call__(self, x: Any) -> Any:
        """Return the value or values of the objective."""
        return self.objective()(x)

    def objective(self) -> Objective:
        """Return the objective of this process, which is created at the first call.

        Raises
        ------
        EvaluationError
            If `make` raised, or returned something that cannot be called.
        """
        if self._made is None:
            with _making:
                if self._made is None:
                    self._made = self._make()
        return self._made

    def _make(self) -> Objective:
        where = f"on {os.uname().nodename}, process {os.getpid()}"
        name = getattr(self.make, "__name__", repr(self.make))
        try:
            made = self.make(*self.args, **self.kwargs)
        except Exception as error:
            raise EvaluationError(
                f"the factory {name} raised {type(error).__name__} {where}: {error}"
            ) from error
        if not callable(made):
            raise EvaluationError(
                f"the factory {name} must return a callable objective, but returned {made!r} "
                f"(a {type(made).__name__}) {where}"
            )
        return made

    def __repr__(self) -> str:
        return f"Factory({getattr(self.make, '__name__', self.make)!s})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self._key, self.make, self.args, self.kwargs)


def made(objective: Objective) -> Objective:
    """Return the objective to call: the one that a factory creates, or the objective itself."""
    if isinstance(objective, ConstrainedObjective):
        made(objective.fun)  # which keeps it
    return objective.objective() if isinstance(objective, Factory) else objective


def _rebuilt(key: str, make: Callable[..., Objective], args: Any, kwargs: Any) -> Factory:
    """Return the factory with that key in this process, or a new one."""
    with _making:
        found = _known.pop(key, None)
        if found is None:
            found = Factory(make, *args, **kwargs)
            found._key = key
        _known[key] = found
        while len(_known) > _KEPT:
            _known.popitem(last=False)
    return found
