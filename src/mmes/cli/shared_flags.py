"""Flags that ``mmes run`` and ``mmes resume`` share.

Flags of options have their texts in the tables of options: `mmes.run.options`,
`mmes.evaluate.options` and those of the strategies.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mmes.base.extras import require
from mmes.cli.arguments import Parser, add_options, number
from mmes.cli.objective import load_target
from mmes.cli.status import Mistake
from mmes.evaluate.options import EVALUATION
from mmes.replicas import Dask, Local, Ray
from mmes.run.options import CHECKPOINTS

FORMS = "ray, ray:COUNT, dask:ADDRESS or local:COUNT"


def add_common(parser: Parser, saved: bool = False) -> None:
    """Add the flags; `saved` says that the run has values for them already."""
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


def constraints_of(arguments: Any) -> dict[str, Any]:
    """Return the functions that --constraints names."""
    if not arguments.constraints:
        return {}
    return {"constraints": [load_target(name, {}) for name in arguments.constraints]}


def workers_of(arguments: Any) -> Any:
    """Return what ``--workers`` and ``--replicas`` mean together: workers inside each replica."""
    text, each = arguments.replicas, arguments.workers
    if text is None:
        return each
    kind, _, rest = text.partition(":")
    try:
        if kind == "ray":
            return Ray(number(rest) if rest else None, each=each)
        if kind == "local" and rest:
            return Local(number(rest), each=each)
        if kind == "dask" and rest:
            return Dask(require("distributed", "dask").Client(rest), each=each)
    except (TypeError, ValueError, ImportError, OSError) as error:
        raise Mistake(f"--replicas {text}: {error}") from error
    raise Mistake(
        f"--replicas must be {FORMS}, not {text!r}; for MPI, give workers=mmes.replicas.MPI() to "
        "mmes.minimize in a script"
    )
