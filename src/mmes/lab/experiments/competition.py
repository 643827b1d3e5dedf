"""A competition: strategies on a suite under its rules, every run stored when it ends.

The rules are those of the CEC large-scale competitions: a budget of 3e6 evaluations, the best value
recorded at 1.2e5, 6e5 and 3e6 of them, 25 runs, starts uniform in the box.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mmes.base.loading import is_location
from mmes.checkpoint.files import write_text
from mmes.lab.experiments.analysis.standings import standings
from mmes.lab.experiments.availability import refuse_mistakes, strategy_for
from mmes.lab.experiments.objectives import fixed_dimension, named_file
from mmes.lab.experiments.plan import Objective, PlanError, Strategy, Trial, suite_trial
from mmes.lab.experiments.reproduce import Effort, Laboratory, carry_out, write_findings
from mmes.lab.experiments.results.single_runs import runs_as_csv
from mmes.lab.experiments.results.store import Store, TrialResult
from mmes.lab.experiments.runner import Report
from mmes.lab.experiments.sections import Findings
from mmes.problems.suite import CHECKPOINTS
from mmes.strategies import is_auto

SUITES = {
    "lsgo2010": tuple(f"f{number}" for number in range(1, 21)),
    "lsgo2013": tuple(f"f{number}" for number in range(1, 16)),
}
"""The functions of each suite."""

DIMENSION = 1000
"""About the number of variables of every function, by which "auto" chooses."""

LABELS = {
    "auto": "auto",
    "mmes": "MMES",
    "adaptive": "AdaptiveMMES",
    "cma-es": "CMA-ES",
    "active-cma": "active CMA-ES",
    "sep-cma": "sep-CMA",
    "lm-ma": "LM-MA",
    "lm-cma": "LM-CMA",
    "rm-es": "Rm-ES",
    "sda-es": "SDA-ES",
    "decc-g": "DECC-G",
    "decc-dg": "DECC-DG",
    "ccpso2": "CCPSO2",
    "ma-sw-chains": "MA-SW",
    "mos": "MOS",
    "shade-ils": "SHADE-ILS",
}
"""How tables call the strategies: as the paper does, so that quoted medians find their column."""


@dataclass(frozen=True)
class Competition:
    """What is run."""

    suite: str  # One of `SUITES`.
    strategies: tuple[Strategy, ...]  # The strategies to compare.
    functions: tuple[str, ...] = ()  # Functions of the suite, such as ``"f1"``.
    # One run of every strategy on every function for each seed.
    seeds: tuple[int, ...] = tuple(range(1, 26))
    budget: int = CHECKPOINTS[-1]  # Evaluations of a run.
    # Evaluations at which the best value is recorded; the budget is always one of them.
    checkpoints: tuple[int, ...] = CHECKPOINTS

    def __post_init__(self) -> None:
        if self.suite not in SUITES:
            raise PlanError(f"suite must be one of {', '.join(SUITES)}, not {self.suite!r}")
        known = SUITES[self.suite]
        for function in self.functions:
            if function not in known:
                raise PlanError(
                    f"function must be one of {known[0]} to {known[-1]} of {self.suite}, "
                    f"not {function!r}"
                )
        object.__setattr__(self, "functions", self.functions or known)
        inside = {mark for mark in self.checkpoints if 0 < mark < self.budget}
        object.__setattr__(self, "checkpoints", (*sorted(inside), self.budget))

    def runs(self) -> tuple[Trial, ...]:
        """Return every run; seeds are outermost, so that no cell has two before all have one."""
        return tuple(
            suite_trial(strategy, objective, seed, self.budget, record_at=self.checkpoints)
            for seed in self.seeds
            for objective in (function_of(self.suite, name) for name in self.functions)
            for strategy in self.strategies
        )


def function_of(suite: str, name: str) -> Objective:
    """Return a function of a suite."""
    problem = f"{suite}/{name}"
    return Objective(problem, name, dimension=fixed_dimension(problem))


def competitor(name: str, options: Mapping[str, Any]) -> Strategy:
    """Return a strategy with restarts, unless it sets its own.

    Competitors restart themselves, if at all; evolution strategies
    start again with twice the population when the best value stagnates.
    """
    made = strategy_for(name, DIMENSION)
    known = "auto" if is_auto(name) else made.name
    given = dict(options)
    label = str(given.pop("label", ""))
    if not label:
        words = "".join(f", {key}={value}" for key, value in sorted(given.items()))
        label = LABELS.get(known, named_file(name)[1]) + words
    if not made.needs_box:
        given.setdefault("restarts", "unlimited")
    return Strategy(name if is_location(name) else known, label, tuple(sorted(given.items())))


def compete(competition: Competition, folder: Path, effort: Effort) -> tuple[Report, Findings]:
    """Make the runs that are not stored yet, and write tables, figures and the list of runs."""
    runs = competition.runs()
    refuse_mistakes(runs)
    about = asdict(competition) | {
        "name": f"Competition on {competition.suite}",
        "planned": len(runs),
    }
    laboratory = Laboratory(folder, "competition", about)
    laboratory.save()
    report = carry_out(runs, laboratory.store, effort, effort.workers)
    stored, results = finished_runs(laboratory.store, competition.suite, competition.budget)
    write_text(folder / "runs.csv", runs_as_csv(stored, results, competition.checkpoints))
    findings = standings(competition.suite, stored, results, competition.checkpoints)
    write_findings(findings, folder / "tables")
    return report, findings


def finished_runs(
    store: Store, suite: str, budget: int
) -> tuple[list[Trial], dict[str, TrialResult]]:
    """Return all stored runs of a suite with a budget, in the order of the suite."""
    order = SUITES[suite]
    runs = [
        replace(run, strategy=_in_text(run.strategy))
        for run in store.runs()
        if run.max_evaluations == budget
        and run.objective.name.startswith(f"{suite}/")
        and run.objective.label in order
    ]
    known = list(LABELS.values())
    runs.sort(
        key=lambda run: (
            order.index(run.objective.label),
            known.index(run.strategy.label) if run.strategy.label in known else len(known),
            run.strategy.label,
            run.seed,
        )
    )
    return runs, store.outcomes(runs)


def _in_text(strategy: Strategy) -> Strategy:
    """Return a stored strategy with its current label, unless the user chose another."""
    unlabelled = strategy.label == strategy.name
    return replace(strategy, label=LABELS.get(strategy.name, "")) if unlabelled else strategy
