"""MMES against itself: rotations, mixing strength, and other laws of the isotropic part."""

from __future__ import annotations

from operator import attrgetter

from mmes.lab.experiments.analysis.charts import Chart, convergence
from mmes.lab.experiments.analysis.tables import compare
from mmes.lab.experiments.plan import Trial
from mmes.lab.experiments.sections.basic import (
    COST,
    comparison,
    costs,
    pairs_of,
)
from mmes.lab.experiments.sections.section import Extent, Findings, Material, Section
from mmes.lab.experiments.sections.setting import (
    MMES,
    PROBLEMS,
    basic_runs,
    full,
    strengths,
    variant,
)

UNROTATED = tuple(label for label in PROBLEMS if not label.startswith("Rot"))

# --- rotational invariance --------------------------------------------------------------------


def plan_invariance(extent: Extent) -> list[Trial]:
    """MMES on each problem and its rotated twin; quick takes 100 variables instead of 1000."""
    if full(extent):
        return basic_runs(pairs_of(PROBLEMS, [MMES]), dimension=1000, count=20, max_evaluations=1e8)
    quick = [label for label in PROBLEMS if not label.endswith(("Rosen", "Elli"))]
    return basic_runs(pairs_of(quick, [MMES]), dimension=100, count=3, max_evaluations=3e6)


def present_invariance(material: Material) -> Findings:
    """Return the evaluations of every pair of twins, and their trajectories."""
    table = compare(
        comparison(material),
        ("invariance", "Rotational invariance of MMES", COST),
        ranked=False,
    )
    charts: list[Chart] = []
    for problem in UNROTATED:
        twins = [*material.of(problem), *material.of(f"Rot{problem}")]
        if any(run.key in material.outcomes for run in twins):
            name = f"invariance-{problem.lower()}"
            title = f"{problem} and rotated {problem}, n = {twins[0].dimension}"
            label = attrgetter("objective.label")
            charts.append(convergence(twins, material.outcomes, name=name, title=title, by=label))
    return Findings((table,), tuple(charts))


INVARIANCE = Section(
    "invariance",
    "Rotational invariance",
    "MMES on each basic problem and on its rotated twin: the trajectories should coincide, "
    "because the strategy is invariant under rotations. Every run draws another rotation.",
    present_invariance,
    plan_invariance,
)

# --- mixing strength --------------------------------------------------------------------------

STRENGTHS = strengths("l = ")
"""Mixing strengths of the paper; l = 4 is the default, and P_a is what the mixture stands for."""


def plan_mixing(extent: Extent) -> list[Trial]:
    """All strengths on the unrotated problems; quick takes 100 variables and fast problems."""
    if full(extent):
        return basic_runs(
            pairs_of(UNROTATED, STRENGTHS), dimension=1000, count=20, max_evaluations=1e8
        )
    quick = ["Cigar", "DiffPow"]
    return basic_runs(pairs_of(quick, STRENGTHS), dimension=100, count=5, max_evaluations=1e6)


def present_mixing(material: Material) -> Findings:
    """Return the evaluations of every strength, tested against the default l = 4."""
    return costs(material, ("mixing", "Mixing strength of MMES", COST), "l = 4")


MIXING = Section(
    "mixing",
    "Mixing strength",
    "The number of directions that one step of MMES mixes: l = 2 to 32, as many as are stored "
    "(l = m), and the Gaussian target P_a itself. The default is l = 4.",
    present_mixing,
    plan_mixing,
)

# --- other isotropic parts --------------------------------------------------------------------

NOISES = (
    MMES,
    variant("MMES-T", isotropic="student"),
    variant("MMES-R", isotropic="rademacher"),
)


def plan_noise(extent: Extent) -> list[Trial]:
    """Three laws of the isotropic part; quick takes the faster problems."""
    if full(extent):
        return basic_runs(
            pairs_of(UNROTATED, NOISES), dimension=1000, count=20, max_evaluations=1e8
        )
    return basic_runs(
        pairs_of(["Cigar", "DiffPow"], NOISES), dimension=1000, count=3, max_evaluations=3e6
    )


def present_noise(material: Material) -> Findings:
    """Return the evaluations with each law, tested against normal deviates."""
    return costs(material, ("noise", "MMES with other isotropic parts", COST))


NOISE = Section(
    "noise",
    "MMES-T and MMES-R",
    "The isotropic part of a step drawn from Student's t with 5 degrees of freedom (MMES-T) or as "
    "Rademacher signs (MMES-R), both of unit variance, instead of normal deviates.",
    present_noise,
    plan_noise,
)
