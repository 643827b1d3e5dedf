"""Section IV-B: the five step-size rules on a plain isotropic evolution strategy."""

from __future__ import annotations

from mmes.lab.experiments.plan import Objective, Strategy, Trial
from mmes.lab.experiments.sections.basic import COST, costs
from mmes.lab.experiments.sections.section import Extent, Findings, Material, Section
from mmes.lab.experiments.sections.setting import basic_runs, full, with_alpha

RULES = tuple(
    Strategy("isotropic-es", rule.upper(), (("rule", rule),))
    for rule in ("csa", "psr", "rsr", "gsr", "pta")
)


def plan(extent: Extent) -> list[Trial]:
    """Five rules on the sphere and three ellipsoids; quick leaves out the worst conditioned."""
    problems = [Objective("sphere", "Sphere"), with_alpha(1), with_alpha(2)]
    if full(extent):
        problems.append(with_alpha(3))
    pairs = [(problem, rule) for problem in problems for rule in RULES]
    count = 20 if full(extent) else 3
    return basic_runs(pairs, dimension=1000, count=count, max_evaluations=1e7)


def present(material: Material) -> Findings:
    """Return the evaluations of every rule, tested against PTA."""
    heading = ("steps", "Step-size rules on a plain evolution strategy, n = 1000", COST)
    note = (
        "The paper gives only curves and says that GSR is the slowest rule on the ellipsoids; "
        "this order is not reproduced, see the page on reproduction."
    )
    return costs(material, heading, "PTA", (note,))


STEPS = Section(
    "steps",
    "Step-size rules (IV-B)",
    "Cumulative step-size adaptation (CSA), the population, rank-based and generalised success "
    "rules (PSR, RSR, GSR) and paired test adaptation (PTA) on the same plain isotropic strategy.",
    present,
    plan,
)
