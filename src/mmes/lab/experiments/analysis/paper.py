"""The published numbers of the MMES paper, as data to compare with.

The rank-sum marks are the paper's own: they came from runs that were never published, so they
can be shown but not recomputed. Average ranks and p-values follow from the medians, and tests
check that.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from mmes.lab.experiments.analysis.statistics import Mark

SUITES = ("basic_1000d", "scalability", "cec2010", "cec2013")
"""The suites with a table of medians and a rank table."""

OVERLAPPING = {("cec2013", "f13"): 905, ("cec2013", "f14"): 905}
"""Functions whose groups overlap have fewer variables than the 1000 of their suite."""


@cache
def load(name: str) -> dict[str, Any]:
    """Return one packaged file of published numbers, for example ``load("runtime")``."""
    folder = files("mmes.lab.experiments") / "data" / "paper"
    path = folder / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".json")))
        raise ValueError(f"no published table {name!r}; there are {known}")
    return json.loads(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Published:
    """One cell of a published table."""

    median: float | None
    mark: Mark | None
    shade: str | None


@dataclass(frozen=True)
class PublishedTable:
    """A published table of medians."""

    suite: str  # One of `SUITES`.
    quantity: str  # What the medians count.
    algorithms: tuple[str, ...]  # The columns, as the paper names them.
    rows: tuple[tuple[str, int], ...]  # Problem and dimension of each row.
    cells: dict[tuple[str, int, str], Published]  # (problem, dimension, algorithm) to its cell.


@cache
def table(suite: str) -> PublishedTable:
    """Return a published table of medians by the name of its suite."""
    if suite not in SUITES:
        raise ValueError(f"no published suite {suite!r}; there are {', '.join(SUITES)}")
    data = load(suite)
    rows: list[tuple[str, int]] = []
    cells: dict[tuple[str, int, str], Published] = {}
    for row in data["rows"]:
        usual = OVERLAPPING.get((suite, row["problem"]), 1000)
        key = (row["problem"], int(row.get("n", usual)))
        rows.append(key)
        for algorithm, cell in row["results"].items():
            cells[(*key, algorithm)] = Published(
                cell["median"],
                None if cell["mark"] is None else Mark(cell["mark"]),
                cell.get("highlight"),
            )
    return PublishedTable(suite, data["quantity"], tuple(data["algorithms"]), tuple(rows), cells)
