"""Evaluation in this process: one point at a time, or a whole generation in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mmes.base.arrays import Vector
from mmes.errors import named
from mmes.evaluate.protocol import Evaluator, Exceptions, located, mark
from mmes.evaluate.rows import parts
from mmes.evaluate.values import answer_of, as_value, as_values, joined, together


class _HereEvaluator(Evaluator):
    """Calls an objective in this process; after an exception of `catch` its candidates failed."""

    def __init__(self, objective: Callable[[Any], Any], catch: Exceptions = ()):
        self._objective, self._catch = objective, catch

    def _note(self, error: BaseException) -> None:
        self.caught = self.caught or named(error)


class SerialEvaluator(_HereEvaluator):
    """Calls the objective for one row at a time."""

    def evaluate(self, points: Vector, generation: int, keep_going: Callable[[], bool]) -> Vector:
        values: list[Any] = []
        for _, some in parts(points):
            for row in range(len(some)):
                if not keep_going():
                    return together(values)
                values.append(self._value(some[row], len(values), generation))
            del some  # its memory is used again for the next part
        return together(values)

    def _value(self, x: Any, candidate: int, generation: int) -> float:
        try:
            answer = answer_of(self._objective, x)
        except self._catch as error:
            self._note(error)
            answer = np.nan
        except Exception as error:
            raise located(error, x, candidate, generation) from error
        try:
            return as_value(answer)
        except (TypeError, ValueError) as error:
            mark(error, candidate, generation)
            raise


class VectorizedEvaluator(_HereEvaluator):
    """Calls the objective once per generation with all rows, or in parts if all are too many."""

    def evaluate(self, points: Vector, generation: int, keep_going: Callable[[], bool]) -> Vector:
        found = []
        for first, some in parts(points):
            if len(some) == 0 or not keep_going():
                break
            found.append(self._values(some, first, generation))
            del some  # its memory is used again for the next part
        return joined(found)

    def _values(self, points: Any, first: int, generation: int) -> Vector:
        count = points.shape[0]
        try:
            answer = answer_of(self._objective, points)
        except self._catch as error:
            self._note(error)
            return np.full(count, np.nan)
        except Exception as error:
            raise located(error, points, first, generation) from error
        try:
            return as_values(answer, count)
        except (TypeError, ValueError) as error:
            mark(error, None, generation)
            raise
