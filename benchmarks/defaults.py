"""Is a call without options good enough? Typical problems, each with a goal, and rivals.

    python benchmarks/defaults.py                     # all, medians of 5 seeds: about half an hour
    python benchmarks/defaults.py --quick             # 2 seeds, up to 200 variables: minutes
    python benchmarks/defaults.py --only walls --seeds 3 --no-rivals

A cell is the median of the evaluations to the target (if it was missed, the distance to it), or the
median true value at the end. Rivals get the same budget: pycma's `fmin2` (up to 200 variables and a
minute per run), SciPy's `differential_evolution` (in x0 +- 5 sigma0 where there is no box) and
L-BFGS-B with finite differences; three seeds, from 200 variables on one. bbob-largescale is a
separate program, `benchmarks/bbob.py`, and so is the table of 1000 variables, `thousand.py`.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from default_cases import CASES, Case
from default_laws import LAWS
from solvers import RIVALS, Outcome, Task, by_mmes

COLUMNS = ("case", "goal", "ours", *RIVALS, "verdict")
MANY = 200


def cell(outcomes: Sequence[Outcome], by: str, target: float) -> str:
    """Return the median as the table shows it."""
    value = float(np.median([o.value for o in outcomes]))
    if math.isnan(value):
        return "not run"
    spent = float(np.median([o.evaluations for o in outcomes]))
    if by == "evaluations" and math.isfinite(spent):
        return f"{spent:.2g}".replace("e+0", "e")
    return f"gap {value - target:.1g}" if by == "evaluations" else f"{value:.2g}"


def judged(case: Case, outcomes: Sequence[Outcome], limit: float) -> bool:
    """Return whether the goal is met: by the median, or by every seed."""
    found = [getattr(o, case.by) for o in outcomes]
    return bool((max(found) if case.every else np.median(found)) <= limit)


def outcomes_of(solve: Callable[[Task, int], Outcome], case: Case, seeds: int) -> list[Outcome]:
    """Return the outcomes of a solver, one per seed."""
    return [solve(case.make(seed), seed) for seed in range(1, seeds + 1)]


def row(case: Case, seeds: int, rivals: bool) -> list[str]:
    """Run a case and return its row."""
    seeds = case.few if case.every and seeds >= 5 else min(seeds, case.few)
    try:
        task = case.make(1)
    except ImportError as error:
        return [case.name, "", f"skipped: {error.name} is not installed", "", "", "", "skipped"]
    found = outcomes_of(lambda task, seed: by_mmes(task, seed, **case.options), case, seeds)
    limit, cells = case.limit, [cell(found, case.by, task.target)]
    if case.rival is not None:
        limit = float(np.median([o.value for o in outcomes_of(case.rival, case, seeds)]))
    for solve in RIVALS.values():
        few = 1 if task.n >= MANY else min(seeds, 3)
        try:
            theirs = outcomes_of(solve, case, few) if rivals else []
            cells.append(cell(theirs, case.by, task.target) if rivals else "")
        except ImportError:
            cells.append("not installed")
    verdict = "met" if judged(case, found, limit) else "missed"
    return [case.name, f"<= {limit:.2g}".replace("e+0", "e"), *cells, verdict]


def main() -> int:
    """Run the cases and print the table; return how many goals were missed."""
    groups = [*(make.__name__ for make in CASES), *(law.group for law in LAWS)]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", choices=groups)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-rivals", action="store_true")
    arguments = parser.parse_args()
    wanted, quick = arguments.only or groups, arguments.quick
    seeds = arguments.seeds or (2 if quick else 5)
    missed = 0
    warnings.simplefilter("ignore")
    print("| " + " | ".join(COLUMNS) + " |\n" + "| --- " * len(COLUMNS) + "|", flush=True)
    for law in (law for law in LAWS if law.group in wanted):
        words, met = law.measure(seeds, quick)
        missed += not met
        line = [law.name, law.goal, words, "", "", "", "met" if met else "missed"]
        print("| " + " | ".join(line) + " |", flush=True)
    for case in (case for make in CASES if make.__name__ in wanted for case in make()):
        if quick and case.make(1).n > MANY:
            continue
        line = row(case, seeds, not arguments.no_rivals)
        missed += line[-1] == "missed"
        print("| " + " | ".join(line) + " |", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(min(main(), 99))
