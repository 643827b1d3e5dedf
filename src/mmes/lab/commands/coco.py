"""``mmes coco``: a strategy on a suite of COCO."""

from __future__ import annotations

import argparse

from mmes.cli.arguments import Parser, integers
from mmes.cli.status import OK, Mistake, say
from mmes.lab.coco import Experiment, run_experiment
from mmes.lab.commands.laboratory import part, positive

_DESCRIPTION = """\
Run a strategy on a COCO suite and write data that cocopp can read.

  mmes coco bbob-largescale --dim 20,40,80 --budget 1e4 --out results
  mmes coco bbob-largescale --budget 1e4 --batch 3/8          one of eight machines or processes
  python -m cocopp results/exdata/...                         tables and figures

Each problem is run, with restarts, until COCO's last target is reached or the budget is spent.
"""


def coco(argv: list[str]) -> int:
    """Run ``mmes coco`` and return the exit code."""
    parser = Parser(prog="mmes coco", usage="mmes coco SUITE [flags]", description=_DESCRIPTION)
    parser.add_argument("suite", metavar="SUITE", help="bbob, bbob-largescale, bbob-boxed, ...")
    for flag, name, what in (
        ("--dim", "dimensions", "numbers of variables, such as 20,40 (default: all)"),
        ("--functions", "functions", "functions, such as 1,2 or 1-5 (default: all)"),
        ("--instances", "instances", "instances, such as 1-15 (default: all)"),
        ("--dimensions", "dimensions", argparse.SUPPRESS),  # of 0.1.0
    ):
        parser.add_argument(flag, dest=name, type=integers, default=(), metavar="N,...", help=what)
    parser.add_argument(
        "--budget",
        type=positive,
        default=100.0,
        metavar="X",
        help="budget of each problem, in evaluations per variable (default: 100)",
    )
    parser.add_argument("--strategy", metavar="NAME", help="the strategy (default: auto)")
    parser.add_argument("--name", help="name of the algorithm in the data")
    parser.add_argument(
        "--seed", type=_integer, default=1, metavar="N", help="the seed (default: 1)"
    )
    parser.add_argument(
        "--batch", type=part, default=(1, 1), metavar="I/K", help="run only part I of K"
    )
    parser.add_argument("--out", default="mmes-coco", metavar="FOLDER", help="(default: mmes-coco)")
    given = vars(parser.parsed(argv))
    out = given.pop("out")
    try:
        experiment = Experiment(**given)
        folder = run_experiment(experiment, out)
    except (ValueError, RuntimeError) as error:
        raise Mistake(str(error)) from error
    print(folder)
    say(f"tables and figures: python -m cocopp {folder}")
    return OK


def _integer(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be an integer >= 0, not {text!r}")
    return int(text)
