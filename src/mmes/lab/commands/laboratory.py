"""``mmes reproduce``, ``mmes bench`` and ``mmes report``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mmes.base.extras import require
from mmes.cli.arguments import Parser, number
from mmes.cli.status import INTERRUPTED, OK, Mistake, say
from mmes.lab.experiments.plan import read_plan
from mmes.lab.experiments.reproduce import (
    Effort,
    Laboratory,
    chosen_sections,
    compare_plan,
    missing_runs,
    reproduce_section,
)
from mmes.lab.experiments.results.formats import to_text
from mmes.lab.experiments.results.single_runs import take_over_section
from mmes.lab.experiments.results.store import Store, StoreError
from mmes.lab.experiments.runner import Report
from mmes.lab.experiments.sections import SECTIONS, Extent, Section
from mmes.lab.report import write_report

FAILED_RUNS = 1
"""Exit code: some runs failed."""


def part(text: str) -> tuple[int, int]:
    """Return the numbers of I/K: part I of K."""
    first, slash, second = text.partition("/")
    if not (slash and first.isdigit() and second.isdigit() and 1 <= int(first) <= int(second)):
        raise argparse.ArgumentTypeError(f"must be I/K, such as 1/3, not {text!r}")
    return int(first), int(second)


def positive(text: str) -> float:
    """Return a number > 0."""
    value = number(text)
    if isinstance(value, str) or not value > 0:
        raise argparse.ArgumentTypeError(f"must be a number > 0, not {text!r}")
    return float(value)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, not {text!r}")
    return int(text)


def add_effort(parser: argparse.ArgumentParser) -> None:
    """Add the flags that control the execution of runs."""
    parser.add_argument(
        "--workers", type=_count, metavar="N", help="number of processes (default: one per core)"
    )
    parser.add_argument(
        "--time-limit", type=positive, metavar="SECONDS",
        help="start no further run after this time; the same command continues later",
    )  # fmt: skip
    parser.add_argument(
        "--part", type=part, default=(1, 1), metavar="I/K",
        help="do only part I of K of the runs, to use several machines; "
        "afterwards copy all runs/ folders into one",
    )  # fmt: skip
    parser.add_argument("--no-report", action="store_true", help="do not write report.html")


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strategy", action="append", default=[], metavar="LABEL",
        help="do only the runs of this strategy, named as in the tables (may be repeated)",
    )  # fmt: skip
    parser.add_argument(
        "--problem", action="append", default=[], metavar="LABEL",
        help="do only the runs on this problem, named as in the tables (may be repeated)",
    )  # fmt: skip
    parser.add_argument(
        "--dim", dest="dimension", action="append", default=[], type=_count, metavar="N",
        help="do only the runs with N variables (may be repeated)",
    )  # fmt: skip
    parser.add_argument(  # of 0.1.0
        "--dimension", action="append", default=[], type=_count, help=argparse.SUPPRESS
    )
    parser.add_argument(
        "--seeds",
        type=_count,
        metavar="K",
        help="do only the first K seeds of every problem and strategy",
    )


def effort_of(args: argparse.Namespace) -> Effort:
    """Return what the flags of `add_effort` say."""
    return Effort(args.workers, args.time_limit, args.part)


def require_extras(args: argparse.Namespace) -> None:
    """Report a missing package before the first run, not hours later."""
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
    """Run a command; an error about the user's input becomes a one-line mistake."""
    try:
        return command()
    except BrokenPipeError:  # the reader has gone; the program knows what to do then
        raise
    except (ValueError, TypeError, StoreError, ModuleNotFoundError, OSError) as error:
        raise Mistake(f"{name}: {error}") from error
    except KeyboardInterrupt:
        say(f"mmes {name}: interrupted; run the same command again to continue")
        return INTERRUPTED


def tell(report: Report | None) -> None:
    """Print how many runs were finished, skipped, failed and postponed."""
    if report is None:
        return
    parts = [f"{report.finished} run{'s' if report.finished != 1 else ''} finished"]
    if report.skipped:
        parts.append(f"{report.skipped} already stored")
    if report.failed:
        parts.append(f"{len(report.failed)} failed")
    if report.postponed:
        parts.append(f"{report.postponed} left for later (time limit)")
    print(f"{', '.join(parts)}; {report.seconds:.0f} s\n")


