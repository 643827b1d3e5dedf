"""Run sections of the paper, or the user's plan, in a folder.

The folder holds ``runs/`` (the store), one folder per section with its tables and figures, and
``laboratory.json``, which says what it is, so that a report can be made of it at any time.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmes.checkpoint.files import write_json, write_text
from mmes.lab.experiments.analysis.figures import write_figure
from mmes.lab.experiments.analysis.overview import overview
from mmes.lab.experiments.availability import refuse_mistakes
from mmes.lab.experiments.plan import Plan, Trial
from mmes.lab.experiments.results.formats import write_table
from mmes.lab.experiments.results.single_runs import section_runs_as_csv
from mmes.lab.experiments.results.store import Store, TrialResult
from mmes.lab.experiments.runner import Report, execute, shard
from mmes.lab.experiments.sections import SECTIONS, Extent, Findings, Material, Section

MANIFEST = "laboratory.json"


@dataclass(frozen=True)
class Effort:
    """How to carry out runs: see `mmes.lab.experiments.runner.execute`."""

    workers: int | None = None  # Processes; all cores by default.
    # Seconds after which no further run is begun, for each section.
    time_limit: float | None = None
    part: tuple[int, int] = (1, 1)  # Which part of how many, to spread the work over machines.
    # strategies, problems: labels of those to run now, or names of problems; all by default.
    strategies: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    dimensions: tuple[int, ...] = ()  # Dimensions to run now; all by default.
    seeds: int | None = None  # How many seeds of each cell to run now.
    show: bool = True  # Whether to show progress.

    def wants(self, run: Trial) -> bool:
        """Whether the run is among those to make now."""
        problem = run.objective
        return (
            (not self.strategies or run.strategy.label in self.strategies)
            and (not self.problems or bool({problem.label, problem.name} & {*self.problems}))
            and (not self.dimensions or run.dimension in self.dimensions)
            and (self.seeds is None or run.seed <= self.seeds)
        )


@dataclass(frozen=True)
class Laboratory:
    """A folder of experiments: its manifest and its store."""

    folder: Path  # Where everything is.
    kind: str  # ``"reproduction"`` or ``"comparison"``.
    # The manifest: sections and extent, or the plan's name, settings and chosen strategy.
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def store(self) -> Store:
        """The finished runs."""
        return Store(self.folder / "runs")

    def save(self) -> None:
        """Write the manifest."""
        write_json(self.folder / MANIFEST, {"kind": self.kind, **self.about})

    @classmethod
    def open(cls, folder: Path) -> Laboratory:
        """Read the manifest of a folder; a bare folder of runs is a comparison without a name."""
        path = folder / MANIFEST
        if path.is_file():
            about = json.loads(path.read_text(encoding="utf-8"))
            return cls(folder, about.pop("kind"), about)
        if (folder / "runs").is_dir():
            return cls(folder, "comparison", {"name": folder.name})
        raise ValueError(f"{folder} contains neither {MANIFEST} nor a folder of runs")


def carry_out(runs: Sequence[Trial], store: Store, effort: Effort, workers: int | None) -> Report:
    """Make the runs of this machine's part."""
    return execute(
        shard([run for run in runs if effort.wants(run)], *effort.part),
        store,
        workers=workers,
        time_limit=effort.time_limit,
        show=effort.show,
    )


def measurement_of(section: Section, extent: Extent, folder: Path, make: bool) -> dict[str, Any]:
    """Return a section's own measurement: the stored one, or a new one if it is to be made."""
    path = folder / section.name / f"measurement-{extent.value}.json"
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    if section.measure is None or not make:
        return {}
    data = section.measure(extent)
    write_json(path, data)
    return data


def material_of(
    section: Section,
    extent: Extent,
    folder: Path,
    stored: Mapping[str, TrialResult] | None = None,
) -> Material:
    """Return what a section can show now; `stored` avoids reading the store again."""
    runs = section.runs(extent)
    if stored is None:
        stored = Store(folder / "runs").outcomes(runs) if runs else {}
    outcomes = {run.key: stored[run.key] for run in runs if run.key in stored}
    return Material(extent, runs, outcomes, measurement_of(section, extent, folder, make=False))


def write_findings(findings: Findings, folder: Path) -> list[Path]:
    """Write all tables and figures of a section and return the files."""
    files: list[Path] = []
    for table in findings.tables:
        files += write_table(table, folder)
    for chart in findings.charts:
        files += write_figure(chart, folder)
    return files


def reproduce_section(
    section: Section, extent: Extent, folder: Path, effort: Effort
) -> tuple[Report | None, Findings]:
    """Carry out one section, write its tables and figures, and return how it went."""
    runs = section.runs(extent)
    report = None
    if runs:
        store = Store(folder / "runs")
        report = carry_out(runs, store, effort, section.workers or effort.workers)
    measurement_of(section, extent, folder, make=True)
    material = material_of(section, extent, folder)
    findings = section.present(material)
    write_findings(findings, folder / section.name)
    if runs:
        listed = section_runs_as_csv(material.runs, material.outcomes)
        write_text(folder / section.name / "runs.csv", listed)
    return report, findings


def missing_runs(
    runs: Iterable[Trial], finished: Collection[str]
) -> dict[tuple[str, int], dict[str, tuple[int, int]]]:
    """Return runs made and wanted by place and strategy, of the cells that lack some."""
    cells: dict[tuple[str, int, str], list[bool]] = {}
    for run in runs:
        cells.setdefault(run.cell, []).append(run.key in finished)
    found: dict[tuple[str, int], dict[str, tuple[int, int]]] = {}
    for (problem, dimension, strategy), made in cells.items():
        if not all(made):
            found.setdefault((problem, dimension), {})[strategy] = sum(made), len(made)
    return found


def chosen_sections(names: Sequence[str]) -> list[Section]:
    """Return the sections of these names; without names all of them."""
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        raise ValueError(f"there is no section {unknown[0]!r}; there are {', '.join(SECTIONS)}")
    return [section for name, section in SECTIONS.items() if not names or name in names]


def compare_plan(plan: Plan, folder: Path, effort: Effort) -> tuple[Report, Findings]:
    """Carry out a user's plan, write its tables and figures, and return how it went."""
    refuse_mistakes(plan.runs())
    about = {
        "name": plan.name,
        "notes": plan.notes,
        "chosen": plan.chosen,
        "planned": len(plan.runs()),
        "strategies": [strategy.label for strategy in plan.strategies],
        "problems": [objective.label for objective in plan.objectives],
    }
    laboratory = Laboratory(folder, "comparison", about)
    laboratory.save()
    report = carry_out(plan.runs(), laboratory.store, effort, effort.workers)
    findings = overview(plan.runs(), laboratory.store.outcomes(plan.runs()), plan.chosen)
    write_findings(findings, folder / "tables")
    return report, findings
