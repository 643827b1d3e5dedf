"""The report of a folder of experiments: sections of the paper, or the user's comparison."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from mmes.lab.experiments.analysis.charts import Chart, Series
from mmes.lab.experiments.analysis.overview import overview
from mmes.lab.experiments.analysis.standings import count, standings
from mmes.lab.experiments.analysis.tables import number
from mmes.lab.experiments.competition import finished_runs
from mmes.lab.experiments.plan import Trial
from mmes.lab.experiments.reproduce import Laboratory, chosen_sections, material_of
from mmes.lab.experiments.results.store import TrialResult
from mmes.lab.experiments.sections import Extent, Findings
from mmes.lab.report.page import Group, Page, PageSection

TRACE_POINTS = 60
"""Points of a single run's curve: the store keeps more, but the page should stay small."""


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in text.lower()).strip("-")


def _traces(title: str, found: Iterable[tuple[Trial, TrialResult]]) -> Chart:
    series: list[Series] = []
    for run, outcome in found:
        size = outcome.trace_evaluations.size
        keep = np.unique(np.linspace(0, size - 1, min(size, TRACE_POINTS)).astype(int))
        x, y = outcome.trace_evaluations[keep], outcome.trace_best[keep]
        series.append(Series(f"seed {run.seed}", x, y))
    positive = bool(series) and all(np.all(s.y > 0) for s in series)
    return Chart("", title, "evaluations", "best value", tuple(series), y_log=positive)


def _groups(
    prefix: str, runs: Iterable[Trial], outcomes: Mapping[str, TrialResult]
) -> tuple[list[Group], dict[tuple[str, ...], str]]:
    """Return the finished runs cell by cell, and the anchor of every cell by its runs' keys."""
    cells: dict[tuple[str, int, str], list[tuple[Trial, TrialResult]]] = {}
    for run in runs:
        if run.key in outcomes:
            cells.setdefault(run.cell, []).append((run, outcomes[run.key]))
    groups: list[Group] = []
    links: dict[tuple[str, ...], str] = {}
    for place, ((problem, dimension, strategy), found) in enumerate(cells.items()):
        title = f"{strategy} on {problem}, n = {dimension}"
        anchor = f"{prefix}-runs-{place}-{_slug(title)}"
        groups.append(Group(anchor, title, tuple(found), _traces(title, found)))
        links.setdefault(tuple(run.key for run, _ in found), anchor)
    return groups, links


def _filled(
    section: PageSection,
    findings: Findings,
    runs: Iterable[Trial],
    outcomes: Mapping[str, TrialResult],
) -> PageSection:
    """Return a section, of which heading, text and notes are given, with all it has to show."""
    groups, links = _groups(section.id, runs, outcomes)
    return replace(
        section,
        tables=findings.tables,
        charts=tuple(chart for chart in findings.charts if chart.series),
        groups=tuple(groups),
        notes=(*section.notes, *findings.notes),
        links=links,
    )


def _cards(
    outcomes: Iterable[TrialResult], planned: int, targeted: bool
) -> tuple[tuple[str, str], ...]:
    found = list(outcomes)
    reached = ("target reached", f"{sum(o.reached for o in found)} runs")
    evaluations = float(sum(o.evaluations for o in found))
    hours = sum(o.cpu_seconds for o in found) / 3600.0
    return (
        ("runs", f"{len(found)} of {max(planned, len(found))}"),
        ("evaluations", number(evaluations) if found else "0"),
        ("processor time", f"{hours:.2f} h" if hours >= 0.1 else f"{hours * 60:.1f} min"),
        *([reached] if targeted else []),
    )


def _versions(outcomes: Iterable[TrialResult]) -> list[tuple[str, str]]:
    """Return every version that took part, with how many runs it made where they differ."""
    counts: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        for name, value in outcome.versions.items():
            counts.setdefault(name, Counter())[value] += 1
    return [
        (name, ", ".join(f"{v} ({c} runs)" if len(seen) > 1 else v for v, c in seen.items()))
        for name, seen in sorted(counts.items())
    ]


def _settings(runs: Iterable[Trial], outcomes: Mapping[str, TrialResult]) -> list[tuple[str, str]]:
    """Return the settings of the runs, each with all the values it takes."""
    listed = list(runs)

    def joined(values: Iterable[object]) -> str:
        return ", ".join(dict.fromkeys(str(v) for v in values))

    strategies = dict.fromkeys(
        f"{r.strategy.label} = {r.strategy.name} {json.dumps(dict(r.strategy.options))}"
        for r in listed
    )
    stamps = sorted(o.started for o in outcomes.values())
    return [
        ("strategies", "; ".join(strategies)),
        ("problems", joined(r.objective.name for r in listed)),
        ("dimensions", joined(sorted({r.dimension for r in listed}))),
        ("seeds", joined(sorted({r.seed for r in listed}))),
        ("budgets", joined(f"{r.max_evaluations:.3g}" for r in listed)),
        ("targets", joined("none" if r.target is None else r.target for r in listed)),
        ("starts", joined("uniform in the box" if r.start is None else r.start for r in listed)),
        ("σ₀", joined("0.3 of the box" if r.sigma0 is None else r.sigma0 for r in listed)),
        ("bounds", joined(r.bounds for r in listed)),
        ("first and last run", f"{stamps[0]} to {stamps[-1]}" if stamps else "none"),
    ]


