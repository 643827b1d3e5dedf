"""``mmes resume``."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from mmes import checkpoint as files
from mmes.base.loading import is_location, make_importable
from mmes.cli.arguments import Parser, add_options, chosen
from mmes.cli.carry_out import Notes, carry_out, display, resume_command
from mmes.cli.objective import chosen_dimension, load_target
from mmes.cli.shared_flags import add_common, constraints_of, workers_of
from mmes.cli.status import CHECKPOINT_UNUSABLE, Mistake, checked, say
from mmes.kernels.devices import PLACE_OPTIONS
from mmes.minimize import resumed_run
from mmes.run.options import LIMITS, RUN_OPTIONS
from mmes.strategies import named_strategy
from mmes.strategies.shell.options import COMMON_OPTIONS

_RESUME = """\
Continue a run from its checkpoint. The result is the same, to the bit, as without the interruption.

  mmes resume run.mmes                                      a built-in problem
  mmes resume run.mmes model.py:loss                        your own function
  mmes resume run.mmes model.py:loss --max-evaluations 1e7  with a larger budget

A checkpoint contains no code: name your own function again, and your own strategy, if you used one
(--strategy file.py:Class), and constraints (--constraints file.py:g). Limits that are not given
stay unchanged; a time limit starts again.
"""

_PLACE = tuple(replace(o, expert=False) for o in COMMON_OPTIONS if o.name in PLACE_OPTIONS)


def resume(argv: list[str]) -> int:
    """Run ``mmes resume`` and return the exit code."""
    parser = Parser(
        argv, prog="mmes resume", usage="mmes resume FILE [TARGET] [flags]", description=_RESUME
    )
    parser.add_argument("file", metavar="FILE", help="the checkpoint")
    parser.add_argument(
        "function", metavar="TARGET", nargs="?", help="your function, as file.py:function"
    )
    add_options(parser, "new limits", LIMITS, saved=True)
    add_common(parser, saved=True)
    add_options(parser, "where the search is computed", _PLACE, saved=True)
    parser.add_argument(
        "--strategy", metavar="FILE.py:CLASS", help="the strategy, if it is your own"
    )
    arguments = parser.parsed(argv)
    state, arrays = checked(lambda: files.read(arguments.file))
    target, problem_options = _noted_target(state, arguments)
    best = arrays.get("search/best_x")
    if best is None or problem_options.get("dimension", best.size) != best.size:
        raise Mistake(
            f"{arguments.file} cannot be used: its notes and its arrays do not fit together",
            CHECKPOINT_UNUSABLE,
        )
    problem_options |= chosen_dimension(target, best.size)
    del arrays, best  # maps of the file, which is about to be replaced
    _check_strategy(state, arguments, target)
    if is_location(arguments.strategy or ""):
        make_importable(arguments.strategy)
    objective = load_target(target, problem_options)
    changes = chosen(arguments, (*RUN_OPTIONS, *_PLACE)) | constraints_of(arguments)
    notes = Notes(target, problem_options, arguments.strategy)
    made = checked(
        lambda: resumed_run(
            arguments.home_of(arguments.file),
            objective,
            strategy=arguments.strategy,
            callback=[*display(arguments), notes],
            workers=workers_of(arguments),
            checkpoint=arguments.home_of(arguments.checkpoint),
            **changes,
        )
    )
    notes.belong_to(made)
    if not arguments.quiet:
        say(
            f"{arguments.file}: {target}, {made.evaluations:,} evaluations in "
            f"{made.generations:,} generations so far"
        )
    return carry_out(made, arguments, target, arguments.checkpoint or arguments.file)


def _noted_target(state: dict[str, Any], arguments: Any) -> tuple[str, dict[str, Any]]:
    """Return the target to continue with, and the options of a built-in problem."""
    file, given, notes = arguments.file, arguments.function, state.get("notes", {})
    noted = notes.get("target") if isinstance(notes, dict) else None
    options = notes.get("problem_options", {}) if noted is not None else {}
    if not isinstance(noted, str | None) or not isinstance(options, dict):
        raise Mistake(
            f"{file} cannot be used: its notes are not those of 'mmes run'", CHECKPOINT_UNUSABLE
        )
    if given is not None:
        return given, dict(options) if given == noted else {}
    if noted is None:
        raise Mistake(
            f"{file} was not written by 'mmes run', so the function must be named: "
            f"{resume_command(file, 'file.py:function', None)}"
        )
    if is_location(noted):
        # A file that someone sent must not choose which code runs.
        strategy = arguments.strategy or notes.get("strategy")
        raise Mistake(
            "name the function again, because a checkpoint contains no code: "
            f"{resume_command(file, noted, strategy)}"
        )
    return noted, dict(options)


def _check_strategy(state: dict[str, Any], arguments: Any, target: str) -> None:
    """Require the strategy to be named if it is not a built-in one."""
    name, notes = state.get("strategy"), state.get("notes")
    noted = notes.get("strategy") if isinstance(notes, dict) else None
    if arguments.strategy is not None or not isinstance(name, str):
        return
    if noted is None:  # else it is the user's, even if it has a name of ours
        with contextlib.suppress(ValueError):
            named_strategy(name)
            return
    # As with the function: a file that someone sent must not choose which code runs.
    raise Mistake(
        f"name your strategy {name!r} again, because a checkpoint contains no code: "
        f"{resume_command(arguments.file, target, noted or 'file.py:Class')}"
    )
