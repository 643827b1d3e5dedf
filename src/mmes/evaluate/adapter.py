"""A custom evaluator with the missing methods added and its values checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mmes.base.arrays import Vector
from mmes.base.tensors import to_numpy
from mmes.evaluate.protocol import Evaluator, mark
from mmes.evaluate.rows import parts
from mmes.evaluate.values import RETURNED, as_rows, as_values, joined


def is_evaluator(thing: Any) -> bool:
    """Return whether a thing is an evaluator: an object with `evaluate` and `close`."""
    methods = (getattr(thing, name, None) for name in ("evaluate", "close"))
    return not isinstance(thing, type) and all(map(callable, methods))


class EvaluatorAdapter(Evaluator):
    """Adapts a custom evaluator to the interface that the loop calls.

    It has `evaluate` and `close`; all else of `Evaluator` is optional. `rows` says whether it
    returns a row per point: the value, then the constraints.
    """

    def __init__(self, inner: Any, rows: bool = False):
        self._inner, self._rows = inner, rows
        for name in ("memory_limit", "follow", "begin", "told", "revalued", "close"):
            setattr(self, name, getattr(inner, name, None) or getattr(self, name))

    @property
    def retried(self) -> int:  # type: ignore[override]
        return getattr(self._inner, "retried", 0)

    @property
    def polls(self) -> bool:  # type: ignore[override]
        return bool(getattr(self._inner, "polls", False))

    @property
    def words(self) -> str:  # type: ignore[override]
        return str(getattr(self._inner, "words", ""))

    def evaluate(self, points: Vector, generation: int, keep_going: Callable[[], bool]) -> Vector:
        if getattr(self._inner, "on_demand", False):
            return self._values(points, generation, keep_going)
        found = []
        for _, some in parts(points):
            found.append(self._values(some, generation, keep_going))
            if len(found[-1]) < len(some):
                break
            del some  # its memory is used again for the next part
        return joined(found)

    def _values(self, points: Any, generation: int, keep_going: Callable[[], bool]) -> Vector:
        answer = to_numpy(self._inner.evaluate(points, generation, keep_going))
        rows, count = points.shape[0], len(answer) if self._rows else np.size(answer)
        try:
            if count > rows or (count < rows and keep_going()):
                raise ValueError(
                    f"the evaluator must return {rows} values for {rows} points, not {count}"
                )
            if self._rows:
                return as_rows(answer)
            return as_values(answer, count, RETURNED.format("the evaluator"))
        except (TypeError, ValueError) as error:
            mark(error, None, generation)
            raise
