"""The single runs of a competition as one CSV file: to publish, and to take over again.

A run keeps its key and its best value at every checkpoint; curves between them are not in the file.
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
