"""Sparse spectral clustering: MMES on the Grassmann manifold against a subgradient method."""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from mmes.lab.experiments.analysis import paper
from mmes.lab.experiments.analysis.charts import Chart, Series
from mmes.lab.experiments.analysis.paper import Published
from mmes.lab.experiments.analysis.statistics import Mark, quantile
from mmes.lab.experiments.analysis.tables import (
    Cell,
    Comparison,
    Line,
    Table,
    compare,
)
from mmes.lab.experiments.objectives import CLUSTERING as PREFIX
from mmes.lab.experiments.plan import Objective, Strategy, Trial
from mmes.lab.experiments.sections.section import Extent, Findings, Material, Section
from mmes.lab.experiments.sections.setting import MMES, full, seeds

METHODS = (MMES, Strategy("gsc", "GSC"), Strategy("smoothed", "smoothed"))
QUICK_SETS, QUICK_BETAS = ("ALLAML",), (0.01, 0.0005)
BUDGET = 300_000
SPREAD = ("runs", "smallest", "largest", "evaluations", "smallest of smoothed")


def _dimensions() -> dict[str, int]:
    return {d["name"]: d["search_dimension"] for d in paper.load("ssc_datasets")["data_sets"]}


def objective(name: str, beta: float) -> Objective:
    """Return the clustering objective of a data set with a weight of the sparsity."""
    return Objective(f"{PREFIX}{name}", f"{name}, β = {beta:g}", (("beta", beta),))


def plan(extent: Extent) -> list[Trial]:
    """All data sets and betas, 20 runs; quick takes one small set, two betas, two runs."""
    everything = full(extent)
    names = [n for n in paper.load("ssc")["data_sets"] if everything or n in QUICK_SETS]
    betas = paper.load("ssc")["betas"] if everything else QUICK_BETAS
    dimensions = _dimensions()
    return [
        Trial(method, objective(name, beta), dimensions[name], seed, BUDGET, None, None, None)
        for seed in seeds(20 if everything else 2)
        for name in names
        for beta in betas
        for method in METHODS
    ]


def published() -> dict[tuple[str, int, str], Published]:
    """Return the paper's medians by data set and beta."""
    cells: dict[tuple[str, int, str], Published] = {}
    dimensions = _dimensions()
    for name, rows in paper.load("ssc")["data_sets"].items():
        for row in rows:
            place = objective(name, row["beta"]).label, dimensions[name]
            best = row["better_as_printed"]
            for method in ("MMES", "GSC"):
                mark = Mark(row["mark"]) if method == "GSC" else None
                shade = "best" if best == method else None
                cells[(*place, method)] = Published(row[method], mark, shade)
    return cells


def present(material: Material) -> Findings:
    """Return the table of objectives, and how far ours lies from the paper's."""
    cells = published()
    places = list(dict.fromkeys(key[:2] for key in cells))
    data = Comparison(material.runs, material.outcomes, attrgetter("best"))
    run_places = set(data.places())
    table = compare(
        data,
        ("clustering", "Sparse spectral clustering", "median objective"),
        published=cells,
        columns=[method.label for method in METHODS],
        places=[place for place in places if place in run_places],
        notes=(
            "The smoothed trust region is not in the paper; it is a reference for problems with "
            "gradients.",
            "Four of the paper's 18 data sets are not available and were not run.",
        ),
    )
    return Findings((table, _spread(data)), (_ratios(data, cells),))


def _spread(data: Comparison) -> Table:
    """Return what the medians hide: the number of runs, their extremes, and what MMES spent."""
    lines: list[Line] = []
    for place in data.places():
        found = [result for _, result in data.finished(place, "MMES")]
        smoothed = [result.best for _, result in data.finished(place, "smoothed")]
        values = [result.best for result in found]
        spent = [float(result.evaluations) for result in found]
        numbers = (
            float(len(found)) if found else None,
            min(values, default=None),
            max(values, default=None),
            quantile(spent, 0.5) if spent else None,
            min(smoothed, default=None),
        )
        cells = {name: Cell(ours=x) for name, x in zip(SPREAD, numbers, strict=True)}
        lines.append(Line(place[0], cells))
    return Table(
        "clustering-spread",
        "Sparse spectral clustering: spread and effort",
        "extremes of the objective over the runs, and the median number of evaluations",
        SPREAD,
        tuple(lines),
    )


def _ratios(data: Comparison, cells: dict[tuple[str, int, str], Published]) -> Chart:
    """Return our medians over the paper's, against beta."""
    series: list[Series] = []
    for column in ("MMES", "GSC"):
        points: list[tuple[float, float]] = []
        for place in data.places():
            found = data.finished(place, column)
            printed = cells[(*place, column)].median
            if found and printed:
                beta = float(dict(found[0][0].objective.options)["beta"])
                points.append((beta, quantile([o.best for _, o in found], 0.5) / printed))
        if points:
            x, y = np.array(sorted(points)).T
            series.append(Series(column, x, y, kind="points"))
    return Chart(
        "clustering-ratios",
        "Ours over the paper's, by β",
        "β",
        "median objective / published median",
        tuple(series),
        x_log=True,
    )


CLUSTERING = Section(
    "clustering",
    "Sparse spectral clustering",
    "Tr(U'LU) + β‖UU'‖₁ over subspaces: MMES on the Grassmann manifold against the Riemannian "
    "trust region with subgradients (GSC), 3e5 evaluations, random starts.",
    present,
    plan,
)
