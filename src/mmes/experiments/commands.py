"""The commands ``mmes reproduce``, ``mmes bench`` and ``mmes report``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from mmes.experiments.formats import to_text
from mmes.experiments.plan import read_plan
from mmes.experiments.reproduce import (
    Effort,
    Laboratory,
    chosen_sections,
    compare_plan,
    reproduce_section,
)
from mmes.experiments.runner import Report
from mmes.experiments.sections import SECTIONS, Protocol
from mmes.experiments.store import StoreError

FAILED_RUNS, USER_ERROR, INTERRUPTED = 1, 2, 130
"""Exit codes: some runs failed; the request cannot be carried out; stopped by the user."""


def _write_report(folder: Path, target: Path | None = None) -> Path:
    # By name, since the report is the layer above the experiments.
    return import_module("mmes.report").write_report(folder, target)


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


def _add_effort(parser: argparse.ArgumentParser) -> None:
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
        "--dimension", action="append", default=[], type=_count, metavar="N",
        help="make only the runs in this dimension (may be repeated)",
    )  # fmt: skip
    parser.add_argument(
        "--seeds", type=_count, metavar="K", help="make only the first K seeds of every cell"
    )


def _effort(args: argparse.Namespace) -> Effort:
    return Effort(
        args.workers,
        args.time_limit,
        args.part,
        tuple(getattr(args, "strategy", ())),
        tuple(getattr(args, "problem", ())),
        tuple(getattr(args, "dimension", ())),
        getattr(args, "seeds", None),
    )


def reproduce_parser(parser: argparse.ArgumentParser | None = None) -> argparse.ArgumentParser:
    """Return the parser of ``mmes reproduce``, or add its arguments to a given one."""
    parser = parser or argparse.ArgumentParser(
        prog="mmes reproduce",
        description="Reproduce the paper's experiments, ours beside the published numbers. "
        "Stopped or killed, it goes on where it was when started again.",
    )
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"all by default: {', '.join(SECTIONS)}"
    )
    protocol = parser.add_mutually_exclusive_group()
    protocol.add_argument(
        "--quick", dest="protocol", action="store_const", const=Protocol.QUICK,
        default=Protocol.QUICK, help="minutes on two cores (the default)",
    )  # fmt: skip
    protocol.add_argument(
        "--full", dest="protocol", action="store_const", const=Protocol.FULL,
        help="the published protocol: days",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder (out/reproduce-PROTOCOL)")
    parser.add_argument("--list", action="store_true", help="list sections and runs, make none")
    _add_choice(parser)
    _add_effort(parser)
    return parser


def bench_parser(parser: argparse.ArgumentParser | None = None) -> argparse.ArgumentParser:
    """Return the parser of ``mmes bench``, or add its arguments to a given one."""
    parser = parser or argparse.ArgumentParser(
        prog="mmes bench",
        description="Compare strategies on your own problems, as a plan in TOML says. "
        "Stopped or killed, it goes on where it was when started again.",
    )
    parser.add_argument("plan", type=Path, metavar="PLAN.toml", help="what to run")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder (out/NAME-OF-THE-FILE)")
    _add_effort(parser)
    return parser


def report_parser(parser: argparse.ArgumentParser | None = None) -> argparse.ArgumentParser:
    """Return the parser of ``mmes report``, or add its arguments to a given one."""
    parser = parser or argparse.ArgumentParser(
        prog="mmes report",
        description="Write one HTML file about a folder of `mmes reproduce`, `mmes bench` or "
        "`mmes run --out`; it opens offline in any browser.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file (DIR/report.html)")
    return parser


def _guarded(command: Callable[[], int], name: str) -> int:
    """Turn a user's mistake into one sentence and an exit code."""
    try:
        return command()
    except BrokenPipeError:  # the reader has gone; the program knows what to do then
        raise
    except (ValueError, TypeError, StoreError, ModuleNotFoundError, OSError) as error:
        print(f"mmes {name}: {error}", file=sys.stderr)
        return USER_ERROR
    except KeyboardInterrupt:
        print(f"mmes {name}: stopped; start it again to go on", file=sys.stderr)
        return INTERRUPTED


def _tell(report: Report | None) -> None:
    if report is None:
        return
    parts = [f"{report.finished} runs made"]
    if report.skipped:
        parts.append(f"{report.skipped} were there")
    if report.failed:
        parts.append(f"{len(report.failed)} failed")
    if report.postponed:
        parts.append(f"{report.postponed} left for later (time limit)")
    print(f"{', '.join(parts)}; {report.seconds:.0f} s\n")


def reproduce(argv: Sequence[str] | None = None) -> int:
    """Run ``mmes reproduce`` and return its exit code."""
    args = reproduce_parser().parse_args(argv)
    return _guarded(lambda: _reproduce(args), "reproduce")


def _reproduce(args: argparse.Namespace) -> int:
    protocol: Protocol = args.protocol
    sections = chosen_sections(args.sections)
    if args.list:
        for section in sections:
            count = len(section.runs(protocol))
            print(f"{section.name:<12} {section.title} ({count} runs, {protocol.value})")
        return 0
    folder = args.out or Path("out") / f"reproduce-{protocol.value}"
    names = [section.name for section in sections]
    begin, failed = time.monotonic(), 0
    Laboratory(folder, "reproduction", {"protocol": protocol.value, "sections": names}).save()
    for section in sections:
        print(f"== {section.title} ({section.name}, {protocol.value})", flush=True)
        for sentence in section.missing(protocol):
            print(f"left out: {sentence}")
        report, findings = reproduce_section(section, protocol, folder, _effort(args))
        failed += len(report.failed) if report else 0
        for table in findings.tables:
            print("\n" + to_text(table), flush=True)
        for note in findings.notes:
            print(note)
        _tell(report)
    if not args.no_report:
        print(f"report: {_write_report(folder)}")
    print(f"all in {time.monotonic() - begin:.0f} s, under {folder}")
    return FAILED_RUNS if failed else 0


def bench(argv: Sequence[str] | None = None) -> int:
    """Run ``mmes bench`` and return its exit code."""
    args = bench_parser().parse_args(argv)
    return _guarded(lambda: _bench(args), "bench")


def _bench(args: argparse.Namespace) -> int:
    plan = read_plan(args.plan)
    folder = args.out or Path("out") / args.plan.stem
    report, findings = compare_plan(plan, folder, _effort(args))
    for table in findings.tables:
        print(to_text(table))
    _tell(report)
    if not args.no_report:
        print(f"report: {_write_report(folder)}")
    return FAILED_RUNS if report.failed else 0


def report(argv: Sequence[str] | None = None) -> int:
    """Run ``mmes report`` and return its exit code."""
    args = report_parser().parse_args(argv)

    def command() -> int:
        print(_write_report(args.folder, args.out))
        return 0

    return _guarded(command, "report")


COMMANDS: dict[str, Callable[[Sequence[str] | None], int]] = {
    "reproduce": reproduce,
    "bench": bench,
    "report": report,
}
"""The commands by name, for the program ``mmes`` to mount."""
