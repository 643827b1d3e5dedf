"""sep-CMA-ES (Ros and Hansen 2008): CMA-ES with a diagonal covariance matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mmes.base.arrays import Indices
from mmes.kernels import Handle, RecombineCall, StepLaw
from mmes.strategies.parts.cma_rates import Rates
from mmes.strategies.parts.population import (
    POPULATION_SIZE,
    damping_option,
    mirrored_option,
    reducing,
)
from mmes.strategies.parts.search_base import SearchBase
from mmes.strategies.parts.step_size import Evidence, StepState, adapt_sigma
from mmes.strategies.shell.ask_tell import AskTell
from mmes.strategies.shell.protocol import Setup, Vector

_OPTIONS = (
    POPULATION_SIZE,
    mirrored_option(False),
    damping_option("Factor of the damping d_sigma of the cumulative rule"),
)


@dataclass
class State:
    """What the strategy carries from one generation to the next, with the symbols of the paper."""

    mean: Handle  # m: centre of the search
    sigma: float  # mutation strength
    path: Handle  # p_c: evolution path
    deviations: Handle  # d: square roots of the diagonal c of the covariance
    step: StepState  # p_s: state of the cumulative step-size rule
    updates: int = 0  # g: generations processed


class SepCMASearch(SearchBase[State]):
    """sep-CMA-ES: x ~ m + sigma N(0, diag(c))."""

    label: ClassVar = "SepCMA"
    options: ClassVar = _OPTIONS

    def __init__(self, setup: Setup, options: dict[str, Any]):
        n, kernel = setup.n, setup.kernel
        super().__init__(setup, options)
        p = self.population
        self.rates = Rates.separable(n, p.mu_eff, options["damping"])
        self.rule = self.rates.rule()
        self._kernel = reducing(kernel)
        self._step = kernel.vector(n)  # <y>_w
        self.state = State(
            setup.mean,
            setup.sigma,
            path=kernel.vector(n),
            deviations=kernel.from_host(np.ones(n))
            if setup.scale is None
            else kernel.copy(setup.scale),
            step=StepState(path=kernel.vector(n)),
        )

    @classmethod
    def vectors(cls, n: int, options: dict[str, Any]) -> tuple[int, int]:
        return 8, 0

    def spread(self) -> float:
        return self._kernel.largest(self.state.deviations)

    def law(self, generation: int) -> StepLaw:
        """Return the law of d .* z, z ~ N(0, I)."""
        return StepLaw(scale=self.state.deviations)

    def update(self, population: Handle, ranking: Indices, values: Vector, generation: int) -> None:
        """Update the state with an evaluated generation."""
        state, p, rates, kernel = self.state, self.population, self.rates, self._kernel
        # <y^2>_w and <y>_w of y_k = (x_k - m) / sigma = d .* z_k;
        # m <- m + sigma <y>_w.
        # N.B. of the candidates as they were evaluated, so that clipping at a wall does not make
        # sigma diverge.
        y = self._step
        parents = RecombineCall(
            population, ranking[: p.mu], p.weights, state.mean, y, 0.0, 1 / state.sigma
        )
        y_squared = kernel.step_squares(parents)
        kernel.recombine(parents)
        # p_s <- (1 - c_s) p_s + sqrt(c_s (2 - c_s) mu_eff) <z>_w;
        # sigma <- sigma exp((c_s/d_s) (|p_s|/chi_n - 1)).
        z = kernel.copy(y)
        kernel.divide(z, state.deviations)
        evidence = Evidence(values[ranking], lambda: z, kernel)
        adapt_sigma(state, self.rule, evidence)
        state.updates += 1
        # h = 0 stalls p_c while p_s is long.
        moves = rates.path_moves(kernel.dot(state.step.path, state.step.path), state.updates)
        # p_c <- (1 - c_c) p_c + h sqrt(c_c (2 - c_c) mu_eff) <y>_w.
        kernel.blend(state.path, 1 - rates.c_c, rates.path_gain(moves), y)
        # c <- (1 - c_1 - c_mu + (1 - h) c_1 c_c (2 - c_c)) c + c_1 p_c^2 + c_mu <y^2>_w;
        # d = sqrt(c).
        shares = rates.covariance_decay(moves), rates.c_1, rates.c_mu
        kernel.adapt_deviations(state.deviations, shares, state.path, y_squared)


class SepCMA(AskTell):
    """sep-CMA-ES, CMA-ES with a diagonal covariance matrix (Ros and Hansen 2008).

    Parameters are those of `AskTell`; `SepCMA.option_table()` lists the options.
    """

    name = "sep-cma"
    search_type = SepCMASearch
