"""The 15 functions of the CEC 2013 large-scale suite, on the official MATLAB data (version 1.1).

X. Li, K. Tang, M. N. Omidvar, Z. Yang, K. Qin: Benchmark functions for the CEC'2013 special session
and competition on large-scale global optimization. Technical report, RMIT University, 2013.

Groups of 25, 50 and 100 variables, each rotated and weighted; base functions after irregular and
asymmetric transformations. f13 and f14 have 905 variables because their groups overlap.

N.B. Ackley's function (f3, f6, f10) exists in two official versions: with the transformations (C++,
and MATLAB from version 1.1 on; the names ``f3``, ``f6``, ``f10`` here) and without them (earlier
MATLAB; ``f3-plain``, ``f6-plain``, ``f10-plain``). The MMES paper's values need the plain one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmes.problems.composition import Base, Part, Transform
from mmes.problems.problem import Problem
from mmes.problems.suite import Arrays, make_problem, official_arrays, positions

PLAIN = "-plain"


class Definition(NamedTuple):
    """What distinguishes one function from the others."""

    base: Base
    structure: str  # "whole", "partial", "groups", "conforming" or "conflicting"
    text: str


DEFINITIONS = {
    1: Definition(Base.ELLIPTIC, "whole", "Shifted elliptic, separable."),
    2: Definition(Base.RASTRIGIN, "whole", "Shifted Rastrigin, separable."),
    3: Definition(Base.ACKLEY, "whole", "Shifted Ackley, separable."),
    4: Definition(Base.ELLIPTIC, "partial", "Elliptic in 7 rotated groups and 700 separable."),
    5: Definition(Base.RASTRIGIN, "partial", "Rastrigin in 7 rotated groups and 700 separable."),
    6: Definition(Base.ACKLEY, "partial", "Ackley in 7 rotated groups and 700 separable."),
    7: Definition(Base.SCHWEFEL, "partial", "Schwefel 1.2 in 7 rotated groups, sphere of 700."),
    8: Definition(Base.ELLIPTIC, "groups", "Elliptic in 20 rotated groups."),
    9: Definition(Base.RASTRIGIN, "groups", "Rastrigin in 20 rotated groups."),
    10: Definition(Base.ACKLEY, "groups", "Ackley in 20 rotated groups."),
    11: Definition(Base.SCHWEFEL, "groups", "Schwefel 1.2 in 20 rotated groups."),
    12: Definition(Base.ROSENBROCK, "whole", "Shifted Rosenbrock of all variables."),
    13: Definition(Base.SCHWEFEL, "conforming", "Schwefel 1.2, 20 overlapping groups that agree."),
    14: Definition(
        Base.SCHWEFEL, "conflicting", "Schwefel 1.2, 20 overlapping groups in conflict."
    ),
    15: Definition(Base.SCHWEFEL, "whole", "Shifted Schwefel 1.2 of all variables."),
}

_TRANSFORMS = {
    Base.ELLIPTIC: Transform.OSCILLATE,
    Base.RASTRIGIN: Transform.OSCILLATE | Transform.ASYMMETRIC | Transform.SCALE,
    Base.ACKLEY: Transform.OSCILLATE | Transform.ASYMMETRIC | Transform.SCALE,
    Base.SCHWEFEL: Transform.OSCILLATE | Transform.ASYMMETRIC,
}
_BOUNDS = {Base.RASTRIGIN: 5.0, Base.ACKLEY: 32.0}


def _descriptions() -> dict[str, str]:
    listed = {f"lsgo2013/f{i}": each.text for i, each in DEFINITIONS.items()}
    for i, each in DEFINITIONS.items():
        if each.base is Base.ACKLEY:
            text = each.text.removesuffix(".") + ", without the transformations."
            listed[f"lsgo2013/f{i}{PLAIN}"] = text
    return listed


DESCRIPTIONS = _descriptions()


def dimension(name: str) -> int:
    """Return the number of variables of a function: 905 with overlap, otherwise 1000."""
    return 905 if name in ("lsgo2013/f13", "lsgo2013/f14") else 1000


def make(name: str, *, strict: bool = False) -> Problem:
    """Return one function of the suite, ``"lsgo2013/f1"`` to ``"lsgo2013/f15"``.

    ``"lsgo2013/f3-plain"``, ``f6-plain`` and ``f10-plain`` are Ackley's function without the
    transformations. If `strict`, a point outside the box has the value NaN, as in the official
    MATLAB code; the official C++ code evaluates it.
    """
    number = int(name.removeprefix("lsgo2013/f").removesuffix(PLAIN))
    base, structure, _ = DEFINITIONS[number]
    transform = _TRANSFORMS.get(base, Transform.NONE)
    if name.endswith(PLAIN):
        transform = Transform.NONE
    arrays = official_arrays("lsgo2013", number)
    shift = arrays["xopt"]
    if structure == "whole":
        parts = [Part(base, positions(np.arange(1000)), shift, transform=transform)]
    else:
        parts = _groups(base, transform, arrays, conflicting=structure == "conflicting")
    if structure == "partial":
        rest = positions(arrays["p"])[sum(len(part.index) for part in parts) :]
        if base is Base.SCHWEFEL:  # N.B. the rest of f7 is a plain sphere
            parts.append(Part(Base.SPHERE, rest, shift[rest]))
        else:
            parts.append(Part(base, rest, shift[rest], transform=transform))

    minimizer = None if structure == "conflicting" else shift + (base is Base.ROSENBROCK)
    return make_problem(
        name,
        DESCRIPTIONS[name],
        parts,
        dimension=dimension(name),
        bound=_BOUNDS.get(base, 100.0),
        minimizer=minimizer,
        strict=strict,
    )


def _groups(base: Base, transform: Transform, arrays: Arrays, *, conflicting: bool) -> list[Part]:
    """Return the rotated groups; consecutive ones share m variables where the data give an m.

    In the conflicting function a shared variable has a target in each of its two groups: the
    shift vector follows the groups end to end and is not permuted.
    """
    order = positions(arrays["p"])
    shift = arrays["xopt"]
    overlap = int(arrays["m"][0]) if "m" in arrays else 0
    # The data's matrices act on column vectors from the left, a part's on rows from the right.
    matrices = {size: np.ascontiguousarray(arrays[f"R{size}"].T) for size in (25, 50, 100)}
    sizes, weights = arrays["s"].tolist(), arrays["w"].tolist()
    parts = []
    end = 0
    for i, (size, weight) in enumerate(zip(sizes, weights, strict=True)):
        start, end = end, end + size
        index = order[start - overlap * i :][:size]
        target = shift[start:end] if conflicting else shift[index]
        parts.append(Part(base, index, target, matrices[size], weight, transform))
    return parts
