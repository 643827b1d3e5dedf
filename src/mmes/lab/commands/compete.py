"""``mmes compete``: strategies on a named suite under the rules of its competition."""

from __future__ import annotations

import argparse
from pathlib import Path

from mmes.cli.arguments import Parser, assignment, number
from mmes.cli.status import OK, Mistake
from mmes.lab.commands.laboratory import (
    FAILED_RUNS,
    add_effort,
    effort_of,
    guarded,
    require_extras,
    tell,
)
from mmes.lab.experiments import competition as entries
from mmes.lab.experiments.plan import LARGEST, Strategy, checked_count
from mmes.lab.experiments.results.formats import to_text
from mmes.lab.experiments.results.single_runs import take_over
from mmes.lab.experiments.results.store import Store
from mmes.lab.report import write_report
from mmes.problems.suite import CHECKPOINTS

_DESCRIPTION = """\
Compare strategies on a suite: all functions, several seeds, the same budget for all.

  mmes compete lsgo2013 --strategy mmes --strategy mos --seeds 5
  mmes compete lsgo2010 --strategy mmes,scaling=adaptive --function f1 --function f7 --seeds 1-3

Each finished run is stored at once and never repeated: after an interruption, the same command
continues. The tables contain all runs of the folder, so you can add strategies later and copy the
runs/ folders of several machines into one.
"""


def compete(argv: list[str]) -> int:
    """Run ``mmes compete`` and return its exit code."""
    parser = Parser(prog="mmes compete", description=_DESCRIPTION)
    parser.add_argument("suite", metavar="SUITE", help=f"one of {', '.join(entries.SUITES)}")
    parser.add_argument(
        "--strategy", action="append", default=[], metavar="NAME[,OPTION=VALUE...]",
        help="a strategy (may be repeated; default: mmes); label=TEXT sets its name in the tables",
    )  # fmt: skip
    parser.add_argument(
        "--function", action="append", default=[], metavar="fN",
        help="run only this function (may be repeated)",
    )  # fmt: skip
    parser.add_argument(
        "--seeds", default="25", metavar="K|I-K", help="seeds 1 to K, or I to K (default: 25)"
    )
    parser.add_argument(
        "--budget", type=number, default=CHECKPOINTS[-1], metavar="N",
        help="evaluations per run (default: 3e6)",
    )  # fmt: skip
    parser.add_argument(
        "--checkpoints", default=",".join(map(str, CHECKPOINTS)), metavar="A,B,...",
        help="evaluations at which strategies are compared (default: 1.2e5,6e5,3e6)",
    )  # fmt: skip
    parser.add_argument(
        "--take-over", type=Path, action="append", default=[], metavar="FILE.csv",
        help="import the runs in the runs.csv of another competition (may be repeated)",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="output folder (default: out/SUITE)"
    )
    add_effort(parser)
    args = parser.parsed(argv)
    return guarded(lambda: _compete(args), "compete")


def _compete(args: argparse.Namespace) -> int:
    competition = entries.Competition(
        args.suite,
        tuple(_strategy(text) for text in args.strategy or ["mmes"]),
        tuple(args.function),
        _seeds(args.seeds),
        _count("--budget", args.budget),
        tuple(_count("--checkpoints", number(text)) for text in args.checkpoints.split(",")),
    )
    require_extras(args)
    folder = args.out or Path("out") / args.suite
    for file in args.take_over:
        print(f"{take_over(file, Store(folder / 'runs'))} runs imported from {file}")
    report, findings = entries.compete(competition, folder, effort_of(args))
    for table in findings.tables[:2]:
        print(to_text(table))
    tell(report)
    if not args.no_report:
        print(f"report: {write_report(folder)}")
    print(f"single runs: {folder / 'runs.csv'}; all tables: {folder / 'tables'}")
    return FAILED_RUNS if report.failed else OK


def _strategy(text: str) -> Strategy:
    name, *options = text.split(",")
    return entries.competitor(name, dict(assignment(option, "--strategy") for option in options))


def _seeds(text: str) -> tuple[int, ...]:
    first, dash, last = text.partition("-")
    ends = [first, last] if dash else ["1", first]
    if not all(end.isdecimal() and len(end) < 100 for end in ends) or int(ends[0]) > int(ends[1]):
        raise Mistake(f"--seeds must be a number K or a range I-K, not {text!r}")
    first_seed, last_seed = int(ends[0]), int(ends[1])
    checked_count(last_seed - first_seed + 1)
    if last_seed > LARGEST:
        raise Mistake(f"--seeds must be at most 2^63 - 1 = {LARGEST}, not {last_seed}")
    return tuple(range(first_seed, last_seed + 1))


def _count(flag: str, value: object) -> int:
    if not isinstance(value, int) or not 1 <= value <= LARGEST:
        raise Mistake(f"{flag} must be an integer from 1 to 2^63 - 1, not {value!r}")
    return value
