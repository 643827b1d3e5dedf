"""Tables of a comparison: our numbers beside the published ones, with marks, shading and ranks.

A `Table` holds numbers, not text; `mmes.lab.experiments.results.formats` writes it out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mmes.lab.experiments.analysis.paper import Published
from mmes.lab.experiments.analysis.statistics import (
    Mark,
    Summary,
    friedman,
    mark,
    signed_rank_test,
    summarize,
)
from mmes.lab.experiments.plan import Trial
from mmes.lab.experiments.results.store import TrialResult

Place = tuple[str, int]
"""Problem and dimension: what a row of a comparison stands for."""


@dataclass(frozen=True)
class Cell:
    """One entry of a table."""

    # Our number: the median; infinity where half the runs or more failed; None where none
    # ran.
    ours: float | None = None
    paper: float | None = None  # The published number.
    summary: Summary | None = None  # Quartiles and extremes of our runs.
    successes: int | None = None  # How many of our runs reached the target, where there is one.
    # mark, paper_mark: test of the chosen strategy against this column: ours, and as
    # published.
    mark: Mark | None = None
    paper_mark: Mark | None = None
    # shade, paper_shade: ``"best"`` or ``"second"`` of the row.
    shade: str | None = None
    paper_shade: str | None = None
    keys: tuple[str, ...] = ()  # Keys of the runs behind our number.
    not_applicable: bool = False  # Whether the paper prints N/A here.

    @property
    def ratio(self) -> float | None:
        """Ours over the published number, where both are finite and positive."""
        if self.ours is None or self.paper is None:
            return None
        if not (math.isfinite(self.ours) and self.paper > 0.0):
            return None
        return self.ours / self.paper


@dataclass(frozen=True)
class Line:
    """One row of a table."""

    label: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Table:
    """A table of numbers."""

    name: str  # Name of its files.
    # title, quantity: heading, and what the numbers are.
    title: str
    quantity: str
    columns: tuple[str, ...]  # Column headings.
    lines: tuple[Line, ...]  # The rows.
    # Closing rows of text by column: ranks, p-values, wins and losses.
    footers: tuple[tuple[str, Mapping[str, str]], ...] = ()
    notes: tuple[str, ...] = field(default=())  # Sentences to print under it.
    chosen: str = ""  # The column that marks test against the others.

    @property
    def has_paper(self) -> bool:
        """Whether any published number stands in it."""
        cells = [cell for line in self.lines for cell in line.cells.values()]
        return any(cell.paper is not None or cell.not_applicable for cell in cells)


def number(value: float | None) -> str:
    """Write a number to three digits as the tables print it: 1.97e5, 21.3, fail, –."""
    if value is None:
        return "–"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "fail"
    if value == 0.0:
        return "0"
    scientific = f"{value:.2e}"
    size = abs(float(scientific))  # as rounded: 999.6 is written as a thousand
    if 1e-3 <= size < 1e3:
        return f"{value:.3g}" if size >= 1.0 else f"{value:.3f}"
    mantissa, _, exponent = scientific.partition("e")
    return f"{mantissa}e{int(exponent)}"


def shades(values: Mapping[str, float | None]) -> dict[str, str]:
    """Return which columns hold the best and the second best finite value; ties share a shade.

    A row with a single column of results has nothing to be the best of.
    """
    if sum(v is not None for v in values.values()) < 2:
        return {}
    finite = sorted({v for v in values.values() if v is not None and math.isfinite(v)})
    names = dict(zip(finite[:2], ("best", "second"), strict=False))
    return {c: names[v] for c, v in values.items() if v is not None and v in names}


Heading = tuple[str, str, str]
"""What a table is called: the name of its files, its title, and what its numbers are."""


@dataclass(frozen=True)
class Comparison:
    """Runs, what they gave, and how to read a number off them."""

    runs: tuple[Trial, ...]  # All runs that were planned, finished or not.
    outcomes: Mapping[str, TrialResult]  # What the finished ones gave, by key.
    measure: Callable[[TrialResult], float]  # The number of a run.
    chosen: str = "MMES"  # Label of the strategy the others are tested against.

    def finished(self, place: Place, column: str) -> list[tuple[Trial, TrialResult]]:
        """Return the finished runs of one cell."""
        return [
            (run, self.outcomes[run.key])
            for run in self.runs
            if run.cell == (*place, column) and run.key in self.outcomes
        ]

    def places(self) -> list[Place]:
        """Return problems and dimensions in the order of the plan."""
        return list(dict.fromkeys((run.objective.label, run.dimension) for run in self.runs))

    def columns(self) -> list[str]:
        """Return the labels of the strategies in the order of the plan."""
        return list(dict.fromkeys(run.strategy.label for run in self.runs))


def _our_cell(data: Comparison, place: Place, column: str) -> tuple[Cell, list[float]]:
    finished = data.finished(place, column)
    if not finished:
        return Cell(), []
    values = [data.measure(outcome) for _, outcome in finished]
    targeted = finished[0][0].target is not None
    summary = summarize(values)
    cell = Cell(
        ours=summary.median,
        summary=summary,
        successes=sum(o.reached for _, o in finished) if targeted else None,
        keys=tuple(run.key for run, _ in finished),
    )
    return cell, values


def _line(
    data: Comparison,
    place: Place,
    columns: Sequence[str],
    published: Mapping[tuple[str, int, str], Published],
    label: str,
) -> Line:
    made = {column: _our_cell(data, place, column) for column in columns}
    shading = shades({column: cell.ours for column, (cell, _) in made.items()})
    reference = made.get(data.chosen, (Cell(), []))[1]
    cells: dict[str, Cell] = {}
    for column, (cell, values) in made.items():
        printed = published.get((*place, column))
        # Three against three can never be significant at 0.05 and would only decorate.
        testable = column != data.chosen and min(len(values), len(reference)) >= 4
        cells[column] = replace(
            cell,
            shade=shading.get(column),
            mark=mark(reference, values) if testable else None,
            paper=printed.median if printed else None,
            paper_mark=printed.mark if printed else None,
            paper_shade=printed.shade if printed else None,
            not_applicable=printed is not None and printed.median is None,
        )
    return Line(label, cells)


def wins(lines: Iterable[Line], column: str, published: bool) -> str:
    """Return how often the chosen strategy won, lost and tied against a column, as 8/2/0."""
    marks = [
        line.cells[column].paper_mark if published else line.cells[column].mark for line in lines
    ]
    counts = [sum(m is kind for m in marks) for kind in (Mark.BETTER, Mark.WORSE, Mark.SAME)]
    return "/".join(map(str, counts)) if any(counts) else ""


def _rank_footers(
    lines: Sequence[Line], columns: Sequence[str], chosen: str, source: str
) -> list[tuple[str, dict[str, str]]]:
    """Return average ranks and p-values over the rows and columns that are complete."""
    published = source == "paper"

    def value(line: Line, column: str) -> float | None:
        cell = line.cells[column]
        return cell.paper if published else cell.ours

    used = [c for c in columns if any(value(line, c) is not None for line in lines)]
    # The paper leaves out of its ranking a column with N/A entries (sep-CMA).
    used = [c for c in used if not any(line.cells[c].not_applicable for line in lines)]
    rows = [[value(line, c) for c in used] for line in lines]
    complete = [[v for v in row if v is not None] for row in rows if None not in row]
    if len(used) < 2 or len(complete) < 2:
        return []
    ranked = friedman(used, complete)
    extent = f"{source}, {len(complete)} rows" if source else f"{len(complete)} problems"
    averages = {c: f"{r:.2f}" for c, r in ranked.average.items()}
    footers = [(f"average rank ({extent})", averages)]
    if chosen in used:
        p_values = ranked.p_values(chosen)
        label = _labelled("p, Bonferroni", source)
        footers.append((label, {c: f"{p:.3g}" for c, p in p_values.items()}))
    return footers


def _labelled(text: str, source: str) -> str:
    """Return the text with whose runs it is about, where there is more than one possibility."""
    return f"{text} ({source})" if source else text


def _mixed_footers(
    lines: Sequence[Line], columns: Sequence[str], chosen: str
) -> list[tuple[str, dict[str, str]]]:
    """Compare our chosen strategy with published medians of rivals that only exist as such."""
    rivals = [
        c for c in columns if c != chosen and all(line.cells[c].ours is None for line in lines)
    ]
    ours = [line for line in lines if line.cells[chosen].ours is not None]
    rivals = [c for c in rivals if all(line.cells[c].paper is not None for line in ours)]
    if len(ours) < 2 or not rivals:
        return []
    mine = np.array([line.cells[chosen].ours for line in ours], dtype=np.float64)
    theirs = {c: np.array([line.cells[c].paper for line in ours], dtype=np.float64) for c in rivals}
    values = np.column_stack([*theirs.values(), mine])
    average = friedman([*rivals, chosen], values).average
    tests = {c: f"{signed_rank_test(mine, theirs[c]):.3g}" for c in rivals}
    return [
        (
            f"average rank (our {chosen} among the published, {len(ours)} rows)",
            {c: f"{r:.2f}" for c, r in average.items()},
        ),
        (f"p, signed-rank of medians (our {chosen})", tests),
    ]


def compare(
    data: Comparison,
    heading: Heading,
    *,
    published: Mapping[tuple[str, int, str], Published] | None = None,
    columns: Sequence[str] | None = None,
    places: Sequence[Place] | None = None,
    ranked: bool = True,
    notes: Iterable[str] = (),
) -> Table:
    """Make the table of a comparison.

    Columns and rows (`places`) are those of the plan unless they are given: rows that were not run
    then show the published number alone. `published` has its cells by (problem, dimension, column).
    A `ranked` table ends with ranks, p-values and wins; `notes` are printed under it.
    """
    printed = published or {}
    heads = list(columns) if columns is not None else data.columns()
    rows = list(places) if places is not None else data.places()
    several = len({n for _, n in rows}) > 1
    lines = tuple(
        _line(data, place, heads, printed, f"{place[0]}, n = {place[1]}" if several else place[0])
        for place in rows
    )
    footers: list[tuple[str, dict[str, str]]] = []
    if ranked:
        # Only beside published numbers must a line say whose runs it is about.
        for source in ("ours", "paper") if printed else ("",):
            counts = {c: wins(lines, c, source == "paper") for c in heads}
            if any(counts.values()):
                footers.append((_labelled("better/worse/same", source), counts))
            footers += _rank_footers(lines, heads, data.chosen, source)
        if data.chosen in heads:
            footers += _mixed_footers(lines, heads, data.chosen)
    return Table(*heading, tuple(heads), lines, tuple(footers), tuple(notes), data.chosen)
