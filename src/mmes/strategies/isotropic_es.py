"""The plain (mu/mu_w, lambda)-ES with isotropic mutations, used to compare step-size rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mmes.base.arrays import Indices
from mmes.base.options import Option
from mmes.kernels import Handle
from mmes.strategies.parts.population import (
    POPULATION_SIZE,
    Population,
    damping_option,
    mirrored_option,
)
from mmes.strategies.parts.search_base import SearchBase, SearchState
from mmes.strategies.parts.step_size import (
    CSA,
    GSR,
    PSR,
    PTA,
    RSR,
    Evidence,
    StepSizeRule,
    StepState,
    adapt_sigma,
)
from mmes.strategies.shell.ask_tell import AskTell
from mmes.strategies.shell.protocol import Setup, Vector

RULES = ("csa", "psr", "rsr", "gsr", "pta")

OPTIONS = (
    POPULATION_SIZE,
    Option(
        "rule",
        str,
        "The step-size rule: cumulative (csa), population success (psr), rank-based success (rsr), "
        "generalised one-fifth success (gsr) or paired test (pta).",
        default="csa",
        choices=RULES,
    ),
    mirrored_option(False),
    damping_option("Factor of the rule's own damping"),
)


@dataclass
class State(SearchState):
    """What the strategy carries from one generation to the next, with its symbols."""

    step: StepState  # s, F: state of the step-size rule


def make_rule(name: str, n: int, population: Population, damping: float) -> StepSizeRule:
    """Return the rule of that name with its published constants and `damping` times its damping."""
    match name:
        case "csa":
            # As in the article on LM-MA-ES: c_s = 2 lambda / n, d = 2.
            return CSA(population.mu_eff, min(1.0, 2 * population.size / n), 2.0 * damping)
        case "psr":
            return PSR(damping, target=0.3)
        case "rsr":
            return RSR(population.weights, damping)
        case "gsr":
            return GSR(damping)
        case "pta":
            return PTA(population.weights, population.mu_eff, damping)
    raise ValueError(f"rule must be one of {', '.join(RULES)}, not {name!r}")


class IsotropicSearch(SearchBase[State]):
    """The plain ES: isotropic steps, weighted recombination, a step-size rule."""

    label: ClassVar = "IsotropicES"
    options: ClassVar = OPTIONS
    # For the rules that compare generations; the others are given it too, so that all count alike.
    needs_start_value: ClassVar = True

    def __init__(self, setup: Setup, options: dict[str, Any]):
        super().__init__(setup, options)
        n = setup.n
        self.rule = make_rule(options["rule"], n, self.population, options["damping"])
        path = setup.kernel.vector(n) if options["rule"] == "csa" else None
        self.state = State(setup.mean, setup.sigma, StepState(path=path), scale=setup.scale)

    @classmethod
    def vectors(cls, n: int, options: dict[str, Any]) -> tuple[int, int]:
        return 4, 0

    def update(self, population: Handle, ranking: Indices, values: Vector, generation: int) -> None:
        """Move m to sum_k w_k x_(k), and sigma by the rule."""
        state, p, kernel = self.state, self.population, self._kernel
        step = self.recombine(population, ranking[: p.mu], p.weights, 1 / state.sigma)
        # <z>_w = (m - m_old) / (sigma d): the noise that would have made the candidates as they
        # were evaluated.
        # N.B. with the noise as it was drawn, candidates clipped at a wall would make the
        # cumulative rule diverge.
        if state.scale is not None:
            kernel.divide(step, state.scale)
        evidence = Evidence(values[ranking], lambda: step, kernel)
        adapt_sigma(state, self.rule, evidence)


class IsotropicES(AskTell):
    """The plain evolution strategy without covariance, with a choice of step-size rules.

    Parameters are those of `AskTell`; `IsotropicES.option_table()` lists the options.
    """

    name = "isotropic-es"
    search_type = IsotropicSearch
