"""The 20 functions of the CEC 2010 large-scale suite, on the official MATLAB data.

K. Tang, X. Li, P. N. Suganthan, Z. Yang, T. Weise: Benchmark functions for the CEC'2010 special
session and competition on large-scale global optimization. Technical report, NICAL, USTC, 2010.

Dimension 1000, groups of m = 50 permuted variables, one orthogonal matrix shared by the groups of
a function. N.B. The widely used C++ port seeds every function with 0 and so has other shifts,
permutations and matrices than these; its single values differ.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmes.problems.composition import Base, Part
from mmes.problems.problem import Problem
from mmes.problems.suite import make_problem, official_arrays, positions

DIMENSION = 1000
GROUP = 50
ONE_GROUP_WEIGHT = 1e6


class Definition(NamedTuple):
    """What distinguishes one function from the others."""

    base: Base
    groups: int  # 0: one call of the base function on all variables, unpermuted
    text: str


_WORDS = {
    Base.ELLIPTIC: "elliptic",
    Base.RASTRIGIN: "Rastrigin",
    Base.ACKLEY: "Ackley",
    Base.SCHWEFEL: "Schwefel 1.2",
    Base.ROSENBROCK: "Rosenbrock",
}
_ROTATED = (Base.ELLIPTIC, Base.RASTRIGIN, Base.ACKLEY)
_GROUPED = (*_ROTATED, Base.SCHWEFEL, Base.ROSENBROCK)
_BOUNDS = {Base.RASTRIGIN: 5.0, Base.ACKLEY: 32.0}


def _definitions() -> dict[int, Definition]:
    listed = [Definition(base, 0, f"Shifted {_WORDS[base]}, separable.") for base in _ROTATED]
    for groups in (1, 10, 20):
        for base in _GROUPED:
            rotated = "rotated " if base in _ROTATED else ""
            count = "one group" if groups == 1 else f"{groups} groups"
            rest = "" if groups == 20 else ", the rest separable"
            text = f"Shifted {rotated}{_WORDS[base]} in {count} of {GROUP} variables{rest}."
            listed.append(Definition(base, groups, text))
    listed += [
        Definition(base, 0, f"Shifted {_WORDS[base]} of all variables, non-separable.")
        for base in (Base.SCHWEFEL, Base.ROSENBROCK)
    ]
    return dict(enumerate(listed, start=1))


DEFINITIONS = _definitions()
DESCRIPTIONS = {f"lsgo2010/f{i}": each.text for i, each in DEFINITIONS.items()}


def make(name: str, *, strict: bool = False) -> Problem:
    """Return one function of the suite, ``"lsgo2010/f1"`` to ``"lsgo2010/f20"``.

    If `strict`, a point outside the box has the value NaN. The official code evaluates it.
    """
    number = int(name.removeprefix("lsgo2010/f"))
    base, groups, text = DEFINITIONS[number]
    arrays = official_arrays("lsgo2010", number)
    shift = arrays["o"]
    order = positions(arrays["p"] if groups else np.arange(DIMENSION))
    matrix = arrays.get("M")

    grouped = groups * GROUP
    weight = ONE_GROUP_WEIGHT if groups == 1 else 1.0
    parts = [
        Part(base, index, shift[index], matrix, weight)
        for index in order[:grouped].reshape(groups, GROUP)
    ]
    if grouped < DIMENSION:
        rest = order[grouped:]
        rest_base = base if groups == 0 or base in _ROTATED else Base.SPHERE
        parts.append(Part(rest_base, rest, shift[rest]))

    minimizer = shift.copy()
    if base is Base.ROSENBROCK:
        minimizer[order[:grouped] if groups else order] += 1.0
    return make_problem(
        name,
        text,
        parts,
        dimension=DIMENSION,
        bound=_BOUNDS.get(base, 100.0),
        minimizer=minimizer,
        strict=strict,
    )
