"""Differential grouping on the CEC 2010 functions: groups found against true groups, and the cost.

    python benchmarks/grouping.py [f1 f4 ...]

A function counts as right when every non-separable group was found as it is, and exactly the
separable variables were found separable. About two minutes for all 20.
"""

from __future__ import annotations

import sys

from mmes import problems
from mmes.competitors import Grouping, differential_grouping
from mmes.problems import Problem

# Evaluations that the article of DECC-DG reports, as far as they are known to us.
HEADER = (
    "function",
    "true groups",
    "true separable",
    "groups found",
    "as they are",
    "separable found",
    "of them truly",
    "evaluations",
    "right",
)


def row(problem: Problem, found: Grouping) -> tuple[object, ...]:
    true = {frozenset(map(int, group)) for group in problem.details["groups"]}
    separable = set(map(int, problem.details["separable"]))
    groups = [frozenset(map(int, group)) for group in found.groups]
    alone = set(map(int, found.separable))
    exact = sum(group in true for group in groups)
    right = set(groups) == true and alone == separable
    return (
        problem.name.removeprefix("lsgo2010/"),
        len(true),
        len(separable),
        len(groups),
        exact,
        len(alone),
        len(alone & separable),
        found.evaluations,
        "yes" if right else "no",
    )


def main(names: list[str]) -> None:
    print("| " + " | ".join(HEADER) + " |")
    print("| " + " | ".join("---" for _ in HEADER) + " |")
    for name in names or [f"f{i}" for i in range(1, 21)]:
        problem = problems.get(f"lsgo2010/{name}")
        found = differential_grouping(problem.batch, problem.bounds, vectorized=True)
        print("| " + " | ".join(map(str, row(problem, found))) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
