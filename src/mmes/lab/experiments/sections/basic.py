"""The basic problems: 1000 variables, and scalability up to 10000."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

import numpy as np

from mmes.lab.experiments.analysis import paper
from mmes.lab.experiments.analysis.charts import (
    Chart,
    Series,
    convergence_charts,
    runtime_distribution,
    shared_runs,
)
from mmes.lab.experiments.analysis.statistics import quantile
from mmes.lab.experiments.analysis.tables import Comparison, Heading, compare
from mmes.lab.experiments.plan import Objective, Strategy, Trial
from mmes.lab.experiments.sections.section import Extent, Findings, Material, Section
from mmes.lab.experiments.sections.setting import (
    MMES,
    PROBLEMS,
    STRATEGIES,
    basic_runs,
    full,
)

COST = "median evaluations to f ≤ 1e-8 (runs that reached it / runs, where some did not)"
QUICK_PAIR = 3.0e5
"""The quick protocol runs a pair of problem and strategy if the paper needed at most this much."""
QUICK_ROTATED = 2.0e5
"""The same on rotated problems, where an evaluation costs a product with an n x n matrix."""


def comparison(material: Material, chosen: str = "MMES") -> Comparison:
    """Return the section's runs as a comparison by evaluations to the target."""
    return Comparison(material.runs, material.outcomes, attrgetter("cost"), chosen)


def pairs_of(
    problems: Iterable[str], strategies: Iterable[Strategy]
) -> list[tuple[Objective, Strategy]]:
    """Return every problem, by its label, with every strategy."""
    columns = list(strategies)
    return [(PROBLEMS[problem], strategy) for problem in problems for strategy in columns]


def curves(material: Material, name: str) -> tuple[Chart, ...]:
    """Return the convergence curves of a section."""
    return convergence_charts(
        material.runs,
        material.outcomes,
        lambda problem, n: (f"{name}-{problem.lower()}-{n}", f"{problem}, n = {n}"),
    )


def costs(
    material: Material, heading: Heading, chosen: str = "MMES", notes: tuple[str, ...] = ()
) -> Findings:
    """Return the evaluations of all strategies, tested against a chosen one, and the curves."""
    table = compare(comparison(material, chosen), heading, notes=notes)
    return Findings((table,), curves(material, heading[0]))


# --- 1000 variables (Table S-I) ---------------------------------------------------------------


FITTED = Strategy("lm-cma", "LM-CMA, fitted", (("preset", "fitted"),))
"""The published LM-CMA does not reproduce the paper's figures; this variant was fitted to them."""


def plan_1000(extent: Extent) -> list[Trial]:
    """All strategies on all ten problems; quick takes the pairs that the paper solved soonest."""
    if full(extent):
        pairs = pairs_of(PROBLEMS, [*STRATEGIES.values(), FITTED])
        return basic_runs(pairs, dimension=1000, count=20, max_evaluations=1e8)
    table = paper.table("basic_1000d")
    chosen: list[tuple[Objective, Strategy]] = []
    for objective, strategy in pairs_of(PROBLEMS, STRATEGIES.values()):
        published = table.cells[objective.label, 1000, strategy.label].median
        limit = QUICK_ROTATED if objective.label.startswith("Rot") else QUICK_PAIR
        if published is not None and published <= limit:
            chosen.append((objective, strategy))
    chosen += pairs_of(["DiffPow", "Discus"], [MMES])
    return basic_runs(chosen, dimension=1000, count=3, max_evaluations=5e6)


def present_1000(material: Material) -> Findings:
    """Return Table S-I with ours in it, the curves, and the distribution of runtimes."""
    published = paper.table("basic_1000d")
    extra = [FITTED.label] if any(r.strategy == FITTED for r in material.runs) else []
    table = compare(
        comparison(material),
        ("basic-1000", "Basic problems, n = 1000", COST),
        published=published.cells,
        columns=[*published.algorithms, *extra],
        places=published.rows,
    )
    charts = curves(material, "basic-1000")
    shared = shared_runs(material.runs, material.outcomes)
    ecdf = runtime_distribution(
        shared, material.outcomes, name="basic-1000-ecdf", title="Runtime distribution, n = 1000"
    )
    if not ecdf.series:
        return Findings((table,), charts)
    problems = ", ".join(dict.fromkeys(run.objective.label for run in shared))
    notes = (
        (
            "The runtime distribution covers the problems on which every strategy was run: "
            f"{problems}."
        ),
    )
    return Findings((table,), (ecdf, *charts), notes)


