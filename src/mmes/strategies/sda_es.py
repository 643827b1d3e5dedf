"""SDA-ES (He, Zhou, Chen, Zhang, Chen 2020): search directions that deflate one another."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mmes.base.arrays import Indices
from mmes.base.options import Option
from mmes.base.randomness import Stream
from mmes.kernels import Handle, StepLaw
from mmes.strategies.parts.population import (
    POPULATION_SIZE,
    damping_option,
    directed_law,
    mirrored_option,
    rate_option,
    reducing,
    value_or,
)
from mmes.strategies.parts.search_base import SearchBase, SearchState
from mmes.strategies.parts.step_size import GSR, Evidence, StepState, adapt_sigma
from mmes.strategies.shell.ask_tell import AskTell
from mmes.strategies.shell.protocol import Setup, Vector

# Standard deviation of the directions' first entries; not zero, because the deflation divides by
# their length.
_FIRST_SIZE = 1e-6

_OPTIONS = (
    POPULATION_SIZE,
    Option("directions", int, "Search directions.", default=10, symbol="m", low=1),
    rate_option(
        "c_cov", "Weight of every direction in the covariance.", "0.4 / sqrt n", below_one=True
    ),
    rate_option("c_c", "Learning rate of the directions.", "0.25 / sqrt n"),
    mirrored_option(True),
    damping_option(),
)


@dataclass
class State(SearchState):
    """What the strategy carries from one generation to the next, with the symbols of the paper.

    Directions are in the coordinates of the noise, so that their scalar products do not depend on
    the units of the variables; the scale is applied last: x = m + sigma scale .* y.
    """

    directions: Handle  # q_1..q_m: search directions, (m, n) float32
    # s, F: state of the generalised one-fifth success rule
    step: StepState = field(default_factory=StepState)


class SDASearch(SearchBase[State]):
    """SDA-ES: y ~ N(0, (1-c) I + c sum_i q_i q_i')."""

    label: ClassVar = "SDA-ES"
    options: ClassVar = _OPTIONS
    needs_start_value: ClassVar = True

    def __init__(self, setup: Setup, options: dict[str, Any]):
        n, m = setup.n, options["directions"]
        super().__init__(setup, options)
        self.c_cov = value_or(options["c_cov"], 0.4 / math.sqrt(n))
        self.c_c = value_or(options["c_c"], 0.25 / math.sqrt(n))
        self.rule = GSR(options["damping"])  # c = 0.3, alpha = 0.05
        self._kernel = kernel = reducing(setup.kernel)
        first = kernel.directions(m, n)
        kernel.fill_normals(first, _FIRST_SIZE, setup.seed, Stream.INITIAL_DIRECTIONS)
        self.state = State(
            setup.mean,
            setup.sigma,
            directions=first,
            scale=setup.scale,
        )

    @classmethod
    def vectors(cls, n: int, options: dict[str, Any]) -> tuple[int, int]:
        return 3, 2 * options["directions"]

    def law(self, generation: int) -> StepLaw:
        """Return the law of y = sqrt(1-c) z_0 + sqrt(c) sum_i r_i q_i."""
        state, p = self.state, self.population
        m = state.directions.shape[0]
        normals = self._kernel.normals(p.draws * m, self._seed, Stream.MIXTURE_FACTOR, generation)
        return directed_law(
            normals.reshape(p.draws, m),
            np.arange(m),
            np.full(m, self.c_cov),
            1 - self.c_cov,
            state.scale,
            scale_rows=True,
        )

    def directions(self) -> Handle:
        return self.state.directions

    def update(self, population: Handle, ranking: Indices, values: Vector, generation: int) -> None:
        """Update the state with an evaluated generation."""
        state, p = self.state, self.population
        # m <- sum_k w_k x_(k);
        # u = sqrt(mu_eff) (m - m_old) / sigma.
        gain = math.sqrt(p.mu_eff) / state.sigma
        u = self.recombine(population, ranking[: p.mu], p.weights, gain)
        if state.scale is not None:
            self._kernel.divide(u, state.scale)
        # For i = 1..m: q_i <- (1 - c_c) q_i + sqrt(c_c (2 - c_c)) u;
        #               t = u.q_i / q_i.q_i;
        #               u <- (u - t q_i) / sqrt(1 + t^2).
        self._kernel.deflate(
            state.directions, 1 - self.c_c, math.sqrt(self.c_c * (2 - self.c_c)), u
        )
        # sigma <- sigma exp((Phi(s) / (1 - alpha) - 1) / d), by the generalised one-fifth success
        # rule.
        adapt_sigma(state, self.rule, Evidence(values[ranking]))


class SDAES(AskTell):
    """SDA-ES, search direction adaptation (He, Zhou, Chen, Zhang, Chen 2020).

    Parameters are those of `AskTell`; `SDAES.option_table()` lists the options.
    """

    name = "sda-es"
    search_type = SDASearch
