"""Fast-CMA-ES (Li, Zhang, Lin, Zhen 2020): a step uses the evolution path and a stored one.

N.B. the program of the paper was not available. How many paths are stored, which of them a
candidate uses and the isotropic start follow an independent implementation; no published figure
confirms them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mmes.base.arrays import Arrays, Indices
from mmes.base.options import Option
from mmes.base.randomness import Stream
from mmes.kernels import Handle, StepLaw
from mmes.strategies.parts.population import (
    POPULATION_SIZE,
    damping_option,
    default_population_size,
    mirrored_option,
    rate_option,
    value_or,
)
from mmes.strategies.parts.search_base import SearchBase, SearchState
from mmes.strategies.parts.step_size import RSR, Evidence, StepState, adapt_sigma
from mmes.strategies.shell.ask_tell import AskTell
from mmes.strategies.shell.protocol import Setup, Vector

_OPTIONS = (
    POPULATION_SIZE,
    Option("archive_size", int, "Stored paths.", symbol="m", default_text="lambda", low=1),
    rate_option("c_1", "Weight of the evolution path.", "1 / (3 sqrt n + 5)", below_one=True),
    rate_option("c_c", "Learning rate of the evolution path.", "2 / (n + 5)", symbol="c"),
    Option(
        "spacing",
        int,
        "Generations between stored paths.",
        symbol="T",
        default_text="n",
        low=1,
    ),
    mirrored_option(False),
    damping_option(),
)


@dataclass
class State(SearchState):
    """What the strategy carries from one generation to the next, with the symbols of the paper."""

    path: Handle  # p: evolution path
    paths: Handle  # P, p: (m + 1, n) float32: the stored paths, and last the current one
    oldest: int = 0  # the row of P_1, the next to be replaced; P_2 .. P_m follow in a ring
    updates: int = 0  # g: generations processed
    step: StepState = field(default_factory=StepState)  # s, F: state of the rank-based success rule


class FastCMASearch(SearchBase[State]):
    """Fast-CMA-ES."""

    label: ClassVar = "Fast-CMA-ES"
    options: ClassVar = _OPTIONS

    def __init__(self, setup: Setup, options: dict[str, Any]):
        n, kernel = setup.n, setup.kernel
        super().__init__(setup, options)
        p = self.population
        self.archive_size: int = value_or(options["archive_size"], p.size)  # m
        self.c_1 = value_or(options["c_1"], 1 / (3 * math.sqrt(n) + 5))
        self.c_c = value_or(options["c_c"], 2 / (n + 5))  # c
        self.spacing: int = value_or(options["spacing"], n)  # T
        self.rule = RSR(p.weights, options["damping"], target=0.27)  # q* = 0.27
        self.state = State(
            setup.mean,
            setup.sigma,
            path=kernel.vector(n),
            paths=kernel.directions(self.archive_size + 1, n),
            scale=setup.scale,
        )

    def restore(self, scalars: dict[str, Any], arrays: Arrays) -> None:
        super().restore(scalars, arrays)
        if not 0 <= self.state.oldest < self.archive_size:
            raise ValueError(
                f"oldest must be a row of the {self.archive_size} stored paths, not "
                f"{self.state.oldest}"
            )

    @classmethod
    def vectors(cls, n: int, options: dict[str, Any]) -> tuple[int, int]:
        candidates = value_or(options["population_size"], default_population_size(n))
        return 3, value_or(options["archive_size"], candidates) + 1

    def law(self, generation: int) -> StepLaw:
        """Return the law of y_k = (1 - c_1) z + sqrt(c_1 (1 - c_1)) r P_k + sqrt(c_1) r' p.

        In the first m generations, y = z.
        """
        state, draws, m = self.state, self.population.draws, self.archive_size
        if state.updates < m:
            return StepLaw(scale=state.scale)
        # Candidate k uses the stored path number k, counted from the oldest.
        stored = (state.oldest + np.arange(draws)) % m
        rows = np.stack([stored, np.full(draws, m)], axis=1)
        normals = self._kernel.normals(2 * draws, self._seed, Stream.MIXTURE_FACTOR, generation)
        weights = np.sqrt([self.c_1 * (1 - self.c_1), self.c_1]).astype(np.float32)
        return StepLaw(1 - self.c_1, rows, normals.reshape(draws, 2) * weights, scale=state.scale)

    def directions(self) -> Handle:
        return self.state.paths

    def update(self, population: Handle, ranking: Indices, values: Vector, generation: int) -> None:
        """Update the state with an evaluated generation."""
        state, kernel = self.state, self._kernel
        # m <- sum_k w_k x_(k);
        # p <- (1 - c) p + sqrt(c (2 - c) mu_eff) (m - m_old) / sigma.
        newest = kernel.row(state.paths, self.archive_size)
        parents = ranking[: self.population.mu]
        self.recombine_along(population, parents, (state.path, self.c_c), newest)
        # Every T generations: drop P_1, P_m = p.
        if state.updates % self.spacing == 0:
            kernel.assign(kernel.row(state.paths, state.oldest), newest)
            state.oldest = (state.oldest + 1) % self.archive_size
        # sigma <- sigma exp(s / d), by the rank-based success rule, from the second generation on.
        adapt_sigma(state, self.rule, Evidence(values[ranking]))
        state.updates += 1


class FastCMA(AskTell):
    """Fast-CMA-ES, a two-vector model of the covariance (Li, Zhang, Lin, Zhen 2020).

    Parameters are those of `AskTell`; `FastCMA.option_table()` lists the options.
    """

    name = "fast-cma"
    search_type = FastCMASearch
