"""Write the tables of docs/reproduction.md from the single runs in benchmarks/data.

python tools/reproduction.py                  # renew the page
python tools/reproduction.py --check          # 1 if the page is not up to date
python tools/reproduction.py --collect DIR    # add the runs of `mmes reproduce --out DIR` first
"""

from __future__ import annotations

import csv
import math
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from marked import grid, write_or_check

from mmes.lab.experiments.analysis import paper
from mmes.lab.experiments.analysis.tables import number
from mmes.lab.experiments.plan import Trial
from mmes.lab.experiments.results.single_runs import section_runs_as_csv, take_over_section
from mmes.lab.experiments.results.store import Store, TrialResult
from mmes.lab.experiments.sections import SECTIONS, Extent

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
DATA = ROOT / "benchmarks" / "data"
SUITES = {"basic": "basic_1000d", "scalability": "scalability"}
OWN = "AdaptiveMMES"
TOLERANCE = 0.05
LARGEST = 2e7

Cell = tuple[str, int, str]

# Why the cells of a strategy differ.
LM_CMA = "the published algorithm, which does not reproduce the paper's figures for it; "
LM_CMA += '`preset="fitted"` was fitted to them'
FEW_RUNS = 4
ROSENBROCK = f"fewer than {FEW_RUNS} runs; they differ by a factor of 2 or more between seeds"
REFERENCE = "a single run; the reference implementation takes as many evaluations (see below)"
SECOND = "runs that end at the second minimum, f = 3.98662, count as missed"
REASONS = {"LM-CMA": LM_CMA}


@dataclass(frozen=True)
class Compared:
    """The runs of a cell beside the paper's median; a run that missed the target is infinite."""

    costs: tuple[float, ...]
    published: float | None

    @property
    def median(self) -> float:
        """Our median."""
        return statistics.median(self.costs)

    @property
    def ratio(self) -> float:
        """Our median over the paper's."""
        return self.median / self.published if self.published else math.nan

    @property
    def verdict(self) -> str:
        """One of "agrees", "within" (the range of our runs holds the paper's median), "differs"."""
        if abs(self.ratio - 1.0) <= TOLERANCE:
            return "agrees"
        inside = self.published and min(self.costs) <= self.published <= max(self.costs)
        return "within" if inside else "differs"

    @property
    def text(self) -> str:
        """How a table shows it: ours / paper (runs)."""
        published = number(self.published) if self.published else "N/A"
        if not self.costs:
            return f"– / {published}"
        reached = sum(map(math.isfinite, self.costs))
        runs = str(len(self.costs))
        ours = number(self.median) if math.isfinite(self.median) else "not reached"
        counted = runs if reached == len(self.costs) else f"{reached} of {runs} reached it"
        return f"{ours} / {published} ({counted})"


def stored(section: str, store: Store) -> tuple[tuple[Trial, ...], dict[str, TrialResult]]:
    """Return the planned runs of a section, and the results of benchmarks/data in the store."""
    runs = SECTIONS[section].runs(Extent.FULL)
    file = DATA / f"{section}.csv"
    if file.exists():
        take_over_section(file, runs, store)
    return runs, store.outcomes(runs)


def compared(section: str) -> dict[Cell, Compared]:
    """Return every cell of the paper's table with our runs."""
    with tempfile.TemporaryDirectory() as folder:
        runs, results = stored(section, Store(Path(folder)))
    costs: dict[Cell, list[float]] = {}
    for run in runs:
        if run.key in results:
            costs.setdefault(run.cell, []).append(results[run.key].cost)
    table = paper.table(SUITES[section])
    return {
        cell: Compared(tuple(costs.get(cell, ())), published.median)
        for cell, published in table.cells.items()
    }


def medians(section: str, cells: Mapping[Cell, Compared]) -> str:
    """Return the paper's table with ours in it; at n = 1000 with a column of AdaptiveMMES."""
    table = paper.table(SUITES[section])
    own = own_cells() if section == "basic" else {}
    rows = []
    for problem, n in table.rows:
        name = problem if section == "basic" else f"{problem}, n = {n}"
        line = [name, *(cells[problem, n, label].text for label in table.algorithms)]
        rows.append([*line, own.get(problem, "–")] if own else line)
    return grid(["", *table.algorithms, *([f"{OWN}, ours"] if own else [])], rows)