def _page(
    laboratory: Laboratory,
    heading: tuple[str, str],
    sections: Iterable[PageSection],
    runs: Sequence[Trial],
    outcomes: Mapping[str, TrialResult],
    planned: int,
    targeted: bool,
) -> Page:
    """Return the page under a title and a lead, with all that pages have in common."""
    found = outcomes.values()
    failures = laboratory.store.failures()
    return Page(
        *heading,
        cards=_cards(found, planned, targeted),
        sections=tuple(sections),
        settings=(*_settings(runs, outcomes), *_versions(found)),
        failures=tuple(f"{note['run']}: {note['message']}" for note in failures),
    )


def _place(label: str, order: Sequence[str]) -> tuple[int, str]:
    return (order.index(label) if label in order else len(order)), label


def comparison_page(laboratory: Laboratory) -> Page:
    """Return the page of a user's own comparison."""
    runs = laboratory.store.runs()
    outcomes = laboratory.store.outcomes()
    if not runs:
        raise ValueError(f"{laboratory.folder} contains no finished run yet")
    # The store sorts by key; a reader wants the order of the plan, as far as it is known.
    columns = laboratory.about.get("strategies", [])
    rows = laboratory.about.get("problems", [])
    runs.sort(
        key=lambda run: (
            _place(run.objective.label, rows),
            run.dimension,
            _place(run.strategy.label, columns),
            run.seed,
        )
    )
    chosen = laboratory.about.get("chosen") or runs[0].strategy.label
    empty = PageSection("comparison", "Comparison", laboratory.about.get("notes", ""))
    section = _filled(empty, overview(runs, outcomes, chosen), runs, outcomes)
    heading = (
        laboratory.about.get("name", "Comparison"),
        f"Strategies compared by mmes; marks test {chosen} against the others.",
    )
    planned = laboratory.about.get("planned", 0)
    targeted = any(run.target is not None for run in runs)
    return _page(laboratory, heading, [section], runs, outcomes, planned, targeted)


def reproduction_page(laboratory: Laboratory) -> Page:
    """Return the page of the paper's sections."""
    extent = Extent(laboratory.about["protocol"])
    stored = laboratory.store.outcomes()
    parts: list[PageSection] = []
    every_run: dict[str, Trial] = {}
    every_outcome: dict[str, TrialResult] = {}
    for section in chosen_sections(laboratory.about["sections"]):
        material = material_of(section, extent, laboratory.folder, stored)
        pending = (f"{material.pending} of {len(material.runs)} runs are missing.",)
        empty = PageSection(
            section.name,
            section.title,
            section.text,
            notes=pending if material.pending else (),
            missing=tuple(section.missing(extent)),
        )
        parts.append(_filled(empty, section.present(material), material.runs, material.outcomes))
        every_run |= {run.key: run for run in material.runs}
        every_outcome |= material.outcomes
    heading = (
        "MMES: the paper, reproduced",
        "Every table and figure of “MMES: Mixture Model based Evolution Strategy for "
        f"Large-Scale Optimization” with our numbers beside the published ones ({extent.value} "
        "protocol).",
    )
    runs = list(every_run.values())
    return _page(laboratory, heading, parts, runs, every_outcome, len(runs), True)


def competition_page(laboratory: Laboratory) -> Page:
    """Return the page of a competition: all stored runs of its suite and budget."""
    about = laboratory.about
    suite, budget, checkpoints = about["suite"], about["budget"], about["checkpoints"]
    runs, results = finished_runs(laboratory.store, suite, budget)
    findings = standings(suite, runs, results, checkpoints)
    chosen = runs[0].strategy.label if runs else "MMES"
    section = _filled(PageSection("standings", "Standings"), findings, runs, results)
    heading = (
        about["name"],
        f"Strategies on the {len(about['functions'])} functions of {suite} under the rules of "
        f"its competition: {count(budget)} evaluations per run, starts uniform in the box. Marks "
        f"test {chosen} against the others.",
    )
    return _page(laboratory, heading, [section], runs, results, about["planned"], False)


PAGES = {
    "reproduction": reproduction_page,
    "comparison": comparison_page,
    "competition": competition_page,
}
"""The pages by the kind of folder."""


def page_of(folder: Path) -> Page:
    """Return the page of a folder of experiments."""
    laboratory = Laboratory.open(folder)
    return PAGES[laboratory.kind](laboratory)
