"""bbob-largescale, n = 160: area under the runtime distribution, strategy beside strategy.

    python benchmarks/bbob.py                       # makes the missing runs, then the table
    python benchmarks/bbob.py --table               # from the single runs in benchmarks/data

300 n evaluations, 24 functions, 3 seeds (instances 1, 2, 3); the start is COCO's proposal, sigma0
0.3 of the box, no bounds, as `mmes coco` runs it. Targets are 51 from f_opt + 1e2 to f_opt + 1e-8;
the area is the mean, over the evaluations on a logarithmic scale from n to the budget, of the share
of targets reached. Needs the extra `coco`. A run that is in the file is not repeated.

N.B. COCO's proposal is the centre of the box; on f19 it is better than anything the strategies find
(--leave-out 19). Since x0 is evaluated first, all strategies get its value.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import contextlib
import csv
import math
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import mmes

DATA = Path(__file__).parent / "data" / "bbob.csv"
N, BUDGET = 160, 300
STRATEGIES = ("adaptive", "mmes", "lm-cma", "sda-es")
TARGETS = 10.0 ** np.linspace(2, -8, 51)
FIELDS = ("function", "strategy", "seed", "reached", "area", "final", "cpu_seconds")


class Traced:
    """A problem of COCO that notes when each target was reached."""

    def __init__(self, problem: Any, optimum: float):
        self.problem, self.calls, self.best = problem, 0, math.inf
        self.optimum = optimum
        self.hits: list[int] = []

    def __call__(self, x: Any) -> float:
        """Return the value of a point."""
        value = float(self.problem(x))
        self.calls += 1
        if value < self.best:
            self.best = value
            while len(self.hits) < len(TARGETS) and self.gap <= TARGETS[len(self.hits)]:
                self.hits.append(self.calls)
        return value

    @property
    def gap(self) -> float:
        """How far the best value is from the optimum."""
        return self.best - self.optimum

    def area(self, budget: int) -> float:
        """Return the area under the runtime distribution."""
        span = math.log(budget / N)
        return sum(math.log(budget / max(hit, N)) for hit in self.hits) / (span * len(TARGETS))


def least(problem: Any) -> float:
    """Return the minimum: COCO writes its place to a file in the current folder."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        problem._best_parameter("print")
        return float(problem(np.loadtxt("._bbob_problem_best_parameter.txt")))


def one(function: int, strategy: str, seed: int) -> dict[str, Any]:
    """Make one run and return its line."""
    import cocoex

    words = f"dimensions: {N} function_indices: {function} instance_indices: {seed}"
    suite = cocoex.Suite("bbob-largescale", "", words)  # it owns the memory of its problems
    twin = suite.get_problem(0)
    optimum = least(twin)
    twin.free()
    problem = suite.get_problem(0)
    traced, budget, begin = Traced(problem, optimum), BUDGET * N, time.process_time()
    mmes.minimize(
        traced,
        problem.initial_solution_proposal(0),
        0.3 * 10,
        strategy=strategy,
        max_evaluations=budget,
        restarts="unlimited",
        seed=seed,
        callback=lambda progress: problem.final_target_hit,
        threads=1,
    )
    return {
        "function": function,
        "strategy": strategy,
        "seed": seed,
        "reached": len(traced.hits),
        "area": f"{traced.area(budget):.5f}",
        "final": f"{traced.gap:.4g}",
        "cpu_seconds": f"{time.process_time() - begin:.1f}",
    }


def stored() -> list[dict[str, str]]:
    """Return the single runs of the file."""
    if not DATA.exists():
        return []
    with DATA.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table(left_out: list[str]) -> str:
    """Return the table in Markdown: over what every strategy was run on."""
    rows = [row for row in stored() if row["function"] not in left_out]
    cells = {(r["function"], r["strategy"], r["seed"]): r for r in rows}
    shared = {
        (f, seed)
        for f, _, seed in cells
        if all((f, strategy, seed) in cells for strategy in STRATEGIES)
    }
    lines = [
        f"| strategy | targets reached | area | `{STRATEGIES[0]}` minus this "
        "| best final value on |",
        "| --- | --- | --- | --- | --- |",
    ]
    functions = sorted({int(f) for f, _ in shared})
    final = {
        (f, s): np.median([float(cells[g, s, k]["final"]) for g, k in shared if int(g) == f])
        for f in functions
        for s in STRATEGIES
    }
    for s in STRATEGIES:
        mine = [cells[f, s, k] for f, k in shared]
        share = np.mean([int(r["reached"]) / len(TARGETS) for r in mine])
        area = np.mean([area_of(r) for r in mine])
        ours = {(f, k): area_of(cells[f, STRATEGIES[0], k]) for f, k in shared}
        less = [
            np.mean([ours[g, k] - area_of(cells[g, s, k]) for g, k in shared if int(g) == f])
            for f in functions
        ]
        error = np.std(less, ddof=1) / math.sqrt(len(less)) if len(less) > 1 else math.nan
        apart = f"{np.mean(less):+.4f} ± {error:.4f}" if s != STRATEGIES[0] else ""
        first = [f"f{f}" for f in functions if final[f, s] == min(final[f, t] for t in STRATEGIES)]
        lines.append(f"| `{s}` | {share:.3f} | {area:.3f} | {apart} | {', '.join(first)} |")
    seeds = len({k for _, k in shared})
    return "\n".join([*lines, "", f"{len(functions)} functions, {seeds} seeds"])


def area_of(row: dict[str, str]) -> float:
    """Return the area of a run."""
    return float(row["area"])


def main() -> None:
    """Make the runs that are missing, then print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--strategy", action="append", choices=STRATEGIES)
    parser.add_argument("--table", action="store_true", help="print only the table")
    parser.add_argument("--leave-out", action="append", default=[], metavar="FUNCTION")
    arguments = parser.parse_args()
    if not arguments.table:
        done = {(r["function"], r["strategy"], r["seed"]) for r in stored()}
        DATA.parent.mkdir(exist_ok=True)
        for seed in range(1, arguments.seeds + 1):
            for function in range(1, 25):
                for strategy in arguments.strategy or STRATEGIES:
                    if (str(function), strategy, str(seed)) in done:
                        continue
                    line = one(function, strategy, seed)
                    new = not DATA.exists()
                    with DATA.open("a", encoding="utf-8", newline="") as file:
                        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                        if new:
                            writer.writeheader()
                        writer.writerow(line)
    print(table(arguments.leave_out))


if __name__ == "__main__":
    main()
