"""The result of a competition: statistics, medians with ranks, points, and curves."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mmes.lab.experiments.analysis import paper
from mmes.lab.experiments.analysis.charts import convergence_charts, values_at
from mmes.lab.experiments.analysis.statistics import ranks
from mmes.lab.experiments.analysis.tables import (
    Cell,
    Comparison,
    Line,
    Place,
    Table,
    compare,
    shades,
)
from mmes.lab.experiments.plan import Trial
from mmes.lab.experiments.results.store import TrialResult
from mmes.lab.experiments.sections.section import Findings

POINTS = (25.0, 18.0, 15.0, 12.0, 10.0, 8.0, 6.0, 4.0, 2.0, 1.0)
"""What the first ten on a function get."""

QUOTED = {"lsgo2010": "cec2010", "lsgo2013": "cec2013"}
"""The published table of each suite."""
QUOTED_BUDGET = 3_000_000
"""Evaluations after which the published medians were taken."""

FOUND = 1e-8
"""Values below this are printed as 0 in the literature."""

Totals = dict[str, float]
Footers = tuple[tuple[str, dict[str, str]], ...]

STATISTICS: dict[str, Callable[[list[float]], float | None]] = {
    "best": min,
    "median": statistics.median,
    "worst": max,
    "mean": statistics.fmean,
    "sd": lambda values: statistics.stdev(values) if len(values) > 1 else None,
}
"""What the competitions ask for; the standard deviation is that of a sample."""


def value_after(result: TrialResult, evaluations: int) -> float:
    """Return the best value of a run after this many evaluations."""
    at = np.array([float(evaluations)])
    return float(values_at(at, result.trace_evaluations, result.trace_best)[0])


def count(evaluations: int) -> str:
    """Write a number of evaluations in short form: 1.2e5, 3e6, 5000."""
    if evaluations < 10_000:
        return str(evaluations)
    mantissa, _, exponent = f"{evaluations:e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def standings(
    suite: str,
    runs: Sequence[Trial],
    results: Mapping[str, TrialResult],
    checkpoints: Sequence[int],
) -> Findings:
    """Return the tables and charts of a competition, of all its finished runs.

    Strategies are compared at the `checkpoints`, evaluations; the last one is the budget.
    """
    if not runs:
        return Findings(notes=("No run is finished yet.",))
    chosen = runs[0].strategy.label
    at = {
        mark: Comparison(tuple(runs), results, lambda r, mark=mark: value_after(r, mark), chosen)
        for mark in checkpoints
    }
    last = checkpoints[-1]
    quoted = _quoted(suite, last)
    tables = [_medians(at[last], last, quoted), _points(at)]
    if quoted:
        tables.append(_points_among_quoted(at[last], quoted))
        if set(at[last].columns()) & set(quoted.algorithms):
            tables.append(_ratios(at[last], quoted))
    tables += [_medians(at[mark], mark, None) for mark in checkpoints[:-1]]
    tables += [_statistics(at[mark], mark) for mark in reversed(checkpoints)]
    charts = convergence_charts(
        runs, results, lambda problem, _: (f"convergence-{problem}", f"{suite} {problem}")
    )
    return Findings(tuple(tables), charts)


def _quoted(suite: str, budget: int) -> paper.PublishedTable | None:
    """Return the published medians of a suite; they hold for its own budget only."""
    return paper.table(QUOTED[suite]) if budget == QUOTED_BUDGET else None


def _medians(data: Comparison, mark: int, quoted: paper.PublishedTable | None) -> Table:
    ours = data.columns()
    others = [name for name in quoted.algorithms if name not in ours] if quoted else []
    notes: list[str] = []
    if quoted:
        notes.append(
            "The second number is the median in the MMES paper: its own result for MMES, quoted "
            "from the literature for the others."
        )
        if quoted.suite == "cec2013":
            notes.append(
                "f3, f6, f10: the published values of MMES are those of Ackley's function without "
                "the suite's transformations; ours are those of the suite's function."
            )
    return compare(
        data,
        (
            f"medians-{mark}",
            f"Medians after {count(mark)} evaluations",
            "median of the best values",
        ),
        published=_unmarked(quoted) if quoted else None,
        columns=[*ours, *others],
        notes=notes,
    )


def _unmarked(quoted: paper.PublishedTable) -> dict[tuple[str, int, str], paper.Published]:
    """Return quoted cells without their marks, which are verdicts on the paper's own runs."""
    return {place: replace(cell, mark=None) for place, cell in quoted.cells.items()}


def points(values: Mapping[str, float]) -> dict[str, float]:
    """Return the points of each strategy on one function, by its median there.

    Equal values share the points of their places.
    """
    ladder = np.array([*POINTS, *[0.0] * len(values)])
    place = ranks(list(values.values()))
    found: dict[str, float] = {}
    for name, rank in zip(values, place, strict=True):
        ties = int(np.sum(place == rank))
        first = round(rank - (ties - 1) / 2.0) - 1
        found[name] = float(ladder[first : first + ties].mean())
    return found


