"""Evaluation in this process: one point after the other, or a whole generation in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.evaluate.protocol import Evaluator, located, mark
from mmes.evaluate.remote import Exceptions
from mmes.evaluate.values import answer_of, as_value, as_values, together


class SerialEvaluator(Evaluator):
    """Calls the objective on one row after the other.

    Parameters
    ----------
    objective : callable
        Takes one point, returns its value.
    catch : tuple of exception types
        Exceptions that make a failed candidate (NaN, ranked last) instead of ending the run.
    """

    def __init__(self, objective: Callable[[Any], Any], catch: Exceptions = ()):
        self._objective = objective
        self._catch = catch

    def evaluate(
        self, points: NDArray[np.float64], generation: int, keep_going: Callable[[], bool]
    ) -> NDArray[np.float64]:
        """See `Evaluator.evaluate`."""
        objective, catch, values = self._objective, self._catch, []
        for x in points:
            if not keep_going():
                break
            try:
                answer = answer_of(objective, x)
            except catch:
                answer = np.nan
            except Exception as error:
                raise located(error, x, len(values), generation) from error
            try:
                values.append(as_value(answer))
            except (TypeError, ValueError) as error:
                mark(error, len(values), generation)
                raise
        return together(values)

    def close(self) -> None:
        """See `Evaluator.close`: nothing is held."""


class VectorizedEvaluator(Evaluator):
    """Calls the objective once per generation, on all its rows.

    Parameters
    ----------
    objective : callable
        Takes a (k, n) array, returns k values.
    catch : tuple of exception types
        Exceptions that make all candidates of the call failed ones instead of ending the run.
    """

    def __init__(self, objective: Callable[[Any], Any], catch: Exceptions = ()):
        self._objective = objective
        self._catch = catch

    def evaluate(
        self, points: NDArray[np.float64], generation: int, keep_going: Callable[[], bool]
    ) -> NDArray[np.float64]:
        """See `Evaluator.evaluate`."""
        count = points.shape[0]
        if count == 0 or not keep_going():
            return np.empty(0)
        try:
            answer = answer_of(self._objective, points)
        except self._catch:
            return np.full(count, np.nan)
        except Exception as error:
            raise located(error, points, 0, generation) from error
        try:
            return as_values(answer, count)
        except (TypeError, ValueError) as error:
            mark(error, None, generation)
            raise

    def close(self) -> None:
        """See `Evaluator.close`: nothing is held."""
