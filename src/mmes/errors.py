"""The errors and warnings that the library adds to Python's own."""

from __future__ import annotations

from typing import Any


class MMESError(Exception):
    """Base class of the library's own errors."""


class TellError(MMESError, RuntimeError):
    """Values were told that do not fit what was asked; the optimizer's state is unchanged."""


class EvaluationError(MMESError, RuntimeError):
    """The objective raised; the original exception is the cause.

    Attributes
    ----------
    x : ndarray
        The point that was being evaluated.
    candidate : int
        Its row in the generation.
    generation : int
        The generation it belongs to; the optimizer's state is that of the last completed one.
    """

    def __init__(self, message: str, x: Any = None, candidate: int = -1, generation: int = -1):
        super().__init__(message)
        self.x = x
        self.candidate = candidate
        self.generation = generation


class MMESWarning(UserWarning):
    """Base class of the library's warnings."""


class ReducedArchiveWarning(MMESWarning):
    """The archive was made smaller than the default so that it fits into memory."""


class FailedEvaluationWarning(MMESWarning):
    """An evaluation gave NaN or failed; it ranks last. Said once a run."""


class KernelWarning(MMESWarning):
    """The native kernel could not be loaded; the slower reference is used."""
