"""What ``mmes run`` and ``mmes resume`` share: a run is carried out and its result written."""

from __future__ import annotations

import contextlib
import shlex
import traceback
from pathlib import Path
from typing import Any

import numpy as np

import mmes
from mmes.base.loading import is_location
from mmes.cli.output import DEFAULT_FOLDER, output_folder, summary, write_result
from mmes.cli.status import (
    CHECKPOINT_UNUSABLE,
    INTERRUPTED,
    OBJECTIVE_FAILED,
    OK,
    TERMINATED,
    Mistake,
    say,
    status_of,
)
from mmes.errors import CheckpointError, EvaluationError, Terminated
from mmes.evaluate.protocol import location_of
from mmes.minimize import Run
from mmes.run.observing.progress import Progress
from mmes.run.observing.progress_line import Display


class Notes:
    """What `mmes resume` needs to know, stored in the notes of a run; used as a callback.

    A resumed run takes them after its first generation: if the target was mistyped, there is none,
    and the checkpoint stays unchanged.
    """

    def __init__(self, target: str, problem_options: dict[str, Any], strategy: str | None):
        self._notes: dict[str, Any] = {"target": target, "problem_options": problem_options}
        if strategy is not None and is_location(strategy):
            self._notes["strategy"] = strategy
        self._run: Run | None = None

    def belong_to(self, run: Run) -> None:
        """Take the run; a new one gets the notes now."""
        self._run = run
        if not run.generations:
            run.notes = self._notes

    def __call__(self, progress: Progress) -> None:
        """Give the run its notes after a generation."""
        if self._run is not None:
            self._run.notes = self._notes


def resume_command(file: str, target: str, strategy: Any) -> str:
    """Return the command to resume, with all user code that must be named."""
    words = ["mmes", "resume", file, *([target] if is_location(target) else [])]
    if isinstance(strategy, str) and is_location(strategy):
        words += ["--strategy", strategy]
    return shlex.join(words)


def display(arguments: Any) -> list[Display]:
    """Return the display, if one is wanted; the summary follows, so it needs no last line."""
    return [] if arguments.quiet else [Display(last_line=False)]


def carry_out(made: Run, arguments: Any, target: str, checkpoint: str | None) -> int:
    """Finish the run, write the results, and return the exit code."""
    # A resumed run replaces what it wrote when it was interrupted.
    overwrite = arguments.force or made.evaluations > 0
    place = arguments.home_of(arguments.out or DEFAULT_FOLDER)
    folder = output_folder(place, arguments.out, overwrite)
    try:
        return _carried_out(made, arguments, target, checkpoint, folder)
    finally:
        if arguments.out is None:
            with contextlib.suppress(OSError):
                folder.rmdir()  # if nothing was written


def _carried_out(
    made: Run, arguments: Any, target: str, checkpoint: str | None, folder: Path
) -> int:
    status = OK
    try:
        result = made.run()
    except (KeyboardInterrupt, Terminated) as error:
        result = getattr(error, "result", None)
        status = INTERRUPTED if isinstance(error, KeyboardInterrupt) else TERMINATED
        say("mmes: interrupted" if status == INTERRUPTED else "mmes: ended by SIGTERM")
    except SystemExit as error:
        say(f"mmes: the objective ended the program by SystemExit({error.code!r})")
        result, status = getattr(error, "result", None), OBJECTIVE_FAILED
    except EvaluationError as error:
        result, status = getattr(error, "result", None), OBJECTIVE_FAILED
        say(f"mmes: {error}{_place(error.__cause__, arguments.traceback)}")
    except CheckpointError as error:
        raise Mistake(str(error), CHECKPOINT_UNUSABLE) from error
    except (TypeError, ValueError) as error:
        # What is wrong with a value that the objective returned, or with sending it to workers.
        place = location_of(error)
        say(f"mmes: {error}{f' ({place})' if place else ''}")
        result, status = getattr(error, "result", None), OBJECTIVE_FAILED
    if result is not None and result.nfev:
        write_result(folder, result, target)
        if not arguments.quiet:
            print(summary(result, arguments.out or folder.name))
    if status != OK and checkpoint is not None and arguments.home_of(checkpoint).exists():
        say(f"mmes: to continue: {resume_command(checkpoint, target, arguments.strategy)}")
    return status if status != OK or result is None else status_of(result, made.target)


def _place(cause: BaseException | None, whole: bool) -> str:
    """Return where in the user's code an error came from."""
    if cause is None:
        return ""
    if whole:
        return "\n" + "".join(traceback.format_exception(cause)).rstrip()
    found = traceback.extract_tb(cause.__traceback__)
    frames = [frame for frame in found if not _of_a_library(Path(frame.filename))]
    if not frames:
        return ""
    last = frames[-1]
    return f"\n  in {last.filename}, line {last.lineno}, in {last.name}: {last.line}"


def _of_a_library(file: Path) -> bool:
    return any(file.is_relative_to(Path(str(one.__file__)).parent) for one in (mmes, np))
