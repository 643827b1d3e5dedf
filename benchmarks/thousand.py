"""Evaluations to 1e-8 at n = 1000: AdaptiveMMES beside this library's rivals and pycma's.

    python benchmarks/thousand.py                       # make the missing runs, then the table
    python benchmarks/thousand.py --strategy AdaptiveMMES --problem Cigar
    python benchmarks/thousand.py --table               # of the runs so far, and benchmarks/data

The protocol is that of the basic experiments: x0 uniform in [-5, 5]^n, sigma0 = 3. After an
interruption, finished runs are not repeated.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from mmes.lab.experiments.execute import perform, starting_point
from mmes.lab.experiments.objectives import resolve
from mmes.lab.experiments.plan import Objective, Strategy, Trial
from mmes.lab.experiments.results.store import Store, TrialResult
from mmes.lab.experiments.runner import execute
from mmes.lab.experiments.sections.setting import PROBLEMS, STRATEGIES

DATA = Path(__file__).parent / "data" / "thousand.csv"
N = 1000
ROWS = {"Sphere": Objective("sphere", "Sphere")} | {
    label: PROBLEMS[label]
    for label in ("Cigar", "RotCigar", "DiffPow", "Discus", "Elli", "RotDiscus", "Rosen")
}
GOALS = {
    "Sphere": 7.0e4,
    "Cigar": 1.75e5,
    "RotCigar": 1.75e5,
    "Elli": 1.7e6,
    "DiffPow": 3.1e5,
    "Discus": 2.0e5,
    "RotDiscus": 1.8e6,
}
ADAPTIVE = Strategy("adaptive", "AdaptiveMMES")
RIVALS = ("MMES", "sep-CMA", "LM-CMA", "Rm-ES", "SDA-ES", "LM-MA")
OURS = [ADAPTIVE, *(STRATEGIES[label] for label in RIVALS)]
PYCMA = [Strategy("pycma/diagonal", "pycma diagonal"), Strategy("pycma/vkd", "pycma VkD-CMA")]
COLUMNS = {strategy.label: strategy for strategy in (*OURS, *PYCMA)}
BUDGET = 2e7
# What is hopeless or too slow in Python is given less, or left out: (problems, budget, seeds).
DIAGONAL_ONLY = ("Sphere", "Cigar", "DiffPow", "Discus", "Elli", "Rosen")
CHEAP = ("Sphere", "Cigar", "RotCigar", "DiffPow", "Discus")
LIMITS: dict[str, tuple[tuple[str, ...], float]] = {
    "sep-CMA": (DIAGONAL_ONLY, BUDGET),
    "pycma diagonal": (DIAGONAL_ONLY[:-1], 1e6),
    "pycma VkD-CMA": (CHEAP, 5e5),
}
FEWER_SEEDS = {"RotDiscus": 3}


def trials(strategies: list[str], problems: list[str], seeds: int) -> Iterator[Trial]:
    """Return the runs that the file lacks: every cell has a run before any has two."""
    made = {(row["problem"], row["strategy"], row["seed"]) for row in stored()}
    for seed in range(1, seeds + 1):
        for problem in problems:
            for label in strategies:
                rows, budget = LIMITS.get(label, (tuple(ROWS), BUDGET))
                wanted = problem in rows and seed <= FEWER_SEEDS.get(problem, seeds)
                if wanted and (problem, label, str(seed)) not in made:
                    yield Trial(COLUMNS[label], ROWS[problem], N, seed, int(budget))


def run_any(trial: Trial) -> TrialResult:
    """Carry out a run of ours or of pycma's."""
    return run_pycma(trial) if trial.strategy.name.startswith("pycma/") else perform(trial)


