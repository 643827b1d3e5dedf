"""What an evaluator must do: points in, values out, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mmes.errors import EvaluationError


class Evaluator(Protocol):
    """Turns the candidates of a generation into values."""

    retried: int
    """Evaluations repeated so far because a worker was lost; they are not counted as evaluations.
    """

    def evaluate(
        self, points: NDArray[np.float64], generation: int, keep_going: Callable[[], bool]
    ) -> NDArray[np.float64]:
        """Return the values of the points, in their order; NaN for a failed one.

        Parameters
        ----------
        points : ndarray, shape (k, n)
            The candidates, read-only.
        generation : int
            Number of the generation, for messages.
        keep_going : callable
            Asked between evaluations; once it says False, the evaluator may return the values of a
            first part only.

        Raises
        ------
        EvaluationError
            If the objective raised; the original exception is the cause.
        TypeError, ValueError
            If it returned something that is not a value.
        """
        ...

    def close(self) -> None:
        """Give back what is held: processes, memory."""
        ...


def located(error: BaseException, x: Any, candidate: int, generation: int) -> EvaluationError:
    """Return the error that tells where an objective raised; raise it from the original."""
    return EvaluationError(
        f"the objective raised {type(error).__name__} at candidate {candidate} "
        f"of generation {generation}: {error}",
        np.array(x),
        candidate,
        generation,
    )


def first_part(values: NDArray[np.float64], done: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the values before the first that is missing."""
    return values if done.all() else values[: int(done.argmin())]
