"""Finished runs on disk: one Parquet file per run, named by the run's key.

A file appears by renaming a fully written and synced one, so a run is either there whole or not at
all, whatever kills the process; writing it again replaces it by an equal one. Results of several
machines are merged by copying files into one folder.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmes.base.extras import require
from mmes.checkpoint.files import write_atomically, write_json
from mmes.lab.experiments.analysis.statistics import Floats
from mmes.lab.experiments.objectives import named_file
from mmes.lab.experiments.plan import Objective, Strategy, Trial, checked_key

SCHEMA_VERSION = 1
"""Raised when a column changes meaning; readers refuse files that are newer than they are."""

COLUMNS: dict[str, str] = {
    "schema": "Int64",
    "key": "String",
    "strategy": "String",
    "strategy_label": "String",
    "options": "String",
    "problem": "String",
    "problem_label": "String",
    "problem_options": "String",
    "dimension": "Int64",
    "seed": "Int64",
    "max_evaluations": "Int64",
    "target": "Float64",
    "start": "String",
    "sigma0": "Float64",
    "bounds": "String",
    "best": "Float64",
    "evaluations": "Int64",
    "generations": "Int64",
    "restarts": "Int64",
    "reached": "Boolean",
    "status": "String",
    "message": "String",
    "seconds": "Float64",
    "cpu_seconds": "Float64",
    "objective_seconds": "Float64",
    "started": "String",
    "versions": "String",
    "trace_evaluations": "List(Float64)",
    "trace_best": "List(Float64)",
    "trace_sigma": "List(Float64)",
    "violation": "Float64",
}
"""Columns of a stored run and their polars types; options and versions are JSON texts."""
_LATER = {"violation"}
"""Columns that older files lack."""


class StoreError(RuntimeError):
    """A folder of results that cannot be read, with the reason in one sentence."""


@dataclass(frozen=True)
class TrialResult:
    """What one run gave."""

    best: float  # Smallest value found, of a feasible point; inf if there is none.
    # evaluations, generations, restarts: what it took.
    evaluations: int
    generations: int
    restarts: int
    reached: bool  # Whether the target was reached.
    # status, message: why the run ended.
    status: str
    message: str
    # seconds, cpu_seconds, objective_seconds: wall time, processor time, and the part of the
    # processor time spent in the objective.
    seconds: float
    cpu_seconds: float
    objective_seconds: float
    started: str  # Coordinated universal time of the start.
    versions: Mapping[str, str]  # Versions of everything that had a part in it.
    # trace_evaluations, trace_best, trace_sigma: the thinned convergence trace.
    trace_evaluations: Floats
    trace_best: Floats
    trace_sigma: Floats
    # The largest violation of a constraint at the best point; None without constraints.
    violation: float | None = None

    @classmethod
    def taken_over(cls, row: Mapping[str, str], marks: Floats, best: Floats) -> TrialResult:
        """Return the result in a line of a CSV file, with the best value at some evaluations."""
        seconds = float(row["cpu_seconds"])
        return cls(
            best=float(best[-1]),
            evaluations=int(row["evaluations"]),
            generations=int(row.get("generations", 0)),
            restarts=int(row["restarts"]),
            reached=bool(int(row.get("reached", 0))),
            status=row.get("status", "TAKEN_OVER"),
            message="Taken over from a list of single runs.",
            seconds=seconds,
            cpu_seconds=seconds,
            objective_seconds=0.0,
            started=row["started"],
            versions={"mmes": row["mmes"]},
            trace_evaluations=marks,
            trace_best=best,
            trace_sigma=np.full(best.size, np.nan),
        )

    @property
    def cost(self) -> float:
        """Evaluations to the target, infinity where it was not reached."""
        return float(self.evaluations) if self.reached else float("inf")

    @property
    def seconds_per_evaluation(self) -> float:
        """Processor time per evaluation, the objective excluded."""
        own = max(self.cpu_seconds - self.objective_seconds, 0.0)
        return own / max(self.evaluations, 1)


def _row(run: Trial, outcome: TrialResult) -> dict[str, Any]:
    fields = asdict(outcome)
    fields["versions"] = json.dumps(dict(outcome.versions), sort_keys=True)
    for name in ("trace_evaluations", "trace_best", "trace_sigma"):
        fields[name] = np.asarray(fields[name], dtype=np.float64).tolist()
    return {
        "schema": SCHEMA_VERSION,
        "key": run.key,
        "strategy": named_file(run.strategy.name)[1],
        "strategy_label": run.strategy.label,
        "options": json.dumps(dict(run.strategy.options), sort_keys=True),
        "problem": named_file(run.objective.name)[1],
        "problem_label": run.objective.label,
        "problem_options": json.dumps(dict(run.objective.options), sort_keys=True),
        "dimension": run.dimension,
        "seed": run.seed,
        "max_evaluations": run.max_evaluations,
        "target": run.target,
        "start": "box" if run.start is None else json.dumps(run.start),
        "sigma0": run.sigma0,
        "bounds": run.bounds,
        **fields,
    }


class Store:
    """A folder of finished runs, made on the first write; it may hold the runs of many plans."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()  # the user's code may change the folder

    def path(self, key: str) -> Path:
        """Return the file of a run."""
        return self.folder / f"{checked_key(key)}.parquet"

    def write(self, run: Trial, outcome: TrialResult) -> None:
        """Store a finished run; storing it twice leaves one."""
        polars = require("polars")
        schema = {name: _type(polars, kind) for name, kind in COLUMNS.items()}
        frame = polars.DataFrame([_row(run, outcome)], schema=schema)
        write_atomically(self.path(run.key), frame.write_parquet)
        self.failure_path(run.key).unlink(missing_ok=True)

    def failure_path(self, key: str) -> Path:
        """Return the file that says why a run failed."""
        return self.folder / "failures" / f"{checked_key(key)}.json"

    def write_failure(self, run: Trial, message: str) -> None:
        """Note why a run failed; it counts as not finished and will be tried again."""
        note = {"key": run.key, "run": str(run), "message": message}
        write_json(self.failure_path(run.key), note)

    def failures(self) -> list[dict[str, str]]:
        """Return the noted failures, each with key, run and message."""
        notes = sorted((self.folder / "failures").glob("*.json"))
        return [json.loads(note.read_text(encoding="utf-8")) for note in notes]

    def rows(self) -> list[dict[str, Any]]:
        """Return every stored run as a dictionary, one per key, in order of the keys.

        A file that cannot be read (a copy cut short) is named in a warning and counts as missing.
        """
        polars = require("polars")
        found: list[dict[str, Any]] = []
        for path in sorted(self.folder.glob("*.parquet")):
            if path.name.startswith("."):
                continue
            try:
                rows = polars.read_parquet(path).to_dicts()
            except Exception as error:  # polars raises its own, OSError and Rust panics alike
                warnings.warn(
                    f"{path} cannot be read and counts as missing ({type(error).__name__})",
                    stacklevel=2,
                )
                continue
            found += [_checked(row, path) for row in rows]
        return list({row["key"]: row for row in found}.values())

    def finished(self) -> set[str]:
        """Return the keys of all readable stored runs."""
        return {row["key"] for row in self.rows()}

    def runs(self) -> list[Trial]:
        """Return the stored runs themselves, as far as tables and charts need them."""
        return [run_of(row) for row in self.rows()]

    def outcomes(self, runs: Iterable[Trial] | None = None) -> dict[str, TrialResult]:
        """Return the outcomes by key: of the given runs as far as finished, or of all."""
        wanted = None if runs is None else {run.key for run in runs}
        return {
            row["key"]: outcome_of(row)
            for row in self.rows()
            if wanted is None or row["key"] in wanted
        }


