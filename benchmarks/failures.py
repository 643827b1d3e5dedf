"""What failed evaluations cost: a sphere to 1e-8 whose evaluations return NaN at random.

python benchmarks/failures.py [--dimensions 50,300,1000] [--strategies all] [--shares 1,5,20]
[--seeds 1] [--record out/failures.jsonl] [--table]

Each run is `mmes.minimize` with its default options, from a start point uniform in [-5, 5]^n with
sigma0 = 3, and at most 20 times the evaluations of the run without failures. Finished runs are
kept as lines of the record and not run again. The table shows the evaluations without failures and
the ratio to them for every share of failures.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mmes
from mmes.errors import FailedEvaluationWarning
from mmes.strategies import STRATEGIES

TARGET = 1e-8
# A run that needs so many times the evaluations of the one without failures is given up.
PATIENCE = 20


class FailingSphere:
    """The squared distance from the origin; NaN for a share of the calls, drawn at random."""

    def __init__(self, share: float, seed: int):
        self.share = share
        self._draws = np.random.Generator(np.random.Philox(seed))

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Return the values of all points."""
        values = np.einsum("ij,ij->i", points, points)
        values[self._draws.random(values.size) < self.share] = np.nan
        return values


def measured(name: str, n: int, percent: float, seed: int, budget: int | None) -> dict[str, Any]:
    """Run once; return what is recorded."""
    start = np.random.Generator(np.random.Philox(seed)).uniform(-5, 5, n)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FailedEvaluationWarning)
        result = mmes.minimize(
            FailingSphere(percent / 100, seed),
            start,
            3.0,
            strategy=name,
            seed=seed,
            target=TARGET,
            vectorized=True,
            max_evaluations=budget,
        )
    return {
        "strategy": name,
        "n": n,
        "percent": percent,
        "seed": seed,
        "evaluations": result.nfev,
        "failed": result.failed,
        "fun": result.fun,
        "reason": result.reason.name,
        "success": result.success,
        "seconds": round(time.perf_counter() - began, 1),
    }


def recorded(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the finished runs."""
    if path.exists():
        for line in path.read_text().splitlines():
            yield json.loads(line)


def run_all(names: list[str], sizes: list[int], shares: list[float], seeds: int, path: Path):
    """Run what is not recorded yet; the run without failures first, which sets the budget."""
    done = {(r["strategy"], r["n"], r["percent"], r["seed"]): r for r in recorded(path)}
    path.parent.mkdir(parents=True, exist_ok=True)
    for n in sizes:
        for seed in range(1, seeds + 1):
            for name in names:
                for percent in (0.0, *shares):
                    key = name, n, percent, seed
                    if key in done:
                        continue
                    plain = done.get((name, n, 0.0, seed))
                    budget = None if plain is None else PATIENCE * plain["evaluations"]
                    done[key] = measured(name, n, percent, seed, budget)
                    with path.open("a") as file:
                        file.write(json.dumps(done[key]) + "\n")
                    print(json.dumps(done[key]), flush=True)


def table(path: Path) -> str:
    """Return the medians as a table in Markdown; a run that failed is shown by its reason."""
    runs = list(recorded(path))
    shares = sorted({r["percent"] for r in runs} - {0.0})
    lines = [
        "| strategy | n | without failures | " + " | ".join(f"{s:g} %" for s in shares) + " |",
        "| --- | --- | --- | " + " | ".join("---" for _ in shares) + " |",
    ]
    for name in STRATEGIES:
        for n in sorted({r["n"] for r in runs}):
            mine = [r for r in runs if (r["strategy"], r["n"]) == (name, n)]
            plain = [r["evaluations"] for r in mine if r["percent"] == 0.0]
            if not plain:
                continue
            cells = [_cell([r for r in mine if r["percent"] == s], plain) for s in shares]
            lines.append(
                f"| {name} | {n} | {statistics.median(plain):,.0f} | {' | '.join(cells)} |"
            )
    return "\n".join(lines)


def _cell(runs: list[dict[str, Any]], plain: list[int]) -> str:
    missed = [r["reason"] for r in runs if not r["success"]]
    if missed or not runs:
        return ", ".join(missed) or "-"
    return f"{statistics.median(r['evaluations'] for r in runs) / statistics.median(plain):.2f}"


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dimensions", default="50,300,1000")
    parser.add_argument("--strategies", default="all")
    parser.add_argument("--shares", default="1,5,20", help="failures in percent")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--record", type=Path, default=Path("out/failures.jsonl"))
    parser.add_argument("--table", action="store_true", help="print the table of the recorded runs")
    given = parser.parse_args()
    names = list(STRATEGIES) if given.strategies == "all" else given.strategies.split(",")
    sizes = [int(n) for n in given.dimensions.split(",")]
    shares = [float(s) for s in given.shares.split(",")]
    if not given.table:
        run_all(names, sizes, shares, given.seeds, given.record)
    print(table(given.record))


if __name__ == "__main__":
    main()