def own_cells() -> dict[str, str]:
    """Return the medians of AdaptiveMMES, which the paper does not have, by problem."""
    found: dict[str, list[float]] = {}
    with (DATA / "thousand.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["strategy"] == OWN:
                spent = float(row["evaluations"]) if row["reached"] == "1" else math.inf
                found.setdefault(row["problem"], []).append(spent)
    return {
        problem: f"{number(statistics.median(costs))} ({len(costs)})"
        for problem, costs in found.items()
        if math.isfinite(statistics.median(costs))
    }


def agreement(cells: Mapping[Cell, Compared]) -> str:
    """Return how many cells agree, how many lack runs, and a table of those that do not agree."""
    run = {cell: found for cell, found in cells.items() if found.costs and found.published}
    counts = Counter(found.verdict for found in run.values())
    words = [
        f"**{counts['agrees']} of {len(run)} cells agree**: our median lies within "
        f"{100 * TOLERANCE:.0f} % of the paper's."
    ]
    if counts["within"]:
        words.append(
            f"In {counts['within']} more, the paper's median lies between our smallest and largest "
            "run."
        )
    different = counts["differs"]
    words.append(f"{different or 'None'} {'differ' if different > 1 else 'differs'}.")
    words.append(absent(cells))
    rows = [
        [f"{problem}, n = {n}", strategy, *shown(found), reason(problem, strategy, found)]
        for (problem, n, strategy), found in run.items()
        if found.verdict != "agrees"
    ]
    head = ["", "strategy", "paper", "ours", "ratio", "our runs", "why"]
    return "\n\n".join([" ".join(words), *([grid(head, rows)] if rows else [])])


def absent(cells: Mapping[Cell, Compared]) -> str:
    """Return how many cells rest on one run, lack one, or are not to be run."""
    single = sum(len(found.costs) == 1 for found in cells.values())
    without = {cell: found for cell, found in cells.items() if not found.costs}
    unsolved = sum(found.published is None for found in without.values())
    large = sum(too_large(cell, found) for cell, found in without.items())
    words = f"Cells with a single run: {single}; without any: {len(without) - unsolved - large}"
    if unsolved:
        words += f"; not run because the paper did not solve them: {unsolved}"
    if large:
        words += f"; not run because they take {LARGEST:.0e} evaluations or more: {large}"
    return f"{words}.".replace("e+0", "e")


def too_large(cell: Cell, found: Compared) -> bool:
    """Whether a cell is left out as too expensive: rivals in the table of large dimensions."""
    _, n, strategy = cell
    return n > 1000 and strategy != "MMES" and (found.published or 0.0) >= LARGEST


def shown(found: Compared) -> Iterator[str]:
    """Return both medians, their ratio and the single runs of a cell."""
    yield number(found.published)
    yield number(found.median) if math.isfinite(found.median) else "not reached"
    yield f"{found.ratio:.2f}" if math.isfinite(found.ratio) else "–"
    yield ", ".join(number(c) if math.isfinite(c) else "missed" for c in sorted(found.costs))


def reason(problem: str, strategy: str, found: Compared) -> str:
    """Return why a cell differs, as far as it is known."""
    if found.verdict == "within":
        less = sum(cost < (found.published or 0.0) for cost in found.costs)
        return f"{less} of {len(found.costs)} runs took less than the paper's median"
    if strategy in REASONS:
        return REASONS[strategy]
    if not problem.endswith("Rosen") or strategy == "sep-CMA":
        return "not explained"
    if math.isinf(found.median):
        return SECOND
    if strategy == "CMA-ES":
        return REFERENCE
    return ROSENBROCK if len(found.costs) < FEW_RUNS else "not explained"


def texts() -> dict[str, str]:
    """Return all that this program writes, by its mark in the page."""
    found = {}
    for section in SUITES:
        cells = compared(section)
        found[f"{section} medians"] = medians(section, cells)
        found[f"{section} agreement"] = agreement(cells)
    return found


def collect(folder: Path) -> None:
    """Add the runs of a reproduction's folder to the single runs of benchmarks/data."""
    for section in SUITES:
        with tempfile.TemporaryDirectory() as merged:
            runs, results = stored(section, Store(Path(merged)))
        results |= Store(folder / "runs").outcomes(runs)
        text = section_runs_as_csv(runs, results)
        (DATA / f"{section}.csv").write_text(text, encoding="utf-8")
        print(f"{section}: {len(results)} runs")


if __name__ == "__main__":
    if "--collect" in sys.argv:
        collect(Path(sys.argv[sys.argv.index("--collect") + 1]))
    sys.exit(write_or_check(PAGE, texts))
