"""Seconds of one core to 1e-8 with a free objective: this library's default beside other packages.

    python benchmarks/time_to_solution.py                    # make the missing runs, then the table
    python benchmarks/time_to_solution.py --dimension 100 --problem sphere --seeds 1
    python benchmarks/time_to_solution.py --table                # of the runs so far

Start uniform in [-5, 5]^n, sigma0 = 3, every package with its defaults, its own restarts and one
thread (`timed_solvers.py` says how each is called). The seconds are processor time without the
objective's. This library runs first; the others get ten times its time on that row (--patience), at
least 20 seconds, so that "> 20" marks those that did not reach the target. A package that is not
installed is omitted. Each run is a separate process: one that hangs is killed and counted as not
reached. The single runs are in benchmarks/data/time_to_solution.json; when started again, the
program makes only the missing ones. --again repeats those of this library, after a change to it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from timed_solvers import SOLVERS, whole_limit

DATA = Path(__file__).parent / "data" / "time_to_solution.json"
CHILD = Path(__file__).parent / "timed_solvers.py"
OURS = "mmes"
PROBLEMS = {
    "sphere": "Sphere",
    "ellipsoid": "Ellipsoid",
    "cigar": "Cigar",
    "rotated_ellipsoid": "RotEllipsoid",
    "rosenbrock": "Rosenbrock",
}
DIMENSIONS = (100, 1000, 10_000)
LARGEST_ROTATED = 1000
LEAST_LIMIT, MOST_LIMIT = 20.0, 3600.0
# Packages that hold a full matrix: hopeless here, and a single eigendecomposition takes minutes.
FULL_MATRIX = ("pycma", "cmaes")
LARGEST_FULL = 2000
GOAL = 3.0
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
     "MMES_THREADS"), "1",
)  # fmt: skip

Run = dict[str, Any]
Place = tuple[str, int]


def rows(problems: Iterable[str], dimensions: Iterable[int]) -> Iterator[Place]:
    """Return the rows of the table: a problem and its number of variables."""
    for n in dimensions:
        for problem in problems:
            if not problem.startswith("rotated") or n <= LARGEST_ROTATED:
                yield problem, n


def stored() -> list[Run]:
    """Return the single runs."""
    return json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else []


def keep(runs: list[Run]) -> None:
    """Write the single runs, one per line, in the order of the table."""
    order = {name: position for position, name in enumerate(SOLVERS)}
    places = {name: position for position, name in enumerate(PROBLEMS)}
    runs.sort(key=lambda r: (r["n"], places[r["problem"]], order[r["solver"]], r["seed"]))
    lines = ",\n".join(json.dumps(run) for run in runs)
    DATA.parent.mkdir(exist_ok=True)
    DATA.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def made_by_child(solver: str, place: Place, seed: int, limit: float) -> Run | None:
    """Carry out one run in a process of its own; None where the package is not installed."""
    problem, n = place
    task: Run = {"solver": solver, "problem": problem, "n": n, "seed": seed, "limit": limit}
    command = [sys.executable, str(CHILD), json.dumps(task)]
    wall = 20 * whole_limit(limit) + 600  # for what sleeps; what computes is ended by its own clock
    nothing = {"reached": False, "seconds": limit, "evaluations": 0, "best": None}
    try:
        done = subprocess.run(
            command, env=os.environ | ONE_THREAD, capture_output=True, text=True, timeout=wall,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return task | nothing | {"error": f"killed after {wall:.0f} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return task | nothing | {"error": f"exit status {done.returncode}: {last}"[:200]}
    found: Run = json.loads(done.stdout.splitlines()[-1])
    return None if "missing" in found else task | found


def limit_of(runs: Iterable[Run], place: Place, patience: float) -> float:
    """Return the seconds that a peer gets on a row: some times what this library took."""
    taken = [r["seconds"] for r in at(runs, place, OURS)]
    return round(min(max(patience * max(taken, default=0.0), LEAST_LIMIT), MOST_LIMIT), 1)


def at(runs: Iterable[Run], place: Place, solver: str) -> list[Run]:
    """Return the runs of a cell."""
    return [r for r in runs if (r["problem"], r["n"], r["solver"]) == (*place, solver)]


def make_missing(places: list[Place], solvers: list[str], seeds: int, patience: float) -> None:
    """Make the runs that are not stored, this library's first on every row."""
    runs, absent = stored(), set()
    for place in places:
        for solver in sorted(solvers, key=lambda name: name != OURS):
            if solver in FULL_MATRIX and place[1] > LARGEST_FULL:
                continue
            have = {r["seed"] for r in at(runs, place, solver)}
            for seed in range(1, seeds + 1):
                if seed in have or solver in absent:
                    continue
                limit = MOST_LIMIT if solver == OURS else limit_of(runs, place, patience)
                run = made_by_child(solver, place, seed, limit)
                if run is None:
                    print(f"{solver}: {SOLVERS[solver].package} is not installed", flush=True)
                    absent.add(solver)
                    continue
                runs.append(run)
                keep(runs)
                word = "reached" if run["reached"] else "not reached"
                print(f"{solver} on {place[0]}, n = {place[1]}, seed {seed}: {word}, "
                      f"{run['seconds']:.3g} s {run['error']}", flush=True)  # fmt: skip


