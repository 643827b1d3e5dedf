"""sep-CMA-ES (Ros and Hansen 2008): CMA-ES with a diagonal covariance matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmes.kernels import StepLaw
from mmes.strategies.ask_tell import AskTell
from mmes.strategies.cma_rates import Rates
from mmes.strategies.common import (
    POPULATION_SIZE,
    Population,
    damping_option,
    mirrored_option,
    planned_vectors,
    reducing,
    squared_length,
)
from mmes.strategies.protocol import Setup, Vector
from mmes.strategies.recombination import bounded_sigma
from mmes.strategies.record import Recorded
from mmes.strategies.step_size import Evidence, StepState

_OPTIONS = (
    POPULATION_SIZE,
    mirrored_option(False),
    damping_option("Factor of the damping d_sigma of the cumulative rule"),
)


@dataclass
class State:
    """What the strategy carries from one generation to the next.

    ============  ==========  ============================================================
    field         paper       meaning
    ============  ==========  ============================================================
    mean          m           centre of the search
    sigma         sigma       mutation strength
    path          p_c         evolution path
    deviations    d           square roots of the diagonal c of the covariance
    step          p_s         state of the cumulative step-size rule
    updates       g           generations taken in
    ============  ==========  ============================================================
    """

    mean: Vector
    sigma: float
    path: Vector
    deviations: Vector
    step: StepState = field(default_factory=StepState)
    updates: int = 0


class SepCMASearch(Recorded[State]):
    """sep-CMA-ES: x ~ m + sigma N(0, diag(c))."""

    options: ClassVar = _OPTIONS
    needs_start_value: ClassVar = False

    def __init__(self, setup: Setup, options: dict[str, Any]):
        n = setup.mean.size
        self.population = p = Population.from_options(n, options)
        self.population_size = p.size
        self.rates = Rates.separable(n, p.mu_eff, options["damping"])
        self.rule = self.rates.rule()
        self._kernel = reducing(setup.kernel)
        self._box, self._seed = setup.box, setup.seed
        self._step = np.zeros(n)
        self.state = State(
            setup.mean,
            setup.sigma,
            path=np.zeros(n),
            deviations=np.ones(n) if setup.scale is None else setup.scale.copy(),
        )

    @classmethod
    def planned(cls, n: int, options: dict[str, Any], available: int) -> tuple[dict[str, Any], int]:
        """See `Search.planned`."""
        return planned_vectors("SepCMA", n, options, available, doubles=8, singles=0)

    def start(self, value: float) -> None:
        """Nothing: f(m_0) is not needed."""

    def sample(self, population: Vector, generation: int) -> None:
        """x_k = m + sigma d .* z_k, z_k ~ N(0, I)."""
        state, draws = self.state, self.population.draws
        law = StepLaw.without_rows(draws, scale=state.deviations)
        self._kernel.sample(
            population, draws, state.mean, state.sigma, None, law, self._box, self._seed, generation
        )

    def update(
        self, population: Vector, ranking: NDArray[np.int64], values: Vector, generation: int
    ) -> None:
        """Take in an evaluated generation."""
        state, p, rates = self.state, self.population, self.rates
        parents = ranking[: p.mu]
        # <y^2>_w and <y>_w of y_k = (x_k - m) / sigma = d .* z_k;
        # m <- m + sigma <y>_w.
        # N.B. of the candidates as they were evaluated, so that clipping at a wall does not make
        # sigma diverge.
        y_squared = self._kernel.step_squares(
            population, parents, p.weights, state.mean, state.sigma
        )
        y = self._step
        self._kernel.recombine(
            population, parents, p.weights, state.mean, y, 0.0, 1 / state.sigma, None
        )
        # p_s <- (1 - c_s) p_s + sqrt(c_s (2 - c_s) mu_eff) <z>_w;
        # sigma <- sigma exp((c_s/d_s) (|p_s|/chi_n - 1)).
        z = y / state.deviations
        state.sigma = bounded_sigma(
            state.sigma * self.rule.growth(state.step, Evidence(values[ranking], lambda: z))
        )
        state.updates += 1
        # h = 0 stalls p_c while p_s is long.
        moves = rates.path_moves(squared_length(state.step.path), state.updates)
        # p_c <- (1 - c_c) p_c + h sqrt(c_c (2 - c_c) mu_eff) <y>_w.
        state.path *= 1 - rates.c_c
        state.path += rates.path_gain(moves) * y
        # c <- (1 - c_1 - c_mu + (1 - h) c_1 c_c (2 - c_c)) c + c_1 p_c^2 + c_mu <y^2>_w;
        # d = sqrt(c).
        variances = np.square(state.deviations, out=state.deviations)
        variances *= rates.covariance_decay(moves)
        variances += rates.c_1 * np.square(state.path)
        y_squared *= rates.c_mu
        variances += y_squared
        np.sqrt(variances, out=state.deviations)


class SepCMA(AskTell):
    """sep-CMA-ES, CMA-ES with a diagonal covariance matrix (Ros and Hansen 2008).

    Parameters and methods are those of `AskTell`; the algorithm's own options are listed in
    `SepCMA.option_table()`.
    """

    name = "sep-cma"
    search_type = SepCMASearch
