"""``mmes run`` and ``mmes resume``."""

from __future__ import annotations

import contextlib
import shlex
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import mmes
from mmes import checkpoint as files
from mmes.base.loading import is_location, make_importable
from mmes.base.reasons import StopReason
from mmes.cli.arguments import Parser, add_options, assignment, chosen, number, vector_of
from mmes.cli.output import DEFAULT_FOLDER, output_folder, summary, write_result
from mmes.cli.replicas import FORMS, workers_of
from mmes.cli.start import bounds_of, where_to_start
from mmes.cli.status import (
    CHECKPOINT_UNUSABLE,
    INTERRUPTED,
    NOT_REACHED,
    OBJECTIVE_FAILED,
    OK,
    TERMINATED,
    USER_MISTAKE,
    Mistake,
    say,
)
from mmes.cli.target import BuiltIn, chosen_dimension, load_target
from mmes.errors import CheckpointError, CheckpointExists, EvaluationError, Terminated
from mmes.evaluate.options import EVALUATION
from mmes.evaluate.protocol import location_of
from mmes.kernels.devices import PLACE_OPTIONS
from mmes.minimize import Run, resumed_run
from mmes.run.display import Display
from mmes.run.options import CHECKPOINTS, LIMITS, RUN_OPTIONS
from mmes.run.progress import Progress
from mmes.run.result import Result
from mmes.strategies import AUTO_LIMIT, get_strategy, is_auto, named_strategy, options_of
from mmes.strategies.shell.options import COMMON_OPTIONS

_RUN = """\
Minimise a function.

TARGET is one of
  a built-in problem              mmes run rosenbrock --dim 1000
  a function in a file            mmes run model.py:loss --x0 start.npy --sigma0 0.5
  a function in a module          mmes run package.module:loss --dim 500 --bounds -5,5

The function takes one numpy array and returns one number; with --vectorized it takes an array with
one point per row and returns one number per row.
"""

_RUN_EPILOG = """\
start point:
  --x0 if it is given. Otherwise a built-in problem starts at a random point of its box; your own
  function needs --dim and --bounds and starts at a random point within the bounds. The default of
  --sigma0 is 0.3 of the width of the bounds or the box.

exit codes:
  0 success   1 target not reached   2 invalid command line   3 the objective failed
  4 the checkpoint cannot be used   130 Ctrl-C   143 SIGTERM
"""

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