# --- The table ------------------------------------------------------------------------------------


def middle(runs: list[Run]) -> float:
    """Return the median of the seconds; a run that did not arrive counts as infinite."""
    taken = sorted(r["seconds"] if r["reached"] else math.inf for r in runs)
    return statistics.median_high(taken) if taken else math.nan


def cell(runs: list[Run]) -> str:
    """Return how a cell is shown."""
    if not runs:
        return "–"
    value = middle(runs)
    if math.isfinite(value):
        return f"{value:.2g}" if value < 100 else f"{value:.0f}"
    if any(r["error"] for r in runs):
        return "failed"
    return f"> {max(r['limit'] for r in runs if not r['reached']):.0f}"


def lead(runs: list[Run], place: Place) -> tuple[float, bool]:
    """Return how many times longer the best peer without gradients took, and if at least so."""
    ours = middle(at(runs, place, OURS))
    found = [at(runs, place, name) for name in SOLVERS if SOLVERS[name].ranked and name != OURS]
    times = [middle(peer) for peer in found if peer]
    if not times or not math.isfinite(ours):
        return math.nan, False
    if math.isfinite(min(times)):
        return min(times) / ours, False
    return min(r["limit"] for peer in found for r in peer) / ours, True


def table(runs: list[Run]) -> str:
    """Return the table in Markdown: medians in seconds, the lead in the last column."""
    names = [name for name in SOLVERS if any(r["solver"] == name for r in runs)]
    head = ["", *(f"{name}*" if not SOLVERS[name].ranked else name for name in names), "lead"]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    won = counted = 0
    for place in rows(PROBLEMS, DIMENSIONS):
        if not at(runs, place, OURS):
            continue
        ratio, at_least = lead(runs, place)
        counted, won = counted + 1, won + (ratio >= GOAL)
        shown = "–" if math.isnan(ratio) else f"{'> ' if at_least else ''}{ratio:.2g}"
        cells = [cell(at(runs, place, name)) for name in names]
        lines.append([f"{PROBLEMS[place[0]]}, n = {place[1]:,}", *cells, shown])
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    most = max((r["seed"] for r in runs), default=0)
    return (
        f"{text}\n\nMedian seconds of at most {most} run{'s' if most != 1 else ''}; "
        f"lead: the best peer's time divided by ours. It is at least {GOAL:g} "
        f"on {won} of {counted} rows. *With gradients by finite differences, not ranked."
    )


def main() -> None:
    """Make the runs that are missing and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--problem", action="append", choices=list(PROBLEMS))
    parser.add_argument("--dimension", action="append", type=int, choices=DIMENSIONS)
    parser.add_argument("--solver", action="append", choices=list(SOLVERS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--patience",
        type=float,
        default=10.0,
        help=("time limit of other packages, as a multiple of this library's time"),
    )
    parser.add_argument("--again", action="store_true", help="repeat the runs of this library")
    parser.add_argument("--table", action="store_true", help="print only the table")
    given = parser.parse_args()
    places = list(rows(given.problem or PROBLEMS, given.dimension or DIMENSIONS))
    if given.again:
        keep([r for r in stored() if r["solver"] != OURS or (r["problem"], r["n"]) not in places])
    if not given.table:
        make_missing(places, given.solver or list(SOLVERS), given.seeds, given.patience)
    print(table(stored()))


if __name__ == "__main__":
    main()
