"""Evaluation in a worker: points are evaluated there, and the outcome is sent back."""

from __future__ import annotations

import contextlib
import pickle
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmes.base.arrays import Vector
from mmes.errors import EvaluationError, in_words, named
from mmes.evaluate.constrained import ConstrainedObjective
from mmes.evaluate.factory import made
from mmes.evaluate.protocol import Exceptions, located, mark
from mmes.evaluate.values import Measured, answer_of, as_value, as_values


@dataclass(frozen=True)
class Task:
    """How to evaluate points; sent to the worker once, or with each batch."""

    # Takes one point and returns its value; if `vectorized`, takes k points and returns k
    # values.
    objective: Callable[[Any], Any]
    catch: Exceptions = ()  # Exceptions after which a candidate counts as failed.
    vectorized: bool = False  # How `objective` is called.

    @property
    def constrained(self) -> bool:
        """Whether a point has a row of values: that of the objective, then its constraints."""
        return isinstance(self.objective, ConstrainedObjective)

    def prepared(self) -> Outcome | None:
        """Create the objective if it is a factory; return the error, or None."""
        try:
            made(self.objective)
        except EvaluationError as error:
            return Outcome([], 0.0, sendable(error), True, traceback.format_exc())
        return None

    def __call__(self, points: Vector, after_each: Callable[[], None] | None = None) -> Outcome:
        """Evaluate a batch of points; whatever the objective raises is part of the outcome.

        `after_each`, if given, is called after each evaluation.
        """
        failure = self.prepared()
        if failure is not None:
            return failure
        began = time.perf_counter()
        if isinstance(points, np.ndarray):
            points.flags.writeable = False
        values: list[Any] = []
        caught: list[str] = []
        answering = False  # whether the objective has returned, so that the value is to blame
        try:
            if self.vectorized:
                answer = self._call(points, [np.nan] * len(points), caught)
                answering = True
                # Rows of values have passed this door; they travel as they are.
                rows = type(answer) is list and all(type(item) is Measured for item in answer)
                values = answer if rows else as_values(answer, len(points)).tolist()
            else:
                for x in points:
                    answering = False
                    answer = self._call(x, np.nan, caught)
                    answering = True
                    values.append(as_value(answer))
                    if after_each is not None:
                        after_each()
        except BaseException as error:
            seconds = time.perf_counter() - began
            trace = traceback.format_exc()
            return Outcome(values, seconds, sendable(error), answering, trace, self.vectorized)
        return Outcome(values, time.perf_counter() - began, caught="".join(caught))

    def _call(self, x: Vector, failed: Any, caught: list[str]) -> Any:
        try:
            return answer_of(self.objective, x)
        except self.catch as error:
            if not caught:
                caught.append(named(error))
            return failed


@dataclass(frozen=True)
class Outcome:
    """The values of a batch, or those before the point that ended it and the error."""

    values: list[Any]  # Values, in the order of the points.
    seconds: float  # Duration of the evaluations.
    # The error of the objective or of its value: pickled, if possible; its type; its message.
    error: tuple[bytes | None, str, str] | None = None
    refused: bool = False  # Whether the error is about the returned value.
    trace: str = ""  # The worker's traceback.
    vectorized: bool = False  # Whether one call should return all values.
    caught: str = ""  # The first exception that was caught, in words.

    def raise_error(self, points: Vector, candidates: Sequence[int], generation: int) -> None:
        """Raise the error, if there is one, as if the objective had been called in this process.

        `points` are those of the batch, `candidates` their rows in the generation.
        """
        if self.error is None:
            return
        error = rebuilt(*self.error)
        with contextlib.suppress(Exception):  # its class may do anything
            error.add_note(f"The traceback in the worker:\n{self.trace.rstrip()}")
        row = len(self.values)
        if self.refused:
            if isinstance(error, TypeError | ValueError):  # else it is a factory's
                mark(error, None if self.vectorized else candidates[row], generation)
            raise error
        x = points if row >= len(points) else points[row]
        raise located(error, x, candidates[row], generation) from error


def sendable(error: BaseException) -> tuple[bytes | None, str, str]:
    """Return an error in the form that is sent: pickled, if possible; its type; its message."""
    try:
        data = pickle.dumps(error)
    except Exception:  # an exception class may do anything when pickled
        data = None
    return data, type(error).__name__, in_words(error)


def rebuilt(data: bytes | None, kind: str, words: str) -> BaseException:
    """Return the worker's error; if it cannot be unpickled here, one with the same message."""
    if data is not None:
        with contextlib.suppress(Exception):
            error = pickle.loads(data)  # what a worker of ours wrote, through its engine
            if isinstance(error, BaseException):
                return error
    return RuntimeError(f"{kind}: {words}")
