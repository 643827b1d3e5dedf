"""Validation: a loss on held-out data decides which mean of the search is kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mmes.base.arrays import Arrays
from mmes.base.saved_numbers import checked_scalar, checked_value
from mmes.base.tensors import to_numpy
from mmes.evaluate.values import as_value


class Validation:
    """Evaluates the validation loss of the mean, and keeps the best mean.

    `fun` returns the loss of a point on held-out data. The run should end after `patience`
    validations in a row without improvement, one after `every` generations.
    """

    def __init__(self, fun: Any, every: int, patience: int | None):
        if not callable(fun):
            raise TypeError(f"validation must be callable, not {fun!r} (a {type(fun).__name__})")
        self._fun: Callable[[Any], Any] = fun
        self._every, self._patience = every, patience
        self.best, self.last = math.inf, math.nan  # the best loss and the last one
        self.at_end: float | None = None  # the loss at the end of a run; deleted if it continues
        self.x: Any = None  # the mean of the best loss
        self.count = 0  # validations so far
        self.generation = 0  # of the last one
        self.since = 0  # validations since the best

    @classmethod
    def checked(cls, fun: Any, limits: dict[str, Any], constraints: Any) -> Validation:
        """Return the validation of a run.

        Raises TypeError or ValueError if it is not callable, or cannot be combined with other
        arguments.
        """
        if constraints is not None:
            raise ValueError("constraints cannot be combined with validation")
        return cls(fun, limits["validation_every"], limits["patience"])

    def due(self, generation: int) -> bool:
        """Return whether the mean after `generation` generations must be validated."""
        done = self.count > 0 and generation == self.generation
        return not done and generation % self._every == 0

    def value(self, mean: Any, generation: int) -> float:
        """Return the loss of a mean; an error gets a note that it came from here."""
        try:
            found = as_value(self._fun(mean))
        except Exception as error:
            error.add_note(f"mmes: this was validation=, after generation {generation}")
            raise
        return math.inf if math.isnan(found) else found

    def take(self, value: float, generation: int, copy: Callable[[], Any]) -> None:
        """Record the loss after `generation` generations; `copy` returns a copy of the mean."""
        self.last, self.generation = value, generation
        self.count += 1
        self.since += 1
        if value < self.best or self.x is None:
            self.best, self.x, self.since = value, copy(), 0

    @property
    def exhausted(self) -> bool:
        """Whether the patience is exhausted."""
        return self._patience is not None and self.since >= self._patience

    @property
    def lowest(self) -> float:
        """The best loss, including that at the end."""
        return self.best if self.at_end is None else min(self.best, self.at_end)

    # Saving and restoring

    def entries(self) -> dict[str, Any]:
        """Return what a checkpoint writes as text."""
        return {
            "count": self.count,
            "generation": self.generation,
            "since": self.since,
            "best": self.best,
            "last": self.last,
            "at_end": self.at_end,
        }

    def arrays(self) -> Arrays:
        """Return the arrays of the state."""
        return {} if self.x is None else {"x": to_numpy(self.x)}

    def restore(self, entries: dict[str, Any], arrays: Arrays, es: Any) -> None:
        """Take over what `entries` and `arrays` returned; `es` is the optimizer."""
        self.count, self.generation, self.since = (
            checked_scalar(name, entries[name], 0) for name in ("count", "generation", "since")
        )
        self.best = checked_value("best", entries["best"])
        last, end = entries["last"], entries["at_end"]
        self.last = checked_value("last", last) if self.count else math.nan
        self.at_end = None if end is None else checked_value("at_end", end)
        if (self.count == 0) != ("x" not in arrays):
            raise ValueError("validation has a point without a value, or a value without a point")
        if "x" in arrays:
            x = np.array(arrays["x"], np.float64)
            if x.size != es.dimension or not np.isfinite(x).all():
                raise ValueError("the point of validation must be finite, one entry per variable")
            self.x = es.kernel.from_host(x)
