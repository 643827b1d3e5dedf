"""The single runs of a section as one CSV file: to publish, and to take over again.

A run is known by its key; the file holds what it took and what it reached, not its curve.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mmes.lab.experiments.plan import Trial
from mmes.lab.experiments.results.formats import csv_text, read_rows
from mmes.lab.experiments.results.store import Store, TrialResult

COLUMNS = (
    "problem", "n", "strategy", "seed", "reached", "evaluations", "generations", "restarts",
    "best", "status", "cpu_seconds", "started", "mmes", "key",
)  # fmt: skip


def section_runs_as_csv(runs: Iterable[Trial], results: Mapping[str, TrialResult]) -> str:
    """Return the finished runs, one per line, by problem, dimension, strategy and seed."""
    lines: list[Sequence[Any]] = [COLUMNS]
    listed = list(runs)
    cells = list(dict.fromkeys(run.cell for run in listed))
    for run in sorted(listed, key=lambda run: (cells.index(run.cell), run.seed)):
        if run.key not in results:
            continue
        result = results[run.key]
        what = [*run.cell, run.seed, int(result.reached)]
        effort = [result.evaluations, result.generations, result.restarts]
        end = [repr(result.best), result.status, f"{result.cpu_seconds:.1f}", result.started]
        lines.append([*what, *effort, *end, result.versions.get("mmes", ""), run.key])
    return csv_text(lines)


def take_over_section(path: Path, runs: Iterable[Trial], store: Store) -> int:
    """Store those runs of a CSV file that are planned and not stored yet; return how many.

    Raises ValueError if the file is not one of single runs, or holds a run that is not planned.
    """
    planned = {run.key: run for run in runs}
    rows, stored, count = read_rows(path, COLUMNS), store.finished(), 0
    for number, row in enumerate(rows, start=2):
        if row["key"] not in planned:
            raise ValueError(f"{path}, line {number}: no planned run has the key {row['key']!r}")
        try:
            marks, best = np.array([float(row["evaluations"])]), np.array([float(row["best"])])
            result = TrialResult.taken_over(row, marks, best)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        if row["key"] not in stored:
            store.write(planned[row["key"]], result)
            count += 1
    return count
