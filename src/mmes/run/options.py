"""The options of a run, but not of its search: limits, evaluation, checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mmes.base.options import Option
from mmes.evaluate.options import EVALUATION

LIMITS = (
    Option("target", float, "Stop when a value at or below this is found.", default_text="none"),
    Option(
        "max_evaluations",
        int,
        "Budget: never one evaluation more.",
        default_text="unlimited",
        low=1,
    ),
    Option(
        "max_generations",
        int,
        "Stop after this many generations, over all starts.",
        default_text="unlimited",
        low=1,
    ),
    Option(
        "time_limit",
        float,
        "Seconds; asked after every evaluation. A resumed run has them anew.",
        default_text="unlimited",
        low=0,
        low_open=True,
    ),
    Option(
        "restarts",
        int,
        "Restarts after stagnation, each from a new point with population size and damping "
        "doubled.",
        default=0,
        low=0,
        choices=("unlimited",),
    ),
    Option(
        "evaluate_x0",
        bool,
        "Evaluate a start point that is given first, so that no result is worse, unless noise "
        "rules; mmes, sda-es and most competitors do so in any case.",
        default=True,
        expert=True,
    ),
    Option(
        "noise",
        str,
        "'auto' finds out whether the objective is noisy, and answers with larger populations; "
        "'on' asks at once, and reports averages in any case; 'off' never evaluates a point again.",
        default="auto",
        choices=("auto", "yes", "no"),
        spelt={"yes": "on", "no": "off"},
    ),
    Option(
        "constraint_tolerance",
        float,
        "A point is feasible where no constraint is violated by more than this.",
        default=1e-6,
        low=0,
    ),
    Option(
        "returns_constraints",
        bool,
        "Whether the objective returns (value, constraints) instead of a value.",
        default=False,
    ),
    Option(
        "reevaluations",
        int,
        "At the end evaluate the best point and the mean this often again, within the budget and "
        "the time limit.",
        default_text="10 for a noisy objective, else 0",
        low=0,
    ),
)


CHECKPOINTS = (
    Option(
        "checkpoint_seconds",
        float,
        "Seconds between two checkpoints, or ten times what writing one takes if that is more.",
        default=60.0,
        low=0,
    ),
    Option(
        "checkpoint_generations",
        int,
        "Write a checkpoint every so many generations instead.",
        default_text="off",
        low=1,
        expert=True,
    ),
    Option(
        "checkpoint_strict",
        bool,
        "Whether a checkpoint that cannot be written ends the run, instead of one warning.",
        default=False,
        expert=True,
    ),
    Option(
        "resume",
        str,
        "What to do if the checkpoint exists: 'never' refuses to start, 'auto' goes on from it.",
        default="never",
        choices=("never", "auto"),
    ),
)

RUN_OPTIONS = LIMITS + EVALUATION + CHECKPOINTS


def check_together(limits: Mapping[str, Any], checkpoint: object) -> None:
    """Raise ValueError where options that are right by themselves contradict each other."""
    ends = ("target", "max_evaluations", "max_generations", "time_limit")
    if limits["restarts"] == "unlimited" and all(limits[name] is None for name in ends):
        raise ValueError(
            "restarts='unlimited' needs a target, max_evaluations, max_generations or time_limit"
        )
    budget, again = limits["max_evaluations"], limits["reevaluations"] or 0
    if budget is not None and 2 * again >= budget:
        raise ValueError(
            f"max_evaluations={budget} leaves nothing for the search: reevaluations={again} take "
            f"{2 * again}"
        )
    if checkpoint is None and limits["resume"] == "auto":
        raise ValueError("resume='auto' needs checkpoint=, the file to go on from")
