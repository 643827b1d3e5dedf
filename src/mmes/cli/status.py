"""Exit codes, and mistakes that are reported in one sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

from mmes.base.options import suggestion
from mmes.base.reasons import StopReason
from mmes.errors import CheckpointError, CheckpointExists
from mmes.run.result import Result

T = TypeVar("T")

OK = 0
NOT_REACHED = 1
USER_MISTAKE = 2
OBJECTIVE_FAILED = 3
CHECKPOINT_UNUSABLE = 4
INTERRUPTED = 130
TERMINATED = 143


def status_of(result: Result, target: float | None) -> int:
    """Return the exit code of a run that no error ended."""
    if result.reason is StopReason.ALL_FAILED:
        return OBJECTIVE_FAILED
    return OK if result.success or target is None else NOT_REACHED


class Mistake(Exception):
    """A mistake that the user can correct; shown as one sentence. `status` is the exit code."""

    def __init__(self, sentence: str, status: int = USER_MISTAKE):
        super().__init__(sentence)
        self.status = status


def mistake_of(word: str, known: Iterable[str], kind: str) -> Mistake:
    """Return the mistake of an unknown word, with the most similar known one."""
    return Mistake(f"there is no {kind} {word!r}{suggestion(word, known)}")


def say(text: str) -> None:
    """Write a line to stderr."""
    print(printable(text), file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """Return a text without terminal control characters, which a file may contain."""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


def checked(make: Callable[[], T]) -> T:
    """Return what `make` returns; errors about the user's input become a `Mistake`."""
    try:
        return make()
    except CheckpointExists as error:
        raise Mistake(
            f"{error.args[0].rpartition(': ')[0]}; resume it with 'mmes resume' or --resume "
            "auto, choose another name, or delete it",
            CHECKPOINT_UNUSABLE,
        ) from error
    except CheckpointError as error:
        raise Mistake(str(error), CHECKPOINT_UNUSABLE) from error
    except FileNotFoundError as error:
        what = f"there is no file {error.filename}" if error.filename else str(error)
        raise Mistake(what, USER_MISTAKE) from error
    except (TypeError, ValueError, OSError, MemoryError, ImportError) as error:
        raise Mistake(str(error)) from error