def reproduce(argv: list[str]) -> int:
    """Run ``mmes reproduce`` and return its exit code."""
    parser = Parser(
        prog="mmes reproduce",
        description="Repeat the experiments of the paper and compare the results with the "
        "published ones. After an interruption, the same command continues.",
    )
    parser.add_argument(
        "sections",
        nargs="*",
        metavar="SECTION",
        help=f"sections (default: all): {', '.join(SECTIONS)}",
    )
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument(
        "--quick", dest="extent", action="store_const", const=Extent.QUICK,
        default=Extent.QUICK, help="a short version: minutes on two cores (default)",
    )  # fmt: skip
    extent.add_argument(
        "--full", dest="extent", action="store_const", const=Extent.FULL,
        help="the protocol of the paper: days",
    )  # fmt: skip
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="output folder (default: out/reproduce-quick or out/reproduce-full)",
    )
    parser.add_argument(
        "--list", action="store_true", help="list sections and the runs that are missing, and exit"
    )
    parser.add_argument(
        "--take-over", type=Path, action="append", default=[], metavar="FILE.csv",
        help="import the runs in SECTION/runs.csv of another reproduction (may be repeated)",
    )  # fmt: skip
    _add_choice(parser)
    add_effort(parser)
    args = parser.parsed(argv)
    return guarded(lambda: _reproduce(args), "reproduce")


def _reproduce(args: argparse.Namespace) -> int:
    extent: Extent = args.extent
    sections = chosen_sections(args.sections)
    folder = args.out or Path("out") / f"reproduce-{extent.value}"
    for file in args.take_over:
        planned = [run for section in sections for run in section.runs(extent)]
        count = take_over_section(file, planned, Store(folder / "runs"))
        print(f"{count} runs imported from {file}")
    if args.list:
        for section in sections:
            _list(section, extent, folder, _chosen_effort(args))
        return OK
    require_extras(args)
    names = [section.name for section in sections]
    begin, failed = time.monotonic(), 0
    Laboratory(folder, "reproduction", {"protocol": extent.value, "sections": names}).save()
    for section in sections:
        print(f"== {section.title} ({section.name}, {extent.value})", flush=True)
        for sentence in section.missing(extent):
            print(f"not included: {sentence}")
        report, findings = reproduce_section(section, extent, folder, _chosen_effort(args))
        failed += len(report.failed) if report else 0
        for table in findings.tables:
            print("\n" + to_text(table), flush=True)
        for note in findings.notes:
            print(note)
        tell(report)
    if not args.no_report:
        print(f"report: {write_report(folder)}")
    print(f"finished in {time.monotonic() - begin:.0f} s; results are in {folder}")
    return FAILED_RUNS if failed else OK


def _list(section: Section, extent: Extent, folder: Path, effort: Effort) -> None:
    """Print a section and, if some of its runs are finished, the cells with missing runs."""
    runs = section.runs(extent)
    print(f"{section.name:<12} {section.title} ({len(runs)} runs, {extent.value})")
    finished = Store(folder / "runs").finished()
    wanted = [run for run in runs if effort.wants(run)]
    made = sum(run.key in finished for run in wanted)
    if not made:
        return
    rest = "; missing (finished of planned):" if made < len(wanted) else ""
    print(f"  {made} of {len(wanted)} runs are in {folder}{rest}")
    for (problem, dimension), cells in missing_runs(wanted, finished).items():
        words = [f"{strategy} {count} of {total}" for strategy, (count, total) in cells.items()]
        print(f"  {problem}, n = {dimension}: {', '.join(words)}")


def bench(argv: list[str]) -> int:
    """Run ``mmes bench`` and return its exit code."""
    parser = Parser(
        prog="mmes bench",
        description="Compare strategies on your own problems, as described in a TOML file. "
        "After an interruption, the same command continues.",
    )
    parser.add_argument(
        "plan", type=Path, metavar="PLAN.toml", help="the plan: problems, strategies, seeds, limits"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="output folder (default: out/ and the name of the plan)",
    )
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
        description="Write one HTML page about the results of `mmes reproduce`, `mmes bench` or "
        "`mmes run --out`. It needs no network.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder with the results")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="output file (default: DIR/report.html)"
    )
    args = parser.parsed(argv)

    def command() -> int:
        print(write_report(args.folder, args.out))
        return OK

    return guarded(command, "report")