def _median_values(data: Comparison) -> dict[Place, dict[str, float]]:
    """Return the median of every strategy that has runs on a function."""
    found: dict[Place, dict[str, float]] = {}
    for place in data.places():
        cells = {column: data.finished(place, column) for column in data.columns()}
        found[place] = {
            column: statistics.median(data.measure(result) for _, result in runs)
            for column, runs in cells.items()
            if runs
        }
    return found


def _total(rows: Mapping[Place, Mapping[str, float]], columns: Sequence[str]) -> tuple[int, Totals]:
    """Return how many functions have all strategies, and the points of each over these."""
    complete = [points(row) for row in rows.values() if len(row) == len(columns)]
    return len(complete), {name: sum(row[name] for row in complete) for name in columns}


def _points_table(
    name: str, title: str, rows: Mapping[Place, Mapping[str, float]], footers: Footers
) -> Table:
    columns = tuple(dict.fromkeys(column for row in rows.values() for column in row))
    lines = tuple(
        Line(place[0], {c: Cell(ours=points(row).get(c)) for c in columns})
        for place, row in rows.items()
    )
    return Table(
        name,
        title,
        "25, 18, 15, 12, 10, 8, 6, 4, 2, 1 points by rank of the median on each function",
        columns,
        lines,
        footers,
        ("Totals cover the functions on which all strategies were run.",),
    )


def _points(at: Mapping[int, Comparison]) -> Table:
    """Return the points after the whole budget, with totals at every checkpoint."""
    last = max(at)
    columns = at[last].columns()
    footers: list[tuple[str, dict[str, str]]] = []
    overall = dict.fromkeys(columns, 0.0)
    for mark, data in at.items():
        functions, total = _total(_median_values(data), columns)
        overall = {name: overall[name] + total[name] for name in columns}
        footers.append(
            (
                f"total after {count(mark)} (over {functions} of {len(at[last].places())})",
                _texts(total),
            )
        )
    footers.append(("total of all checkpoints", _texts(overall)))
    title = f"Points of the competition after {count(last)} evaluations"
    return _points_table("points", title, _median_values(at[last]), tuple(footers))


def _points_among_quoted(data: Comparison, quoted: paper.PublishedTable) -> Table:
    """Return the points of our runs in one field with the quoted medians."""
    rows: dict[Place, dict[str, float]] = {}
    for place, ours in _median_values(data).items():
        theirs = {f"{a} (quoted)": quoted.cells[*place, a].median for a in quoted.algorithms}
        rows[place] = {**ours, **{a: value for a, value in theirs.items() if value is not None}}
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    functions, total = _total(rows, columns)
    footers = ((f"total (over {functions} of {len(rows)})", _texts(total)),)
    return _points_table("points-quoted", "Points among the quoted medians", rows, footers)


def _ratios(data: Comparison, quoted: paper.PublishedTable) -> Table:
    """Return our medians over those quoted for the same algorithm, and how many agree."""
    columns = [name for name in data.columns() if name in quoted.algorithms]
    lines: list[Line] = []
    for place, ours in _median_values(data).items():
        cells: dict[str, Cell] = {}
        for name in columns:
            theirs = quoted.cells[*place, name].median
            both = name in ours and theirs is not None
            # What is below the threshold counts as found, in the paper as here.
            ratio = max(ours[name], FOUND) / max(theirs or 0.0, FOUND) if both else None
            cells[name] = Cell(ours=ratio)
        lines.append(Line(place[0], cells))
    found = {c: [x for line in lines if (x := line.cells[c].ours) is not None] for c in columns}
    kinds: dict[str, Callable[[float], bool]] = {
        "within a factor of 2": lambda x: 0.5 <= x <= 2.0,
        "better by more": lambda x: x < 0.5,
        "worse by more": lambda x: x > 2.0,
    }
    footers = tuple(
        (kind, {c: f"{sum(map(is_so, xs))} of {len(xs)}" for c, xs in found.items()})
        for kind, is_so in kinds.items()
    )
    return Table(
        "quoted-ratios",
        "Our medians over the quoted ones",
        f"our median / quoted median of the same algorithm; smaller values count as {FOUND:g}",
        tuple(columns),
        tuple(lines),
        footers,
    )


def _texts(totals: Totals) -> dict[str, str]:
    return {name: f"{total:g}" for name, total in totals.items()}


def _statistics(data: Comparison, mark: int) -> Table:
    """Return the competition's own table: five statistics of every function."""
    lines: list[Line] = []
    columns = data.columns()
    for place in data.places():
        cells = {column: data.finished(place, column) for column in columns}
        values = {c: [data.measure(result) for _, result in runs] for c, runs in cells.items()}
        keys = {c: tuple(run.key for run, _ in runs) for c, runs in cells.items()}
        for name, statistic in STATISTICS.items():
            found = {c: statistic(v) if v else None for c, v in values.items()}
            shading = shades(found) if name != "sd" else {}
            row = {c: Cell(ours=x, shade=shading.get(c), keys=keys[c]) for c, x in found.items()}
            lines.append(Line(f"{place[0]} {name}", row))
    return Table(
        f"statistics-{mark}",
        f"Statistics after {count(mark)} evaluations",
        "best, median, worst, mean and standard deviation of the best values",
        tuple(columns),
        tuple(lines),
    )
