"""``mmes reproduce``, ``mmes bench`` and ``mmes report``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mmes.base.extras import require
from mmes.cli.arguments import Parser
from mmes.cli.status import INTERRUPTED, OK, Mistake, say
from mmes.lab.experiments.plan import read_plan
from mmes.lab.experiments.reproduce import (
    Effort,
    Laboratory,
    chosen_sections,
    compare_plan,
    reproduce_section,
)
from mmes.lab.experiments.results.formats import to_text
from mmes.lab.experiments.results.store import StoreError
from mmes.lab.experiments.runner import Report
from mmes.lab.experiments.sections import SECTIONS, Extent
from mmes.lab.report import write_report

FAILED_RUNS = 1
"""Exit code: some runs failed."""


def _part(text: str) -> tuple[int, int]:
    first, slash, second = text.partition("/")
    if not (slash and first.isdigit() and second.isdigit() and 1 <= int(first) <= int(second)):
        raise argparse.ArgumentTypeError(
            f"write it as 1/3 for the first part of three, not {text!r}"
        )
    return int(first), int(second)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0.0:
        raise argparse.ArgumentTypeError(f"must be a positive number, not {text!r}")
    return value


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, not {text!r}")
    return int(text)


def add_effort(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say how to carry out runs."""
    parser.add_argument("--workers", type=_count, metavar="N", help="processes (all cores)")
    parser.add_argument(
        "--time-limit", type=_positive, metavar="SECONDS",
        help="begin no further run after so many seconds; start again to go on",
    )  # fmt: skip
    parser.add_argument(
        "--part", type=_part, default=(1, 1), metavar="I/K",
        help="make only part I of K, to spread runs over machines; "
        "then copy all runs/ folders into one",
    )  # fmt: skip
    parser.add_argument("--no-report", action="store_true", help="do not write report.html")


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strategy", action="append", default=[], metavar="LABEL",
        help="make only the runs of this strategy, as the tables call it (may be repeated)",
    )  # fmt: skip
    parser.add_argument(
        "--problem", action="append", default=[], metavar="LABEL",
        help="make only the runs on this problem, as the tables call it (may be repeated)",
    )  # fmt: skip
    parser.add_argument(
        "--dim", dest="dimension", action="append", default=[], type=_count, metavar="N",
        help="make only the runs with N variables (may be repeated)",
    )  # fmt: skip
    parser.add_argument(
        "--dimension", action="append", default=[], type=_count, help=argparse.SUPPRESS
    )
    parser.add_argument(
        "--seeds", type=_count, metavar="K", help="make only the first K seeds of every cell"
    )


def effort_of(args: argparse.Namespace) -> Effort:
    """Return what the flags of `add_effort` say."""
    return Effort(args.workers, args.time_limit, args.part)


def require_extras(args: argparse.Namespace) -> None:
    """Say which package is missing before the first run, not after hours when it is needed."""
    for module in ("polars", "matplotlib", "scipy"):
        require(module)
    if not args.no_report:
        require("jinja2", "report")


def _chosen_effort(args: argparse.Namespace) -> Effort:
    """Return what the flags of `add_effort` and `_add_choice` say."""
    return replace(
        effort_of(args),
        strategies=tuple(args.strategy),
        problems=tuple(args.problem),
        dimensions=tuple(args.dimension),
        seeds=args.seeds,
    )


def guarded(command: Callable[[], int], name: str) -> int:
    """Run a command; an error about what the user asked for becomes a mistake of one sentence."""
    try:
        return command()
    except BrokenPipeError:  # the reader has gone; the program knows what to do then
        raise
    except (ValueError, TypeError, StoreError, ModuleNotFoundError, OSError) as error:
        raise Mistake(f"{name}: {error}") from error
    except KeyboardInterrupt:
        say(f"mmes {name}: stopped; start it again to go on")
        return INTERRUPTED