def run(argv: list[str]) -> int:
    """Run ``mmes run`` and return the exit code."""
    first = Parser(prog="mmes run", add_help=False)
    first.add_argument("--strategy", default="auto")
    strategy = first.parse_known_args(argv)[0].strategy
    if is_location(strategy):
        make_importable(strategy)
    search = _checked(lambda: options_of(strategy))
    parser = Parser(
        argv,
        prog="mmes run",
        usage="mmes run TARGET [flags]",
        description=_RUN,
        epilog=_RUN_EPILOG,
    )
    parser.add_argument("function", metavar="TARGET", help="what to minimise; see above")
    start = parser.add_argument_group("start")
    start.add_argument("--dim", type=number, metavar="N", help="number of variables")
    start.add_argument(
        "--x0",
        type=vector_of("--x0"),
        metavar="X",
        help="start point: one number, a list a,b,c, or a file",
    )
    start.add_argument(
        "--sigma0", type=number, metavar="X", help="initial mutation strength (step size)"
    )
    start.add_argument(
        "--bounds",
        type=bounds_of,
        metavar="LOW,HIGH",
        help="lower and upper bound: two numbers, or a file with two rows or columns",
    )
    start.add_argument(
        "--scale",
        type=vector_of("--scale"),
        metavar="X",
        help="typical size of each variable: a list a,b,c, or a file",
    )
    start.add_argument(
        "--integers",
        metavar="all|I,J,...",
        help="variables that are integers: all of them, or their numbers from 0, such as 0,1,4-9",
    )
    start.add_argument(
        "--problem-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of a built-in problem, such as alpha=3 or seed=3",
    )
    add_options(parser, "limits", LIMITS)
    _add_common(parser)
    parser.add_argument(
        "--strategy",
        default="auto",
        metavar="NAME",
        help="the search strategy: a name, or file.py:Class (default: auto, which is active-cma "
        f"for up to {AUTO_LIMIT} variables and adaptive for more)",
    )
    add_options(parser, f"options of the strategy ({strategy})", search)
    arguments = parser.parsed(argv)

    given = arguments.problem_option
    problem_options = dict(assignment(text, "--problem-option") for text in given)
    if "dimension" in problem_options:
        raise Mistake(
            "--problem-option: set the number of variables with --dim, not with dimension"
        )
    if arguments.dim is not None and not is_location(arguments.function):
        problem_options["dimension"] = arguments.dim
    objective = load_target(arguments.function, problem_options)
    options = chosen(arguments, RUN_OPTIONS + search)
    if isinstance(objective, BuiltIn) and arguments.workers is None and not arguments.replicas:
        options.setdefault("vectorized", True)
    problem = objective.problem if isinstance(objective, BuiltIn) else None
    needs_box = not is_auto(strategy) and get_strategy(strategy).needs_box
    options |= _checked(lambda: where_to_start(arguments, problem, options, needs_box))
    if arguments.integers is not None:
        options["integers"] = _integers(arguments.integers)
    options |= _constraints(arguments)
    notes = _Notes(arguments.function, problem_options, strategy)
    made = _checked(
        lambda: Run(
            objective,
            strategy=strategy,
            callback=[*_display(arguments), notes],
            workers=workers_of(arguments),
            checkpoint=arguments.home_of(arguments.checkpoint),
            **options,
        )
    )
    notes.belong_to(made)
    return _carry_out(made, arguments, arguments.function, arguments.checkpoint)


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
    _add_common(parser, saved=True)
    add_options(parser, "where the search is computed", _PLACE, saved=True)
    parser.add_argument(
        "--strategy", metavar="FILE.py:CLASS", help="the strategy, if it is your own"
    )
    arguments = parser.parsed(argv)
    state, arrays = _checked(lambda: files.read(arguments.file))
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
    changes = chosen(arguments, (*RUN_OPTIONS, *_PLACE)) | _constraints(arguments)
    notes = _Notes(target, problem_options, arguments.strategy)
    made = _checked(
        lambda: resumed_run(
            arguments.home_of(arguments.file),
            objective,
            strategy=arguments.strategy,
            callback=[*_display(arguments), notes],
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
    return _carry_out(made, arguments, target, arguments.checkpoint or arguments.file)


def _integers(text: str) -> Any:
    """Return what --integers means."""
    if text == "all":
        return True
    found: list[int] = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        if not low.isdigit() or (dash and not high.isdigit()):
            raise Mistake(f"--integers must be 'all' or numbers such as 0,1,4-9, not {text!r}")
        found += range(int(low), int(high or low) + 1)
    return found


def _constraints(arguments: Any) -> dict[str, Any]:
    """Return the functions that --constraints names."""
    if not arguments.constraints:
        return {}
    return {"constraints": [load_target(name, {}) for name in arguments.constraints]}


def _add_common(parser: Parser, saved: bool = False) -> None:
    # The user's code may change the folder: paths are relative to the original one.
    home = Path.cwd()
    parser.set_defaults(home_of=lambda path: None if path is None else home / path)
    group = add_options(parser, "evaluation", EVALUATION, saved)
    group.add_argument(
        "--constraints",
        action="append",
        metavar="FILE.py:G",
        help="your own function g, feasible where g(x) <= 0; may be given several times",
    )
    group.add_argument(
        "--workers",
        type=number,
        metavar="N",
        help="number of worker processes; -1 for one per core",
    )
    group.add_argument(
        "--replicas",
        metavar="ENGINE",
        help=f"run a copy of the optimizer on several machines: {FORMS}; --workers is then the "
        "number of worker processes per machine",
    )
    group.add_argument(
        "--traceback", action="store_true", help="show the traceback of an error in the objective"
    )
    writing = [option for option in CHECKPOINTS if not saved or option.name != "resume"]
    group = add_options(parser, "checkpoints", writing, saved)
    group.add_argument(
        "--checkpoint", metavar="FILE", help="file to save the state in, such as run.mmes"
    )
    group = parser.add_argument_group("output")
    group.add_argument(
        "--out",
        metavar="FOLDER",
        help="folder for the results (default: mmes-out, mmes-out-2, ...)",
    )
    group.add_argument("--force", action="store_true", help="overwrite results in the --out folder")
    group.add_argument("--quiet", action="store_true", help="print neither progress nor summary")


class _Notes:
    """What `mmes resume` needs to know, stored in the notes of a run.

    A resumed run takes them after its first generation: if the target was mistyped, there is none,
    and the checkpoint stays unchanged.
    """

    def __init__(self, target: str, problem_options: dict[str, Any], strategy: str | None):
        self._notes: dict[str, Any] = {"target": target, "problem_options": problem_options}
        if strategy is not None and is_location(strategy):
            self._notes["strategy"] = strategy
        self._run: Run | None = None

    def belong_to(self, run: Run) -> None:
        self._run = run
        if not run.generations:
            run.notes = self._notes

    def __call__(self, progress: Progress) -> None:
        if self._run is not None:
            self._run.notes = self._notes


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
            f"{_resume_command(file, 'file.py:function', None)}"
        )
    if is_location(noted):
        # A file that someone sent must not choose which code runs.
        strategy = arguments.strategy or notes.get("strategy")
        raise Mistake(
            "name the function again, because a checkpoint contains no code: "
            f"{_resume_command(file, noted, strategy)}"
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
        f"{_resume_command(arguments.file, target, noted or 'file.py:Class')}"
    )


def _resume_command(file: str, target: str, strategy: Any) -> str:
    """Return the command to resume, with all user code that must be named."""
    words = ["mmes", "resume", file, *([target] if is_location(target) else [])]
    if isinstance(strategy, str) and is_location(strategy):
        words += ["--strategy", strategy]
    return shlex.join(words)


def _display(arguments: Any) -> list[Display]:
    # The summary follows, so the display needs no last line.
    return [] if arguments.quiet else [Display(last_line=False)]


def _carry_out(made: Run, arguments: Any, target: str, checkpoint: str | None) -> int:
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
        say(f"mmes: to continue: {_resume_command(checkpoint, target, arguments.strategy)}")
    return status if status != OK or result is None else _judged(result, made)


def _judged(result: Result, made: Run) -> int:
    if result.reason is StopReason.ALL_FAILED:
        return OBJECTIVE_FAILED
    return OK if result.success or made.target is None else NOT_REACHED


def _place(cause: BaseException | None, whole: bool) -> str:
    """Return where in the user's code an error came from."""
    if cause is None:
        return ""
    if whole:
        return "\n" + "".join(traceback.format_exception(cause)).rstrip()
    ours = Path(mmes.__file__).parent
    found = traceback.extract_tb(cause.__traceback__)
    frames = [frame for frame in found if not Path(frame.filename).is_relative_to(ours)]
    if not frames:
        return ""
    last = frames[-1]
    return f"\n  in {last.filename}, line {last.lineno}, in {last.name}: {last.line}"


def _checked(make: Any) -> Any:
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
