"""The files that a run writes, and the summary on the screen."""

from __future__ import annotations

import csv
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from mmes.base.tensors import to_numpy
from mmes.cli.status import Mistake
from mmes.run.observing.progress_line import duration
from mmes.run.result import Result

DEFAULT_FOLDER = "mmes-out"
FILES = ("result.json", "x.npy", "mean.npy", "history.csv")


def output_folder(folder: Path, given: str | None, overwrite: bool = False) -> Path:
    """Create the folder for the results before the run, and return it.

    If none is given, a new one is created that no other run uses; `folder` is then the first to
    try. `overwrite` says whether an existing result may be replaced.
    """
    first = folder.name
    there = [name for name in FILES if (folder / name).exists()] if given else []
    if there and not overwrite:
        raise Mistake(
            f"--out: the folder {given} already contains a result ({there[0]}); choose another, "
            "or replace it with --force"
        )
    for number in itertools.count(2):
        try:
            folder.mkdir(parents=given is not None, exist_ok=given is not None)
            break
        except OSError as error:
            if given is None and isinstance(error, FileExistsError):
                folder = folder.with_name(f"{first}-{number}")
                continue
            raise Mistake(
                f"--out: the folder {given or folder} cannot be created ({error.strerror})"
            ) from error
    return folder


def write_result(folder: Path, result: Result, target: str) -> None:
    """Write x.npy, mean.npy, history.csv and, last, result.json."""
    folder.mkdir(exist_ok=True)
    np.save(folder / "x.npy", to_numpy(result.x))
    np.save(folder / "mean.npy", to_numpy(result.mean))
    with open(folder / "history.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(result.history)
        for line in zip(*result.history.values(), strict=True):
            writer.writerow([f"{value:.17g}" for value in line])
    text = json.dumps(as_json(result) | {"objective": target}, indent=2, allow_nan=False)
    (folder / "result.json").write_text(text + "\n")


def as_json(result: Result) -> dict[str, Any]:
    """Return the result without its arrays in JSON types; infinities and NaN as strings."""
    left_out = ("x", "mean", "history", "reevaluated")
    entries = {k: v for k, v in vars(result).items() if k not in left_out}
    entries |= {"reason": result.reason.name, "dimension": np.size(to_numpy(result.x))}
    entries["reasons"] = [reason.name for reason in result.reasons]
    if result.reevaluated is not None:
        entries["reevaluated"] = result.reevaluated
    return {name: _plain(value) for name, value in entries.items()}


def summary(result: Result, folder: str) -> str:
    """Return the result in a few lines for people."""
    rate = result.nfev / result.time if result.time > 0 else math.nan
    lines = [
        ("best value", f"{result.fun:.10g}"),
        ("ended", result.message),
        ("evaluations", f"{result.nfev:,} in {result.nit:,} generations"),
        ("time", f"{duration(result.time)} ({rate:,.0f} evaluations per second)"),
        ("sigma", f"{result.sigma:.3g}"),
        ("seed", str(result.seed)),
    ]
    if result.constraint_violation is not None and result.active is not None:
        active = f"{int(result.active.sum())} of {result.active.size} constraints active"
        lines.append(("violation", f"{result.constraint_violation:.3g} ({active})"))
    if result.starts > 1:
        lines.append(("starts", str(result.starts)))
    if result.failed:
        lines.append(("failed", f"{result.failed:,} evaluations (NaN or caught errors)"))
    if result.retried:
        lines.append(("retried", f"{result.retried:,} evaluations whose worker was lost"))
    if result.reevaluated is not None:
        for name, label in (("x", "again"), ("mean", "mean again")):
            lines.append((label, _again(result.reevaluated[name])))
    lines.append(("saved", f"{folder}/ ({', '.join(FILES)})"))
    return "\n".join(f"{label:>12}  {text}" for label, text in lines)


def _again(values: Any) -> str:
    good = values[np.isfinite(values)]
    failed = (
        f", {values.size - good.size} without a finite value" if good.size < values.size else ""
    )
    shown = f"{good.mean():.6g} +- {good.std():.2g}" if good.size else "no value"
    return f"{shown} ({values.size} times{failed})"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
