"""The errors and warnings of the library."""

from __future__ import annotations

import contextlib
import sys
import warnings
from typing import Any


class MMESError(Exception):
    """Base class of the library's errors."""


class TellError(MMESError, RuntimeError):
    """The values told do not match the candidates asked; the optimizer's state is unchanged."""


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


class ReplicaMismatch(EvaluationError):
    """A replica would follow, or has followed, a different path from the head."""


class CheckpointError(MMESError):
    """A checkpoint cannot be used."""


class CheckpointCorrupt(CheckpointError):
    """A checkpoint is damaged, truncated, or not a checkpoint; nothing was loaded."""


class CheckpointTooNew(CheckpointError):
    """A checkpoint was written by a newer version of the library."""


class CheckpointExists(CheckpointError, FileExistsError):
    """A new run would overwrite an existing checkpoint."""


class Terminated(SystemExit):
    """The process received SIGTERM; the exit status is 143, as shells expect.

    Attributes
    ----------
    result : Result
        What was found before.
    """

    def __init__(self) -> None:
        super().__init__(143)
        self.result: Any = None


class MMESWarning(UserWarning):
    """Base class of the library's warnings."""


class ReducedArchiveWarning(MMESWarning):
    """The archive was made smaller than the default so that it fits into memory."""


class RestartWarning(MMESWarning):
    """A restart was not possible; the run ended with what was found."""


class NoLimitWarning(MMESWarning):
    """A run with a noisy objective has no limit and may not end by itself."""


class FailedEvaluationWarning(MMESWarning):
    """An evaluation returned NaN or failed; it ranks last. Issued once per run."""


class ReplicaWarning(MMESWarning):
    """A replica differs from the head in what may matter, was rebuilt, or was rejected."""


class LostWorkerWarning(MMESWarning):
    """A worker process, a replica or an executor was lost; what it evaluated is repeated."""


class CheckpointWarning(MMESWarning):
    """A checkpoint could not be written, or an older one was used."""


class KernelWarning(MMESWarning):
    """The native kernel could not be loaded; the slower reference is used."""


def warn_user(message: str, category: type[MMESWarning]) -> None:
    """Issue a warning that points to the user's code, not into the library."""
    level = 2
    with contextlib.suppress(ValueError):
        while sys._getframe(level - 1).f_globals.get("__name__", "").split(".")[0] == "mmes":
            level += 1
    warnings.warn(message, category, stacklevel=level)


def in_number(count: int, noun: str) -> str:
    """Return a count with its noun: 1 candidate, 2 candidates."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def in_words(error: BaseException) -> str:
    """Return the message of an error, even if converting it to a string raises."""
    try:
        return str(error)
    except Exception as second:
        return f"<its message cannot be shown: {type(second).__name__}>"


def named(error: BaseException) -> str:
    """Return the name of an error and the beginning of its message."""
    words = " ".join(in_words(error).split())
    return f"{type(error).__name__}: {words[:200]}" if words else type(error).__name__


def note(first: BaseException, later: BaseException) -> None:
    """Add an error that occurred while another one was handled as a note to the first."""
    first.add_note(f"mmes: another error followed, {type(later).__name__}: {in_words(later)}")
