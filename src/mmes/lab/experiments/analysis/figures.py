"""Charts drawn with matplotlib in the style of a paper, as PNG and SVG."""

from __future__ import annotations

from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from mmes.base.extras import require
from mmes.checkpoint.files import plain_name, write_atomically
from mmes.lab.experiments.analysis.charts import Chart, Series

PALETTE = (
    "#1f4e9c", "#d1495b", "#2a9d57", "#8e5ea2", "#e08a1e", "#3aa6b9", "#6b6b6b", "#b5579d",
    "#7a5230", "#9aa51e", "#333333", "#ef6f6c", "#4f772d",
)  # fmt: skip
"""Colours of the curves, legible in print and on a light or dark screen."""

KNOWN = ("MMES", "CMA-ES", "sep-CMA", "LM-MA", "LM-CMA", "Rm-ES", "SDA-ES")
"""Strategies of the paper: the same colour in every picture."""

MARKERS = "osD^vP*XhdpH<"

STYLE: dict[str, Any] = {
    "font.family": "serif",
    "font.size": 8,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "grid.linewidth": 0.3,
    "grid.alpha": 0.6,
    "lines.linewidth": 1.1,
    "legend.edgecolor": "none",
    "legend.fontsize": 7,
    "legend.columnspacing": 1.2,
    "svg.fonttype": "none",
    "svg.hashsalt": "mmes",
}


def colours(chart: Chart) -> dict[str, str]:
    """Return the colour of every name in the legend."""
    names = list(dict.fromkeys(series.name for series in chart.series))
    fixed = {name: PALETTE[KNOWN.index(name)] for name in names if name in KNOWN}
    # What is left of the palette goes to the others, all of it where no known name takes part.
    free = PALETTE[len(KNOWN) :] if fixed else PALETTE
    others = zip((name for name in names if name not in fixed), cycle(free), strict=False)
    return fixed | dict(others)


def _draw(axes: Any, series: Series, colour: str, marker: str, label: str | None) -> None:
    line: dict[str, Any] = {"color": colour, "label": label}
    if series.dashed:
        line["linestyle"] = "--"
    if series.kind == "steps":
        axes.step(series.x, series.y, where="post", **line)
        return
    if series.kind == "points":
        line |= {"marker": marker, "markersize": 3.5}
    else:
        # A few markers tell curves apart without colour.
        every = max(1, series.x.size // 8)
        line |= {"marker": marker, "markersize": 3, "markevery": every}
    axes.plot(series.x, series.y, **line)
    if series.low is not None and series.high is not None:
        axes.fill_between(series.x, series.low, series.high, color=colour, alpha=0.15, linewidth=0)


def draw(chart: Chart) -> Any:
    """Return the chart as a matplotlib figure."""
    figure_module = require("matplotlib.figure")
    matplotlib = require("matplotlib")
    with matplotlib.rc_context(STYLE):
        figure = figure_module.Figure(figsize=(3.5, 2.7), layout="constrained")
        axes = figure.add_subplot()
        palette = colours(chart)
        markers = dict(zip(palette, cycle(MARKERS), strict=False))
        labelled: set[str] = set()
        for series in chart.series:
            label = series.name if series.name and series.name not in labelled else None
            labelled.add(series.name)
            _draw(axes, series, palette[series.name], markers[series.name], label)
        if chart.x_log:
            axes.set_xscale("log")
        if chart.y_log and any(np.any(s.y > 0) for s in chart.series):
            axes.set_yscale("log")
        axes.set_title(chart.title, fontsize=9)
        axes.set_xlabel(chart.x_label)
        axes.set_ylabel(chart.y_label)
        if any(name for name in palette):
            # Below the picture, where it hides no curve.
            figure.legend(loc="outside lower center", ncols=min(len(palette), 4))
    return figure


def write_figure(chart: Chart, folder: Path) -> list[Path]:
    """Write a chart as PNG and SVG and return the files; a chart without curves writes none."""
    if not chart.series:
        return []
    matplotlib = require("matplotlib")
    figure = draw(chart)
    files: list[Path] = []
    for suffix, metadata in (("png", {}), ("svg", {"Date": None})):
        # Without a date, the same picture has the same bytes.
        save = partial(figure.savefig, format=suffix, dpi=200, metadata=metadata)
        path = folder / plain_name(f"{chart.name}.{suffix}")
        with matplotlib.rc_context(STYLE):
            write_atomically(path, save)
        files.append(path)
    return files
