"""The single runs of a competition or a section as one CSV file: to publish and to take over again.

A run is known by its key. The file holds what it took and what it reached, in a competition at
every checkpoint; it does not hold curves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mmes.lab.experiments.analysis.standings import value_after
from mmes.lab.experiments.objectives import fixed_dimension, is_clustering, named_file
from mmes.lab.experiments.plan import Objective, Strategy, Trial, checked_key, suite_trial
from mmes.lab.experiments.results.formats import csv_text, read_rows
from mmes.lab.experiments.results.store import Store, TrialResult

MARK = "best_at_"
BEFORE = ("problem", "strategy", "label", "options", "seed", "budget")
AFTER = ("evaluations", "restarts", "cpu_seconds", "started", "mmes", "key")
"""Columns of a competition, before and after the best values."""
SECTION = (
    "problem", "n", "strategy", "seed", "reached", "evaluations", "generations", "restarts",
    "best", "status", "cpu_seconds", "started", "mmes", "key",
)  # fmt: skip
"""Columns of a section of the paper."""


def runs_as_csv(
    runs: Iterable[Trial], results: Mapping[str, TrialResult], checkpoints: Sequence[int]
) -> str:
    """Return the runs, one per line, with the best value at every checkpoint."""
    lines: list[list[Any]] = [[*BEFORE, *(f"{MARK}{mark}" for mark in checkpoints), *AFTER]]
    for run in runs:
        result, strategy = results[run.key], run.strategy
        options = " ".join(f"{key}={value}" for key, value in strategy.options)
        name = named_file(strategy.name)[1]
        what = [run.objective.name, name, strategy.label, options, run.seed, run.max_evaluations]
        values = [repr(value_after(result, mark)) for mark in checkpoints]
        effort = [result.evaluations, result.restarts, f"{result.cpu_seconds:.1f}", result.started]
        lines.append([*what, *values, *effort, result.versions.get("mmes", ""), run.key])
    return csv_text(lines)


def take_over(path: Path, store: Store) -> int:
    """Store the runs of a CSV file that are not stored yet; return how many these were.

    Raises ValueError if the file is not one of single runs.
    """
    rows = read_rows(path, (*BEFORE, *AFTER))
    marks = [column for column in (rows[0] if rows else ()) if column.startswith(MARK)]
    if rows and not marks:
        raise ValueError(f"{path} has no column '{MARK}N'")
    found: list[tuple[Trial, TrialResult]] = []
    for number, row in enumerate(rows, start=2):
        try:
            found.append(_from_row(row, marks))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
    stored = store.finished()
    new = [(run, result) for run, result in found if run.key not in stored]
    for run, result in new:
        store.write(run, result)
    return len(new)


def _from_row(row: Mapping[str, Any], marks: Sequence[str]) -> tuple[Trial, TrialResult]:
    dimension = None if is_clustering(row["problem"]) else fixed_dimension(row["problem"])
    if dimension is None:
        raise ValueError(f"problem must be a function of a suite, not {row['problem']!r}")
    options = tuple(tuple(word.split("=", 1)) for word in row["options"].split())
    run = suite_trial(
        Strategy(row["strategy"], row["label"], options),  # pyright: ignore[reportArgumentType]
        Objective(row["problem"], row["problem"].rpartition("/")[2], dimension=dimension),
        int(row["seed"]),
        int(row["budget"]),
        stored_key=checked_key(row["key"]),
    )
    best = np.array([float(row[mark]) for mark in marks])
    at = np.array([float(mark.removeprefix(MARK)) for mark in marks])
    return run, TrialResult.taken_over(row, at, best)


def section_runs_as_csv(runs: Iterable[Trial], results: Mapping[str, TrialResult]) -> str:
    """Return the finished runs, one per line, by problem, dimension, strategy and seed."""
    lines: list[Sequence[Any]] = [SECTION]
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
    rows, stored, count = read_rows(path, SECTION), store.finished(), 0
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
