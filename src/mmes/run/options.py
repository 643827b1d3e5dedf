"""The options of a run, but not of its search: limits, evaluation, checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mmes.base.options import Option
from mmes.evaluate.options import EVALUATION

LIMITS = (
    Option(
        "target",
        float,
        "Stop as soon as a value at or below this is found, and found again where its point is "
        "evaluated once more. For a noisy objective, averages decide.",
        default_text="none",
    ),
    Option(
        "max_evaluations",
        int,
        "Maximum number of evaluations; never exceeded.",
        default_text="unlimited",
        low=1,
    ),
    Option(
        "max_generations",
        int,
        "Maximum number of generations, counted over all starts.",
        default_text="unlimited",
        low=1,
    ),
    Option(
        "time_limit",
        float,
        "Time limit in seconds, checked after every evaluation. A resumed run gets the full limit "
        "again.",
        default_text="unlimited",
        low=0,
        low_open=True,
    ),
    Option(
        "restarts",
        int,
        "Maximum number of restarts after the search has stopped. Each starts from a new point and "
        "doubles population size and damping.",
        default=0,
        low=0,
        choices=("unlimited",),
    ),
    Option(
        "evaluate_x0",
        bool,
        "Evaluate x0 before the first generation, so that the result is never worse than x0 "
        "(unless the objective is noisy). mmes, sda-es and most competitors always do this.",
        default=True,
        expert=True,
    ),
    Option(
        "noise",
        str,
        "'auto' detects noise and increases the population if there is any; 'on' tests for it at "
        "the start and always reports averages; 'off' never evaluates a point twice.",
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
        "Number of times that the best point, the mean and, under noise, its average are evaluated "
        "again at the end, within the evaluation and time limits.",
        default_text="10 for a noisy objective, else 0",
        low=0,
    ),
)


CHECKPOINTS = (
    Option(
        "checkpoint_seconds",
        float,
        "Seconds between two checkpoints, but at least ten times as long as writing one takes.",
        default=60.0,
        low=0,
    ),
    Option(
        "checkpoint_generations",
        int,
        "Write a checkpoint every this many generations, instead of by time.",
        default_text="off",
        low=1,
        expert=True,
    ),
    Option(
        "checkpoint_strict",
        bool,
        "Stop the run if a checkpoint cannot be written, instead of issuing one warning.",
        default=False,
        expert=True,
    ),
    Option(
        "resume",
        str,
        "What to do if the checkpoint file exists: 'never' refuses to start, 'auto' resumes it.",
        default="never",
        choices=("never", "auto"),
    ),
)

VALIDATION = (
    Option(
        "validation_every",
        int,
        "Generations between two calls of `validation`. It is also called before the first "
        "generation and at the end.",
        default=10,
        low=1,
    ),
    Option(
        "patience",
        int,
        "Stop after this many validations in a row without improvement.",
        default_text="unlimited",
        low=1,
    ),
)

RUN_OPTIONS = LIMITS + VALIDATION + EVALUATION + CHECKPOINTS


def check_together(limits: Mapping[str, Any], checkpoint: object) -> None:
    """Raise ValueError if options contradict each other."""
    ends = ("target", "max_evaluations", "max_generations", "time_limit")
    if limits["restarts"] == "unlimited" and all(limits[name] is None for name in ends):
        raise ValueError(
            "restarts='unlimited' needs a target, max_evaluations, max_generations or time_limit"
        )
    budget, again = limits["max_evaluations"], limits["reevaluations"] or 0
    if budget is not None and 2 * again >= budget:
        raise ValueError(
            f"max_evaluations={budget} must be larger than 2 * reevaluations = {2 * again}, or "
            "nothing is left for the search"
        )
    if checkpoint is None and limits["resume"] == "auto":
        raise ValueError("resume='auto' needs checkpoint=, the file to resume from")
