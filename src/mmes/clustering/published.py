"""The paper's table: median objective over 20 runs, MMES and GSC, 18 data sets by 7 betas."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class PaperCell:
    """One cell of the table.

    Attributes
    ----------
    mmes, gsc : float
        The printed medians.
    mark : str
        ``"mmes_better"``, ``"mmes_worse"`` or ``"no_difference"``, at the level 0.05.
    """

    mmes: float
    gsc: float
    mark: str


@lru_cache(maxsize=1)
def paper_table() -> dict[tuple[str, float], PaperCell]:
    """Return the cells by (data set, beta), in the paper's order."""
    return {
        (name, row["beta"]): PaperCell(row["MMES"], row["GSC"], row["mark"])
        for name, rows in _file()["data_sets"].items()
        for row in rows
    }


def paper_betas() -> list[float]:
    """Return the values of beta, largest first."""
    return list(_file()["betas"])


@lru_cache(maxsize=1)
def _file() -> dict[str, Any]:
    file = resources.files("mmes.clustering.data").joinpath("paper.json")
    return json.loads(file.read_text(encoding="utf-8"))
