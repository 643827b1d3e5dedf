"""The report of a single run: result.json, history.csv and x.npy as ``mmes run --out`` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from mmes.lab.experiments.analysis.charts import Chart, Series
from mmes.lab.experiments.analysis.statistics import Floats
from mmes.lab.experiments.analysis.tables import number
from mmes.lab.experiments.results.formats import read_rows
from mmes.lab.report.page import Page, PageSection

RESULT, HISTORY, POINT = "result.json", "history.csv", "x.npy"
SHOWN_VARIABLES = 2000
"""Variables of the best point in its picture; larger points are thinned evenly."""


def is_single_run(folder: Path) -> bool:
    """Whether the folder holds the result of one run."""
    return (folder / RESULT).is_file()


def read_history(path: Path) -> dict[str, Floats]:
    """Return the columns of a history: evaluations, best, sigma and, if there, start."""
    rows = read_rows(path, ("evaluations", "best", "sigma"))
    if not rows:
        raise ValueError(f"{path} has no lines")
    try:
        return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} has a line that does not consist of numbers: {error}") from None


def _by_start(history: dict[str, Floats], column: str) -> tuple[Series, ...]:
    """Return one curve per start, so that restarts are seen as such."""
    starts = history.get("start", np.zeros_like(history["best"]))
    numbers = np.unique(starts)
    several = numbers.size > 1
    return tuple(
        Series(
            f"start {int(s) + 1}" if several else "",
            history["evaluations"][starts == s],
            history[column][starts == s],
        )
        for s in numbers
    )


def _charts(history: dict[str, Floats], x: Floats | None) -> list[Chart]:
    def by_start(name: str, title: str, label: str, column: str) -> Chart:
        positive = bool(np.all(history[column] > 0))
        curves = _by_start(history, column)
        return Chart(name, title, "evaluations", label, curves, y_log=positive)

    best = history["best"]
    gap = best - best.min()
    charts = [
        by_start("convergence", "Convergence", "best value so far", "best"),
        by_start("sigma", "Step size", "σ", "sigma"),
    ]
    if not np.all(best > 0) and np.any(gap > 0):
        curve = Series("", history["evaluations"], np.where(gap > 0, gap, np.nan))
        texts = "Distance to the final value", "evaluations", "f − best f"
        charts.insert(1, Chart("gap", *texts, (curve,), y_log=True))
    if x is not None:
        keep = np.unique(np.linspace(0, x.size - 1, min(x.size, SHOWN_VARIABLES)).astype(int))
        thinned = f" ({keep.size} of {x.size} variables shown)" if keep.size < x.size else ""
        point = Series("", keep.astype(np.float64), x[keep])
        charts.append(Chart("point", f"Best point{thinned}", "variable", "value", (point,)))
    return charts


def _in_text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, dict | list):
        text = json.dumps(value)
        return text if len(text) <= 400 else text[:400] + " …"
    return str(value)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else _in_text(value)


def single_page(folder: Path) -> Page:
    """Return the page of a single run."""
    try:
        result = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{folder / RESULT} is not valid JSON: {error}") from None
    if not isinstance(result, dict):
        raise ValueError(f"{folder / RESULT} must contain an object with the fields of a result")
    history = read_history(folder / HISTORY) if (folder / HISTORY).is_file() else None
    x = None
    if (folder / POINT).is_file():
        x = np.atleast_1d(np.load(folder / POINT, allow_pickle=False)).astype(np.float64).ravel()
    facts = [(str(name), _in_text(value)) for name, value in result.items() if name != "history"]
    if x is not None:
        ends = ", ".join(number(v) for v in x[:8])
        facts.append(("x, first entries", ends + (", …" if x.size > 8 else "")))
        facts.append(("x, extremes", f"{number(float(x.min()))} to {number(float(x.max()))}"))
    names = {
        "fun": "best value",
        "nfev": "evaluations",
        "nit": "generations",
        "starts": "starts",
        "sigma": "final σ",
        "time": "seconds",
    }
    cards = [(text, _short(result[key])) for key, text in names.items() if key in result]
    if x is not None:
        cards.append(("variables", str(x.size)))
    section = PageSection(
        id="run",
        title="The run",
        text=str(result.get("message", "")),
        charts=tuple(_charts(history, x)) if history is not None else (),
        notes=() if history is not None else (f"There is no {HISTORY}, so no curves.",),
    )
    title = str(result.get("objective") or folder.resolve().name)
    return Page(
        title=f"Run: {title}",
        lead="One run of mmes: convergence, step size, restarts and the best point.",
        cards=tuple(cards),
        sections=(section,),
        settings=tuple(facts),
    )