def _type(polars: Any, kind: str) -> Any:
    return polars.List(polars.Float64) if kind.startswith("List") else getattr(polars, kind)


def _checked(row: dict[str, Any], path: Path) -> dict[str, Any]:
    version = row.get("schema")
    if not isinstance(version, int):
        raise StoreError(f"{path} is a Parquet file, but not one of runs")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path} has schema {version}, this version reads up to {SCHEMA_VERSION}: update mmes"
        )
    missing = sorted(set(COLUMNS) - set(row) - _LATER)
    if missing:
        raise StoreError(f"{path} lacks the columns {', '.join(missing)}")
    try:
        checked_key(row["key"])
    except ValueError as error:
        raise StoreError(f"{path}: {error}") from None
    return row


def run_of(row: Mapping[str, Any]) -> Trial:
    """Return the description of a stored run."""
    options, problem_options = json.loads(row["options"]), json.loads(row["problem_options"])
    return Trial(
        Strategy(row["strategy"], row["strategy_label"], tuple(sorted(options.items()))),
        Objective(row["problem"], row["problem_label"], tuple(sorted(problem_options.items()))),
        dimension=row["dimension"],
        seed=row["seed"],
        max_evaluations=row["max_evaluations"],
        target=row["target"],
        start=None if row["start"] == "box" else tuple(json.loads(row["start"])),
        sigma0=row["sigma0"],
        bounds=row["bounds"],
        stored_key=row["key"],
    )


def outcome_of(row: Mapping[str, Any]) -> TrialResult:
    """Return the outcome part of a stored row."""
    fields: dict[str, Any] = {name: row.get(name) for name in TrialResult.__dataclass_fields__}
    fields["versions"] = json.loads(row["versions"])
    for name in ("trace_evaluations", "trace_best", "trace_sigma"):
        fields[name] = np.array(row[name], dtype=np.float64)
    return TrialResult(**fields)


def thin(evaluations: Floats, best: Floats, limit: int = 256) -> NDArrayInt:
    """Return the places of a trace worth keeping, at most about `limit` of them.

    Half are spread evenly over the evaluations, as a picture needs; half are the first
    places below each of a ladder of values, so that runtimes to targets stay exact where the
    ladder has its rungs.
    """
    size = evaluations.size
    if size <= limit:
        return np.arange(size)
    spread = np.linspace(evaluations[0], evaluations[-1], limit // 2)
    even = np.searchsorted(evaluations, spread)
    falling = np.minimum.accumulate(best)
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.floor(np.log10(falling) * 5.0)  # five rungs per factor of ten
        # inf - inf where no feasible point is known yet
        rungs = np.flatnonzero(np.diff(level, prepend=level[0]) < 0)
    stride = max(1, -(-rungs.size // (limit // 2)))
    return np.unique(np.concatenate([[0], even, rungs[::-stride], [size - 1]]))


NDArrayInt = np.ndarray[Any, np.dtype[np.intp]]
