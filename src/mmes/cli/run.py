"""``mmes run``."""

from __future__ import annotations

from mmes.base.loading import is_location, make_importable
from mmes.cli.arguments import (
    Parser,
    add_options,
    assignment,
    chosen,
    integers,
    number,
    vector_of,
)
from mmes.cli.carry_out import Notes, carry_out, display
from mmes.cli.objective import BuiltIn, load_target
from mmes.cli.shared_flags import add_common, constraints_of, workers_of
from mmes.cli.start import bounds_of, where_to_start
from mmes.cli.status import Mistake, checked
from mmes.minimize import Run
from mmes.run.options import LIMITS, RUN_OPTIONS
from mmes.strategies import AUTO_LIMIT, get_strategy, is_auto, options_of

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


def run(argv: list[str]) -> int:
    """Run ``mmes run`` and return the exit code."""
    first = Parser(prog="mmes run", add_help=False)
    first.add_argument("--strategy", default="auto")
    strategy = first.parse_known_args(argv)[0].strategy
    if is_location(strategy):
        make_importable(strategy)
    search = checked(lambda: options_of(strategy))
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
        type=lambda text: True if text == "all" else integers(text),
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
    add_common(parser)
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
    options |= checked(lambda: where_to_start(arguments, problem, options, needs_box))
    if arguments.integers is not None:
        options["integers"] = arguments.integers
    options |= constraints_of(arguments)
    notes = Notes(arguments.function, problem_options, strategy)
    made = checked(
        lambda: Run(
            objective,
            strategy=strategy,
            callback=[*display(arguments), notes],
            workers=workers_of(arguments),
            checkpoint=arguments.home_of(arguments.checkpoint),
            **options,
        )
    )
    notes.belong_to(made)
    return carry_out(made, arguments, arguments.function, arguments.checkpoint)
