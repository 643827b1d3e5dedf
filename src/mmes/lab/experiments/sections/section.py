"""What a section of the paper is: runs or measurements to make, and how to present them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from mmes.lab.experiments.analysis.charts import Chart
from mmes.lab.experiments.analysis.tables import Table
from mmes.lab.experiments.availability import missing_pieces
from mmes.lab.experiments.plan import Trial
from mmes.lab.experiments.results.store import TrialResult


class Extent(Enum):
    """How thoroughly to reproduce: minutes on two cores, or as published."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True)
class Material:
    """What a section has to show."""

    extent: Extent
    runs: tuple[Trial, ...]  # Those that can be made with this version.
    outcomes: Mapping[str, TrialResult]  # Those that are finished, by key.
    # What the section's own measurement gave; empty where it has none.
    measurement: Mapping[str, Any] = field(default_factory=dict)

    def of(self, problem: str) -> tuple[Trial, ...]:
        """Return the runs on one problem, by its label."""
        return tuple(run for run in self.runs if run.objective.label == problem)

    @property
    def pending(self) -> int:
        """How many runs are not finished."""
        return sum(run.key not in self.outcomes for run in self.runs)


@dataclass(frozen=True)
class Findings:
    """What a section shows."""

    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = ()


def _no_runs(extent: Extent) -> Iterable[Trial]:
    return ()


@dataclass(frozen=True)
class Section:
    """One experiment of the paper."""

    name: str  # What ``mmes reproduce`` calls it.
    # title, text: heading, and what the experiment is about.
    title: str
    text: str
    present: Callable[[Material], Findings]  # Makes tables and charts of what there is.
    plan: Callable[[Extent], Iterable[Trial]] = _no_runs  # Lists the runs of a protocol.
    # An experiment that does not consist of runs: returns numbers fit for JSON.
    measure: Callable[[Extent], dict[str, Any]] | None = None
    workers: int | None = None  # How many runs at a time; 1 where time is measured.

    def runs(self, extent: Extent) -> tuple[Trial, ...]:
        """Return the runs that this version can make."""
        return tuple(run for run in self.plan(extent) if not missing_pieces([run]))

    def missing(self, extent: Extent) -> list[str]:
        """Return a sentence for every strategy or problem that this version does not have."""
        return missing_pieces(self.plan(extent))
