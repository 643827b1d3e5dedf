"""Runtime per evaluation against the dimension, the objective excluded."""

from __future__ import annotations

import math

import numpy as np

from mmes.lab.experiments.analysis import paper
from mmes.lab.experiments.analysis.charts import Chart, Series
from mmes.lab.experiments.analysis.paper import Published
from mmes.lab.experiments.analysis.statistics import log_log_slope, quantile
from mmes.lab.experiments.analysis.tables import Comparison, compare
from mmes.lab.experiments.plan import Objective, Strategy, Trial
from mmes.lab.experiments.results.store import TrialResult
from mmes.lab.experiments.sections.section import Extent, Findings, Material, Section
from mmes.lab.experiments.sections.setting import MMES, STRATEGIES, full, seeds, strengths

ELLIPSOID = Objective("ellipsoid", "Elli")
PAPER_DIMENSIONS = (1000, 2500, 5000, 7500, 10000)
MMES_DIMENSIONS = (1000, 10_000, 100_000, 1_000_000)

RIVALS = tuple(s for label, s in STRATEGIES.items() if label != "MMES")
VARIANTS = strengths("MMES l=", "MMES P_a")


def _budget(strategy: Strategy, dimension: int) -> int:
    """Return enough evaluations to time: about a second's worth, at least twelve generations."""
    population = 4 + int(3 * math.log(dimension))
    if strategy.name == "cma-es":
        return 12 * population  # an n x n matrix makes every generation expensive
    return max(12 * population, min(60_000, 300_000_000 // dimension))


def plan(extent: Extent) -> list[Trial]:
    """Every strategy in the paper's dimensions, MMES up to a million variables."""
    dimensions = PAPER_DIMENSIONS if full(extent) else (1000, 10_000)
    cells = [
        (strategy, n)
        for n in dimensions
        for strategy in (*RIVALS, *VARIANTS)
        # Full covariance matrices beyond 2500 variables take hours for one figure.
        if strategy.name != "cma-es" or n <= (10_000 if full(extent) else 1000)
    ]
    cells += [(MMES, n) for n in MMES_DIMENSIONS]
    return [
        Trial(strategy, ELLIPSOID, n, seed, _budget(strategy, n), target=None)
        for seed in seeds(5 if full(extent) else 3)
        for strategy, n in cells
    ]


def _published() -> dict[tuple[str, int, str], Published]:
    cells: dict[tuple[str, int, str], Published] = {}
    for row in paper.load("runtime")["rows"]:
        for column, seconds in row["seconds_per_evaluation"].items():
            cells["Elli", row["n"], column] = Published(1e6 * seconds, None, None)
    return cells


def microseconds(outcome: TrialResult) -> float:
    """Return a run's own processor time per evaluation in microseconds."""
    return 1e6 * outcome.seconds_per_evaluation


def present(material: Material) -> Findings:
    """Return the time of every strategy and the order of growth."""
    data = Comparison(material.runs, material.outcomes, microseconds, "MMES l=4")
    published = _published()
    columns = (*(s.label for s in RIVALS), *(s.label for s in VARIANTS))
    places = [("Elli", n) for n in sorted({*PAPER_DIMENSIONS, *MMES_DIMENSIONS})]
    shown = [
        place
        for place in places
        if any(data.finished(place, c) for c in (*columns, "MMES")) or place[1] <= 10_000
    ]
    table = compare(
        data,
        (
            "runtime",
            "Runtime per evaluation on the ellipsoid",
            "median µs of processor time per evaluation, objective excluded, one thread",
        ),
        published=published,
        columns=(*columns, "MMES"),
        places=shown,
        ranked=False,
        notes=(
            "The paper's times are from an Intel Core i5-10500 at 3.1 GHz; the table prints no "
            "unit, seconds are assumed. The last column is MMES with its defaults, as l=4.",
        ),
    )
    series: list[Series] = []
    slopes: list[str] = []
    for column in (*columns, "MMES"):
        points = {
            n: quantile([microseconds(o) for _, o in data.finished(("Elli", n), column)], 0.5)
            for _, n in places
            if data.finished(("Elli", n), column)
        }
        points = {n: t for n, t in points.items() if t > 0.0}
        if not points:
            continue
        x, y = np.array(list(points), dtype=np.float64), np.array(list(points.values()))
        slope = f", slope {log_log_slope(x, y):.2f}" if x.size > 1 else ""
        series.append(Series(f"{column}{slope}", x, y, kind="points"))
        if slope and column == "MMES":
            slopes.append(
                f"MMES from n = {int(x[0])} to {int(x[-1])}: time per evaluation grows like "
                f"n^{log_log_slope(x, y):.3f}."
            )
    chart = Chart(
        "runtime",
        "Runtime per evaluation",
        "dimension n",
        "µs per evaluation",
        tuple(series),
        x_log=True,
        y_log=True,
    )
    return Findings((table,), (chart,), tuple(slopes))


RUNTIME = Section(
    "runtime",
    "Runtime per evaluation",
    "Processor time per evaluation without the cost of the objective, one run at a time on one "
    "thread; slopes are least-squares lines in log-log scale.",
    present,
    plan,
    workers=1,
)
