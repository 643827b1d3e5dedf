"""bbob-constrained and bbob-mixint of COCO: the share of targets reached, beside pycma's.

    python benchmarks/coco_suites.py bbob-constrained        # makes the missing runs, then a table
    python benchmarks/coco_suites.py bbob-mixint
    python benchmarks/coco_suites.py bbob-mixint --table     # from the runs in benchmarks/data

bbob-constrained, 500 n evaluations: n = 10, all 54 functions; n = 40, 18 of them, each objective
under 9 and under 69 constraints. bbob-mixint, 300 n evaluations: n = 20, all 24 functions; n = 80
and 160, every third one. Instance 1 of each; that takes about half an hour. An evaluation is one
point, of f and of all constraints. Ours runs as in `mmes coco`. pycma has the same start and
sigma0, restarts with twice the population, `fmin_con2` for constraints and `integer_variables` for
integers.

Targets are 41 from f_opt + 1e2 to f_opt + 1e-6, and only points without a violation reach them, as
in COCO. The area is the mean, over the evaluations on a logarithmic scale from n to the budget, of
the share of targets reached. Needs the extra `coco`, and pycma. A run in the file is not repeated.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import math
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bbob import least

import mmes
from mmes.lab.coco import arguments_for

DATA = Path(__file__).parent / "data"
TARGETS = 10.0 ** np.linspace(2, -6, 41)
FIELDS = ("n", "function", "solver", "instance", "reached", "area", "final", "cpu_seconds")


class Part(NamedTuple):
    """What is run of a suite."""

    functions: dict[int, list[int]]
    budget: int


SUITES = {
    "bbob-constrained": Part(
        {10: list(range(1, 55)), 40: [f for f in range(1, 55) if f % 6 in (3, 5)]}, 500
    ),
    "bbob-mixint": Part(
        {20: list(range(1, 25)), 80: list(range(1, 25, 3)), 160: list(range(1, 25, 3))}, 300
    ),
}


class Spent(Exception):
    """The budget is spent, or the last target reached."""


class Traced:
    """A problem that notes when each target was reached, and ends what spends its budget."""

    def __init__(self, problem: Any, optimum: float, budget: int):
        self.problem, self.optimum, self.budget = problem, optimum, budget
        self.calls, self.best = 0, math.inf
        self.hits: list[int] = []
        self._newest: tuple[bytes, float, Any] = b"", math.nan, None

    def measured(self, x: Any) -> tuple[float, Any]:
        """Return f and g of a point; asked for again at once, it is not evaluated again."""
        key = np.asarray(x, dtype=float).tobytes()
        if key != self._newest[0]:
            if self.calls >= self.budget or self.done:
                raise Spent
            self.calls += 1
            value = float(self.problem(x))
            g = self.problem.constraint(x) if self.problem.number_of_constraints else np.empty(0)
            self._newest = key, value, g
            if value < self.best and np.max(g, initial=-math.inf) <= 0.0:
                self.best = value
                while not self.done and value - self.optimum <= TARGETS[len(self.hits)]:
                    self.hits.append(self.calls)
        return self._newest[1:]

    def value(self, x: Any) -> float:
        """Return f."""
        return self.measured(x)[0]

    def constraints(self, x: Any) -> Any:
        """Return g."""
        return self.measured(x)[1]

    @property
    def done(self) -> bool:
        """Whether all targets were reached."""
        return len(self.hits) == len(TARGETS)

    def area(self) -> float:
        """Return the area under the runtime distribution."""
        n = self.problem.dimension
        found = sum(math.log(self.budget / max(hit, n)) for hit in self.hits)
        return found / (math.log(self.budget / n) * len(TARGETS))


def ours(traced: Traced, seed: int) -> None:
    """Run `mmes.minimize` as `mmes coco` does."""
    given = arguments_for(traced.problem)
    if "constraints" in given:
        given["constraints"] = traced.constraints
    # Both count alike: the callback ends it after the generation of the last target.
    with contextlib.suppress(mmes.EvaluationError):
        mmes.minimize(
            traced.value,
            max_evaluations=traced.budget,
            callback=lambda progress: traced.done,
            seed=seed,
            threads=1,
            **given,
        )


def pycma(traced: Traced, seed: int) -> None:
    """Run pycma, with twice the population in each restart, from a random point of the box."""
    import cma

    problem, rng = traced.problem, np.random.default_rng(seed)
    low, high, integers = (
        problem.lower_bounds,
        problem.upper_bounds,
        problem.number_of_integer_variables,
    )
    x0, size = problem.initial_solution_proposal(0), 4 + int(3 * math.log(problem.dimension))
    with contextlib.suppress(Spent), contextlib.redirect_stdout(io.StringIO()):
        for start in range(100):
            options: dict[str, Any] = {"verbose": -9, "seed": seed + 1000 * start, "popsize": size}
            sigma0 = 0.3 * float((high - low).mean())
            if integers:
                options |= {"bounds": [low, high], "integer_variables": list(range(integers))}
                # As ours: 0.3 of the box of each variable.
                options |= {"CMA_stds": 0.3 * (high - low)}
                sigma0 = 1.0
            if problem.number_of_constraints:
                cma.fmin_con2(
                    traced.value, x0, sigma0, constraints=traced.constraints, options=options
                )
            else:
                cma.fmin2(traced.value, x0, sigma0, options)
            x0, size = low + rng.random(problem.dimension) * (high - low), 2 * size


SOLVERS: dict[str, Callable[[Traced, int], None]] = {"mmes": ours, "pycma": pycma}


def one(suite: str, n: int, function: int, solver: str, instance: int) -> dict[str, Any]:
    """Make one run and return its line."""
    import cocoex

    words = f"dimensions: {n} function_indices: {function} instance_indices: {instance}"
    held = cocoex.Suite(suite, "", words)  # it owns the memory of its problems
    twin = held.get_problem(0)
    optimum = least(twin)
    twin.free()
    traced = Traced(held.get_problem(0), optimum, SUITES[suite].budget * n)
    begin = time.process_time()
    SOLVERS[solver](traced, instance)
    return {
        "n": n,
        "function": function,
        "solver": solver,
        "instance": instance,
        "reached": len(traced.hits),
        "area": f"{traced.area():.5f}",
        "final": f"{traced.best - optimum:.4g}",
        "cpu_seconds": f"{time.process_time() - begin:.1f}",
    }


def stored(path: Path) -> list[dict[str, str]]:
    """Return the single runs of a file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table(rows: list[dict[str, str]]) -> str:
    """Return the table in Markdown: over what every solver was run on."""
    cells = {(int(r["n"]), r["function"], r["instance"], r["solver"]): r for r in rows}
    shared = {key[:3] for key in cells if all((*key[:3], s) in cells for s in SOLVERS)}
    lines = ["| n | solver | share of targets | area | ahead on |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for n in sorted({key[0] for key in shared}):
        keys = [key for key in shared if key[0] == n]
        for s in SOLVERS:
            mine = [cells[*key, s] for key in keys]
            share = statistics.mean(int(r["reached"]) / len(TARGETS) for r in mine)
            area = statistics.mean(float(r["area"]) for r in mine)
            ahead = sum(
                all(
                    float(cells[*key, s]["area"]) > float(cells[*key, other]["area"])
                    for other in SOLVERS
                    if other != s
                )
                for key in keys
            )
            lines.append(f"| {n} | {s} | {share:.3f} | {area:.3f} | {ahead} of {len(keys)} |")
    return "\n".join(lines)


def main() -> None:
    """Make the runs that are missing, then print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--instances", type=int, default=1)
    parser.add_argument("--dim", type=int, action="append", help="only this number of variables")
    parser.add_argument("--solver", action="append", choices=SOLVERS)
    parser.add_argument("--functions", type=int, nargs="*", help="only these")
    parser.add_argument("--data", type=Path, help="the file of the single runs")
    parser.add_argument("--table", action="store_true", help="print only the table")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    part, path = SUITES[given.suite], given.data or DATA / f"{given.suite}.csv"
    done = {(r["n"], r["function"], r["solver"], r["instance"]) for r in stored(path)}
    wanted = [] if given.table else range(1, given.instances + 1)
    for instance in wanted:
        for n in given.dim or part.functions:
            for function in given.functions or part.functions[n]:
                for solver in given.solver or SOLVERS:
                    if (str(n), str(function), solver, str(instance)) in done:
                        continue
                    line = one(given.suite, n, function, solver, instance)
                    new = not path.exists()
                    with path.open("a", encoding="utf-8", newline="") as file:
                        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                        if new:
                            writer.writeheader()
                        writer.writerow(line)
    print(table(stored(path)))


if __name__ == "__main__":
    main()
