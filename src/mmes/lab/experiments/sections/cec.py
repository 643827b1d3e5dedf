"""The CEC'2010 and CEC'2013 large-scale suites: MMES with restarts under their rules."""

from __future__ import annotations

from operator import attrgetter

from mmes.lab.experiments.analysis import paper
from mmes.lab.experiments.analysis.charts import convergence_charts
from mmes.lab.experiments.analysis.tables import Comparison, compare
from mmes.lab.experiments.plan import Objective, Strategy, Trial, suite_trial
from mmes.lab.experiments.sections.section import Extent, Findings, Material, Section
from mmes.lab.experiments.sections.setting import full, seeds

RESTARTED = Strategy("mmes", "MMES", (("restarts", "unlimited"),))
SCALED = Strategy(
    "mmes", "MMES, adaptive scaling", (("restarts", "unlimited"), ("scaling", "adaptive"))
)
BUDGET = 3_000_000
PLAIN = ("f3", "f6", "f10")
"""Rows of 2013 that agree only if the paper ran them with Ackley's function untransformed."""

QUICK = {"cec2010": ("f3", "f4", "f7", "f12", "f19"), "cec2013": ("f3", "f12")}


def objective(suite: str, problem: str) -> Objective:
    """Return a function of a suite under the paper's name for it."""
    year = suite.removeprefix("cec")
    plain = "-plain" if suite == "cec2013" and problem in PLAIN else ""
    dimension = paper.OVERLAPPING.get((suite, problem), 1000)
    return Objective(f"lsgo{year}/{problem}{plain}", problem, dimension=dimension)


def plan(suite: str, extent: Extent) -> list[Trial]:
    """All functions, 25 runs; quick takes one run of a few that are cheap to evaluate."""
    rows = paper.table(suite).rows
    chosen = [f for f, _ in rows] if full(extent) else list(QUICK[suite])
    strategies = (RESTARTED, SCALED) if full(extent) else (RESTARTED,)
    problems = [objective(suite, problem) for problem in chosen]
    return [
        suite_trial(strategy, problem, seed, BUDGET)
        for seed in seeds(25 if full(extent) else 1)
        for problem in problems
        for strategy in strategies
    ]


def present(suite: str, material: Material) -> Findings:
    """Return the suite's table with our MMES beside the published one, and its curves."""
    published = paper.table(suite)
    columns = list(published.algorithms)
    if SCALED.label in {run.strategy.label for run in material.runs}:
        columns.append(SCALED.label)
    year = suite.removeprefix("cec")
    notes = [
        ("The rivals' values are quoted by the paper from the literature; they were not run here.")
    ]
    if suite == "cec2013":
        notes.append(
            "f3, f6 and f10 are run with Ackley's function without transformations, because "
            "only this reproduces the paper's values; its rivals were probably run on the "
            "transformed one, so these rows compare two different functions."
        )
    table = compare(
        Comparison(material.runs, material.outcomes, attrgetter("best")),
        (suite, f"CEC'{year} large-scale suite", "median best value after 3e6 evaluations"),
        published=published.cells,
        columns=columns,
        places=published.rows,
        notes=notes,
    )
    charts = convergence_charts(
        material.runs,
        material.outcomes,
        lambda problem, _: (f"{suite}-{problem}", f"CEC'{year} {problem}"),
    )
    return Findings((table,), charts)


def _section(suite: str) -> Section:
    year = suite.removeprefix("cec")
    return Section(
        suite,
        f"CEC'{year} suite",
        "Best value after 3e6 evaluations, start uniform in the box, σ₀ = 0.3 of its width, "
        "clipped candidates enter the population; restarts with doubled population and damping "
        "when the best value stagnates. The full protocol makes 25 runs of every function, with "
        "and without adaptive scaling; the quick one makes a single run of a few.",
        lambda material: present(suite, material),
        lambda extent: plan(suite, extent),
    )


CEC2010, CEC2013 = _section("cec2010"), _section("cec2013")
