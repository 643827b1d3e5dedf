"""Where should `strategy="auto"` change from active CMA-ES to AdaptiveMMES? Rotated problems.

    python benchmarks/limit.py            # makes the missing runs (laboratory), then the table
    python benchmarks/limit.py --table    # from the single runs in benchmarks/data

Evaluations to 1e-8, x0 uniform in [-5, 5]^n, sigma0 = 3. A run that misses the target counts with
its whole budget. The last column is the sum of the logarithms of the ratios, active CMA-ES
over AdaptiveMMES: below 0 active CMA-ES is the better choice.
"""

from __future__ import annotations

import argparse
import csv
import math
from pathlib import Path

import numpy as np

from mmes.lab.experiments.plan import Strategy, Trial
from mmes.lab.experiments.results.store import Store
from mmes.lab.experiments.runner import execute
from mmes.lab.experiments.sections.setting import PROBLEMS

DATA = Path(__file__).parent / "data" / "limit.csv"
DIMENSIONS = (50, 100, 150, 200)
LABELS = [label for label in PROBLEMS if label.startswith("Rot")]
STRATEGIES = {
    "active CMA-ES": Strategy("active-cma", "active CMA-ES"),
    "adaptive": Strategy("adaptive", "adaptive"),
}
BUDGET = 8000  # evaluations per variable
FIELDS = ("problem", "n", "strategy", "seed", "reached", "evaluations", "cpu_seconds")


def trials(seeds: int) -> list[Trial]:
    """Return the runs: seeds outermost; 8,000 n evaluations each at most."""
    return [
        Trial(strategy, PROBLEMS[label], n, seed, BUDGET * n)
        for seed in range(1, seeds + 1)
        for n in DIMENSIONS
        for label in LABELS
        for strategy in STRATEGIES.values()
    ]


def export(store: Store) -> None:
    """Write the single runs as one CSV file."""
    lines = [
        {
            "problem": row["problem_label"],
            "n": row["dimension"],
            "strategy": row["strategy_label"],
            "seed": row["seed"],
            "reached": int(row["reached"]),
            "evaluations": row["evaluations"],
            "cpu_seconds": f"{row['cpu_seconds']:.1f}",
        }
        for row in store.rows()
    ]
    lines.sort(key=lambda line: (line["n"], line["problem"], line["strategy"], line["seed"]))
    DATA.parent.mkdir(exist_ok=True)
    with DATA.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def table() -> str:
    """Return the table in Markdown: active CMA-ES / AdaptiveMMES, and the sum of logs."""
    with DATA.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    lines = ["| n | " + " | ".join(LABELS) + " | sum of logs |", "| --- " * (len(LABELS) + 2) + "|"]
    for n in DIMENSIONS:
        cells, total = [], 0.0
        for label in LABELS:
            spent = []
            for strategy in STRATEGIES:
                here = [r for r in rows if (r["problem"], r["n"]) == (label, str(n))]
                mine = [r for r in here if r["strategy"] == strategy]
                spent.append((median(mine), all(r["reached"] == "1" for r in mine)))
            if any(math.isnan(value) for value, _ in spent):
                cells.append("–")
                continue
            cells.append(" / ".join(f"{v:.2g}{'' if ok else '+'}" for v, ok in spent))
            total += math.log(spent[0][0] / spent[1][0])
        lines.append(f"| {n} | " + " | ".join(cells) + f" | {total:+.2f} |")
    return "\n".join(lines).replace("e+0", "e")


def median(rows: list[dict[str, str]]) -> float:
    """Return the median of the evaluations; a run that missed the target has spent its budget."""
    spent = [int(r["evaluations"]) if r["reached"] == "1" else BUDGET * int(r["n"]) for r in rows]
    return float(np.median(spent)) if rows else math.nan


def main() -> None:
    """Make the runs that are missing, write the CSV file, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", default="out/limit")
    parser.add_argument("--table", action="store_true", help="print only the table")
    arguments = parser.parse_args()
    store = Store(Path(arguments.out) / "runs")
    if not arguments.table:
        execute(trials(arguments.seeds), store, workers=1)
    if store.folder.exists():
        export(store)
    print(table())


if __name__ == "__main__":
    main()