def tell(report: Report | None) -> None:
    """Print how many runs were made."""
    if report is None:
        return
    parts = [f"{report.finished} run{'s' if report.finished != 1 else ''} made"]
    if report.skipped:
        parts.append(f"{report.skipped} were there")
    if report.failed:
        parts.append(f"{len(report.failed)} failed")
    if report.postponed:
        parts.append(f"{report.postponed} left for later (time limit)")
    print(f"{', '.join(parts)}; {report.seconds:.0f} s\n")


def reproduce(argv: list[str]) -> int:
    """Run ``mmes reproduce`` and return its exit code."""
    parser = Parser(
        prog="mmes reproduce",
        description="Reproduce the paper's experiments, ours beside the published numbers. "
        "Stopped or killed, it goes on where it was when started again.",
    )
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"all by default: {', '.join(SECTIONS)}"
    )
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument(
        "--quick", dest="extent", action="store_const", const=Extent.QUICK,
        default=Extent.QUICK, help="minutes on two cores (the default)",
    )  # fmt: skip
    extent.add_argument(
        "--full", dest="extent", action="store_const", const=Extent.FULL,
        help="the published protocol: days",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder (out/reproduce-EXTENT)")
    parser.add_argument("--list", action="store_true", help="list sections and runs, make none")
    _add_choice(parser)
    add_effort(parser)
    args = parser.parsed(argv)
    return guarded(lambda: _reproduce(args), "reproduce")


def _reproduce(args: argparse.Namespace) -> int:
    extent: Extent = args.extent
    sections = chosen_sections(args.sections)
    if args.list:
        for section in sections:
            count = len(section.runs(extent))
            print(f"{section.name:<12} {section.title} ({count} runs, {extent.value})")
        return OK
    require_extras(args)
    folder = args.out or Path("out") / f"reproduce-{extent.value}"
    names = [section.name for section in sections]
    begin, failed = time.monotonic(), 0
    Laboratory(folder, "reproduction", {"protocol": extent.value, "sections": names}).save()
    for section in sections:
        print(f"== {section.title} ({section.name}, {extent.value})", flush=True)
        for sentence in section.missing(extent):
            print(f"left out: {sentence}")
        report, findings = reproduce_section(section, extent, folder, _chosen_effort(args))
        failed += len(report.failed) if report else 0
        for table in findings.tables:
            print("\n" + to_text(table), flush=True)
        for note in findings.notes:
            print(note)
        tell(report)
    if not args.no_report:
        print(f"report: {write_report(folder)}")
    print(f"all in {time.monotonic() - begin:.0f} s, under {folder}")
    return FAILED_RUNS if failed else OK


def bench(argv: list[str]) -> int:
    """Run ``mmes bench`` and return its exit code."""
    parser = Parser(
        prog="mmes bench",
        description="Compare strategies on your own problems, as a plan in TOML says. "
        "Stopped or killed, it goes on where it was when started again.",
    )
    parser.add_argument("plan", type=Path, metavar="PLAN.toml", help="what to run")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder (out/NAME-OF-THE-FILE)")
    add_effort(parser)
    args = parser.parsed(argv)
    return guarded(lambda: _bench(args), "bench")


def _bench(args: argparse.Namespace) -> int:
    plan = read_plan(args.plan)
    require_extras(args)
    folder = args.out or Path("out") / args.plan.stem
    report, findings = compare_plan(plan, folder, effort_of(args))
    for table in findings.tables:
        print(to_text(table))
    tell(report)
    if not args.no_report:
        print(f"report: {write_report(folder)}")
    return FAILED_RUNS if report.failed else OK


def report(argv: list[str]) -> int:
    """Run ``mmes report`` and return its exit code."""
    parser = Parser(
        prog="mmes report",
        description="Write one HTML file about a folder of `mmes reproduce`, `mmes bench` or "
        "`mmes run --out`; it opens offline in any browser.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file (DIR/report.html)")
    args = parser.parsed(argv)

    def command() -> int:
        print(write_report(args.folder, args.out))
        return OK

    return guarded(command, "report")
