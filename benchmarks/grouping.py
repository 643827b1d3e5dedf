"""Differential grouping on the CEC 2010 functions: groups found against true groups, and the cost.

    python benchmarks/grouping.py [f1 f4 ...] [--epsilon 1e-4 --rounding 1e-14]

The default is the published threshold.

A function counts as right if all non-separable groups were found exactly, and exactly the separable
variables were classified as separable. About two minutes for all 20.
"""

from __future__ import annotations

import argparse

from mmes import problems
from mmes.lab.competitors import Grouping, differential_grouping
from mmes.problems import Problem

HEADER = (
    "function",
    "true groups",
    "true separable",
    "groups found",
    "exact",
    "separable found",
    "correct",
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[f"f{i}" for i in range(1, 21)])
    parser.add_argument("--epsilon", type=float, default=1e-3)
    parser.add_argument("--rounding", type=float, default=0.0)
    given = parser.parse_args()
    print("| " + " | ".join(HEADER) + " |")
    print("| " + " | ".join("---" for _ in HEADER) + " |")
    for name in given.names:
        problem = problems.get(f"lsgo2010/{name}")
        found = differential_grouping(
            problem.batch,
            problem.bounds,
            epsilon=given.epsilon,
            rounding=given.rounding,
            vectorized=True,
        )
        print("| " + " | ".join(map(str, row(problem, found))) + " |", flush=True)


if __name__ == "__main__":
    main()