BASIC_1000 = Section(
    "basic",
    "Basic problems in 1000 dimensions",
    "Ten problems of 1000 variables, five of them rotated: evaluations until f falls to 1e-8 "
    "from a start uniform in [-5, 5]^n with σ₀ = 3 (Table S-I of the paper, 20 runs, limit "
    "1e8). The quick protocol makes 3 runs of the pairs that need few evaluations.",
    present_1000,
    plan_1000,
)

# --- scalability (Table S-II) -----------------------------------------------------------------

LARGE = ("LM-MA", "LM-CMA", "Rm-ES", "SDA-ES", "MMES")


def plan_scalability(extent: Extent) -> list[Trial]:
    """Five problems in four dimensions; quick takes MMES on the fast ones, with fewer seeds."""
    runs: list[Trial] = []
    if full(extent):
        unrotated = [label for label in PROBLEMS if not label.startswith("Rot")]
        pairs = pairs_of(unrotated, [STRATEGIES[label] for label in LARGE])
        for n in (2500, 5000, 7500, 10000):
            runs += basic_runs(pairs, dimension=n, count=20, max_evaluations=2e8)
        return runs
    for n in (2500, 5000):
        runs += basic_runs(pairs_of(["Cigar"], [MMES]), dimension=n, count=2, max_evaluations=5e6)
    runs += basic_runs(
        pairs_of(["Cigar"], [STRATEGIES["Rm-ES"]]), dimension=2500, count=1, max_evaluations=5e6
    )
    runs += basic_runs(pairs_of(["DiffPow"], [MMES]), dimension=2500, count=1, max_evaluations=1e7)
    return runs


def present_scalability(material: Material) -> Findings:
    """Return Table S-II with ours in it, and evaluations of MMES against the dimension."""
    published = paper.table("scalability")
    data = comparison(material)
    table = compare(
        data,
        ("scalability", "Scalability, n = 2500 to 10000", COST),
        published=published.cells,
        columns=published.algorithms,
        places=published.rows,
    )
    return Findings((table,), (_growth(data, published),))


def _growth(data: Comparison, published: paper.PublishedTable) -> Chart:
    """Return evaluations of MMES against n: ours as points, the paper's dashed."""
    series: list[Series] = []
    for problem in dict.fromkeys(problem for problem, _ in published.rows):
        dimensions = [n for name, n in published.rows if name == problem]
        printed = [published.cells[problem, n, "MMES"].median or np.nan for n in dimensions]
        x = np.array(dimensions, dtype=np.float64)
        ours = {
            n: quantile([o.cost for _, o in data.finished((problem, n), "MMES")], 0.5)
            for n in dimensions
            if data.finished((problem, n), "MMES")
        }
        if ours:
            points = np.array(list(ours), dtype=np.float64), np.array(list(ours.values()))
            series.append(Series(problem, *points, kind="points"))
        series.append(Series(problem, x, np.array(printed), kind="points", dashed=True))
    return Chart(
        "scalability-mmes",
        "MMES: evaluations against dimension",
        "dimension n",
        "median evaluations to 1e-8",
        tuple(series),
        x_log=True,
        y_log=True,
        note="Solid: ours; dashed: the paper's.",
    )


SCALABILITY = Section(
    "scalability",
    "Scalability up to 10000 dimensions",
    "The five unrotated problems with 2500 to 10000 variables (Table S-II of the paper, 20 runs, "
    "limit 2e8 evaluations). The quick protocol shows MMES on the fastest.",
    present_scalability,
    plan_scalability,
)