def run_pycma(trial: Trial) -> TrialResult:
    """Carry out a run with pycma, from the same start point."""
    import cma
    from cma.restricted_gaussian_sampler import GaussVkDSampler

    problem = resolve(trial.objective.name, trial.dimension, dict(trial.objective.options), 0)
    place = starting_point(trial, problem)
    started, begin = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    cpu = time.process_time()
    options: dict[str, Any] = {
        "seed": trial.seed,
        "ftarget": trial.target,
        "maxfevals": trial.max_evaluations,
        "verbose": -9,
        # It ends at its target or with its budget, as ours do.
        **dict.fromkeys(("tolfun", "tolfunhist", "tolx"), 0),
        **dict.fromkeys(("tolstagnation", "tolflatfitness", "maxiter"), math.inf),
    }
    if trial.strategy.name == "pycma/diagonal":
        options["CMA_diagonal"] = True
    else:
        options = GaussVkDSampler.extend_cma_options(options)
    es = cma.CMAEvolutionStrategy(place.x0, place.sigma0, options)
    while not es.stop():
        points = es.ask()
        es.tell(points, problem.batch(np.asarray(points)).tolist())
    best, nothing = float(es.result.fbest), np.empty(0)
    return TrialResult(
        best=best,
        evaluations=int(es.countevals),
        generations=int(es.countiter),
        restarts=0,
        reached=best <= (trial.target or -math.inf),
        status=",".join(es.stop()),
        message="",
        seconds=time.perf_counter() - begin,
        cpu_seconds=time.process_time() - cpu,
        objective_seconds=0.0,
        started=started,
        versions={"cma": version("cma")},
        trace_evaluations=nothing,
        trace_best=nothing,
        trace_sigma=nothing,
    )


FIELDS = ("problem", "strategy", "seed", "reached", "evaluations", "best", "cpu_seconds", "status")


def export(store: Store) -> None:
    """Write the single runs of the store as one CSV file, beside those that are there."""
    rows = {(r["problem"], r["strategy"], r["seed"]): r for r in stored()}
    for row in store.rows():
        entry = {
            "problem": row["problem_label"],
            "strategy": row["strategy_label"],
            "seed": str(row["seed"]),
            "reached": str(int(row["reached"])),
            "evaluations": str(row["evaluations"]),
            "best": f"{row['best']:.3g}",
            "cpu_seconds": f"{row['cpu_seconds']:.1f}",
            "status": row["status"],
        }
        rows[entry["problem"], entry["strategy"], entry["seed"]] = entry
    DATA.parent.mkdir(exist_ok=True)
    with DATA.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[key] for key in sorted(rows))


def stored() -> list[dict[str, str]]:
    """Return the single runs of the CSV file."""
    if not DATA.exists():
        return []
    with DATA.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table() -> str:
    """Return the table of medians in Markdown."""
    rows = stored()
    lines = [
        "| | at most | " + " | ".join(COLUMNS) + " |",
        "| --- " * (len(COLUMNS) + 2) + "|",
    ]
    for problem in ROWS:
        cells = [problem, f"{GOALS[problem]:.2e}" if problem in GOALS else "–"]
        for label in COLUMNS:
            here = [r for r in rows if (r["problem"], r["strategy"]) == (problem, label)]
            cells.append(cell(here))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines).replace("e+0", "e")


def cell(runs: list[dict[str, str]]) -> str:
    """Return the median of the runs; one that missed the target counts as infinite."""
    if not runs:
        return "–"
    costs = [float(r["evaluations"]) if r["reached"] == "1" else math.inf for r in runs]
    median = sorted(costs)[len(costs) // 2]
    if math.isinf(median):
        values = sorted(float(r["best"]) for r in runs)
        spent = max(int(r["evaluations"]) for r in runs)
        return f"{values[len(values) // 2]:.2g} after {spent:.1e} ({len(runs)})"
    return f"{median:.2e} ({len(runs)})"


def main() -> None:
    """Make the runs that are missing, write the CSV file, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--strategy", action="append", choices=list(COLUMNS))
    parser.add_argument("--problem", action="append", choices=list(ROWS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", default="out/thousand")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="print only the table")
    arguments = parser.parse_args()
    store = Store(Path(arguments.out) / "runs")
    if not arguments.table:
        chosen = arguments.strategy or list(COLUMNS), arguments.problem or list(ROWS)
        report = execute(
            trials(*chosen, arguments.seeds),
            store,
            workers=arguments.workers,
            function=run_any,
        )
        for message in report.failed.values():
            print(message)
    export(store)
    print(table())


if __name__ == "__main__":
    main()
