"""The page as data, and its rendering into one HTML file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import numpy as np

from mmes.base.extras import require
from mmes.lab.experiments.analysis.charts import Chart, Series
from mmes.lab.experiments.analysis.figures import colours
from mmes.lab.experiments.analysis.tables import Cell, Table, number
from mmes.lab.experiments.plan import Trial
from mmes.lab.experiments.results.formats import legend, our_text, paper_text
from mmes.lab.experiments.results.store import TrialResult

DIGITS = 6
"""Digits of a number in a chart: more than a screen can show."""


@dataclass(frozen=True)
class Group:
    """The runs behind one number of a table."""

    id: str
    title: str
    runs: tuple[tuple[Trial, TrialResult], ...]
    chart: Chart


@dataclass(frozen=True)
class PageSection:
    """One part of the page."""

    # id, title, text: anchor, heading, and what it is about.
    id: str
    title: str
    text: str = ""
    # tables, charts, groups: what it shows; a group is the runs behind one number.
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    groups: tuple[Group, ...] = ()
    # notes, missing: sentences; what this version could not run.
    notes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()  # Names and values.
    # Anchor of the group of runs, by the keys of those runs.
    links: Mapping[tuple[str, ...], str] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """A whole report."""

    # title, lead: heading, and one sentence under it.
    title: str
    lead: str
    cards: tuple[tuple[str, str], ...]  # The summary: a name and a number each.
    sections: tuple[PageSection, ...]  # The parts.
    settings: tuple[tuple[str, str], ...]  # Settings and versions.
    failures: tuple[str, ...] = ()  # Runs that failed, and why.


def _numbers(values: np.ndarray[Any, Any] | None) -> list[float | None] | None:
    """Return values fit for JSON: rounded, with null for what is not finite."""
    if values is None:
        return None
    return [float(f"{v:.{DIGITS}g}") if math.isfinite(v) else None for v in values.tolist()]


def chart_data(chart: Chart) -> dict[str, Any]:
    """Return a chart as the page's script reads it."""
    palette = colours(chart)

    def curve(series: Series) -> dict[str, Any]:
        numbers = {name: _numbers(vars(series)[name]) for name in ("x", "y", "low", "high")}
        return vars(series) | numbers | {"colour": palette[series.name]}

    return vars(chart) | {"series": [curve(series) for series in chart.series]}


def _cell(cell: Cell, section: PageSection) -> dict[str, str]:
    title = ""
    if cell.summary is not None and cell.summary.count > 1:
        own = cell.summary
        title = (
            f"{own.count} runs: quartiles {number(own.lower_quartile)} to "
            f"{number(own.upper_quartile)}, extremes {number(own.smallest)} to "
            f"{number(own.largest)}"
        )
        if cell.ratio is not None:
            title += f"; ours / paper = {cell.ratio:.2f}"
    return {
        "ours": our_text(cell),
        "mark": cell.mark.symbol if cell.mark else "",
        "mark_text": cell.mark.sentence if cell.mark else "",
        "paper": paper_text(cell),
        "shade": cell.shade or "",
        "paper_shade": cell.paper_shade or "",
        "title": title,
        "link": section.links.get(cell.keys, ""),
    }


def _table(table: Table, section: PageSection) -> dict[str, Any]:
    lines = [
        {
            "label": line.label,
            "cells": [_cell(line.cells.get(c, Cell()), section) for c in table.columns],
        }
        for line in table.lines
    ]
    cells = [cell for line in table.lines for cell in line.cells.values()]
    return vars(table) | {
        "has_paper": table.has_paper,
        "lines": lines,
        "footers": [(n, [texts.get(c, "") for c in table.columns]) for n, texts in table.footers],
        "legend": legend(table, "Stronger shading", "weaker", of_paper=True),
        "linked": any(section.links.get(cell.keys) for cell in cells),
    }


def render(page: Page) -> str:
    """Return the page as one HTML text that needs nothing else."""
    jinja2 = require("jinja2", "report")
    charts: dict[str, dict[str, Any]] = {}

    def register(found: Sequence[Chart]) -> list[str]:
        names = [f"c{len(charts) + i}" for i in range(len(found))]
        charts.update(zip(names, map(chart_data, found), strict=True))
        return names

    sections = [
        vars(section)
        | {
            "tables": [_table(table, section) for table in section.tables],
            "charts": register(section.charts),
            "run_count": sum(len(group.runs) for group in section.groups),
            "groups": [vars(g) | {"chart": register([g.chart])[0]} for g in section.groups],
        }
        for section in page.sections
    ]
    shown = vars(page) | {"sections": sections, "version": version("mmes")}
    assets = files("mmes.lab.report") / "assets"
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = number
    template = environment.from_string((assets / "page.html").read_text(encoding="utf-8"))
    # "</script>" or "<!--<script>" inside a text would end the data early or never; in JSON
    # "\u003c" is the same as "<".
    data = json.dumps({"charts": charts}, separators=(",", ":")).replace("<", "\\u003c")
    return template.render(
        page=shown,
        style=(assets / "page.css").read_text(encoding="utf-8"),
        script=(assets / "page.js").read_text(encoding="utf-8"),
        data=data,
    )
