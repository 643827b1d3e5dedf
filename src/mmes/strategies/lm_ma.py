"""LM-MA-ES (Loshchilov, Glasmachers, Beyer 2019): limited-memory matrix adaptation.

A step is y = L z with L the ordered product of (1 - c_i) I + c_i M_i M_i', i = 1 first. Applied
factor by factor, this takes two passes over n numbers per factor, one after the other. Written out
instead,

    y = a_k z + a_k sum_i b_i M_i,   a_i = prod_{j <= i} (1 - c_j),
    b_i = c_i / (1 - c_i) (M_i.z + sum_{j < i} (M_i.M_j) b_j),

it takes the scalar products M_i.z and M_i.M_j, a small triangular system, and one sum: matrix
products that keep the vectors in cache. Both ways give the same numbers up to rounding
(tests/strategies/test_laws.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mmes.base.arrays import Indices
from mmes.base.options import Option
from mmes.kernels import Handle, Noise, StepLaw
from mmes.strategies.parts.population import (
    POPULATION_SIZE,
    damping_option,
    default_population_size,
    limit_length,
    mirrored_option,
    powers,
    reducing,
    value_or,
)
from mmes.strategies.parts.search_base import SearchBase, SearchState
from mmes.strategies.parts.step_size import CSA, Evidence, StepState, adapt_sigma
from mmes.strategies.shell.ask_tell import AskTell
from mmes.strategies.shell.protocol import Setup, Vector

_OPTIONS = (
    POPULATION_SIZE,
    Option(
        "directions",
        int,
        "Number of direction vectors.",
        symbol="m",
        default_text="4 + floor(3 ln n)",
        low=1,
    ),
    # N.B. the article does not mirror, its authors' program does, and the published figures need
    # it.
    mirrored_option(True),
    # N.B. 1 as in the authors' program; the article has 2.
    damping_option(),
)


@dataclass
class State(SearchState):
    """What the strategy carries from one generation to the next, with the symbols of the paper.

    Directions and path are in the coordinates of the noise z; the scale is applied last: x = m +
    sigma scale .* y.
    """

    directions: Handle  # M_1..M_m: direction vectors, (m, n) float32
    step: StepState  # p_s: state of the cumulative step-size rule
    updates: int = 0  # g: generations processed


class LMMASearch(SearchBase[State]):
    """LM-MA-ES."""

    label: ClassVar = "LM-MA-ES"
    options: ClassVar = _OPTIONS

    def __init__(self, setup: Setup, options: dict[str, Any]):
        self._n = n = setup.n
        super().__init__(setup, options)
        p = self.population
        m = value_or(options["directions"], default_population_size(n))
        # N.B. the article does not say what happens where a rate exceeds 1 (n < 2 lambda): it is 1
        # there, and the rates c_d are at most 1/2, so that no factor of L is singular.
        self.c_d = np.minimum(1 / (powers(1.5, m) * n), 0.5)
        self.c_c = np.minimum(p.size / (powers(4.0, m) * n), 1.0)
        self.rule = CSA(p.mu_eff, min(1.0, 2 * p.size / n), options["damping"])
        self._decays = 1 - self.c_c
        self._gains = np.sqrt(self.c_c * (2 - self.c_c) * p.mu_eff)
        self._kernel = kernel = reducing(setup.kernel)
        self.state = State(
            setup.mean,
            setup.sigma,
            directions=kernel.directions(m, n),
            step=StepState(path=kernel.vector(n)),
            scale=setup.scale,
        )

    @classmethod
    def vectors(cls, n: int, options: dict[str, Any]) -> tuple[int, int]:
        return 5, value_or(options["directions"], default_population_size(n))

    def law(self, generation: int) -> StepLaw:
        """Return the law of y = L z.

        From y = z on, for i = 1 .. min(g, m): y <- (1 - c_d,i) y + c_d,i (M_i.y) M_i.
        """
        state, draws = self.state, self.population.draws
        used = min(state.updates, self.c_d.size)
        if used == 0:
            return StepLaw(scale=state.scale)
        rows = np.ascontiguousarray(np.broadcast_to(np.arange(used), (draws, used)))
        along = self._kernel.project(state.directions, rows, Noise.NORMAL, self._seed, generation)
        products = self._kernel.gram(self._kernel.part(state.directions, 0, used), accurate=False)
        shrink = math.prod(1 - self.c_d[:used])
        factors = shrink * product_coefficients(products, along, self.c_d[:used])
        return StepLaw(shrink, rows, factors.astype(np.float32), scale=state.scale, scale_rows=True)

    def directions(self) -> Handle:
        return self.state.directions

    def update(self, population: Handle, ranking: Indices, values: Vector, generation: int) -> None:
        """Update the state with an evaluated generation."""
        state, p, kernel = self.state, self.population, self._kernel
        # m <- sum_k w_k x_(k);
        # <y>_w = (m - m_old) / sigma.
        y = self.recombine(population, ranking[: p.mu], p.weights, 1 / state.sigma)
        weights = p.noise_weights(ranking)
        z = kernel.noise_sum(weights, self._n, Noise.NORMAL, self._seed, generation)
        if self._box is not None:
            # The noise that would have made the parents as they were evaluated, but not longer than
            # what was drawn.
            # N.B. with the noise as drawn, parents that all lie at a wall would look like a long
            # path and make sigma diverge.
            if state.scale is not None:
                kernel.divide(y, state.scale)
            self._invert(y)
            limit_length(kernel, y, z)
            z = y
        # M_i <- (1 - c_c,i) M_i + sqrt(c_c,i (2 - c_c,i) mu_eff) <z>_w, also those that are not
        # used yet.
        kernel.accumulate(state.directions, self._decays, self._gains, z)
        # p_s <- (1 - c_s) p_s + sqrt(c_s (2 - c_s) mu_eff) <z>_w;
        # sigma <- sigma exp((c_s/d) (|p_s|^2/n - 1)).
        evidence = Evidence(values[ranking], lambda: z, kernel)
        adapt_sigma(state, self.rule, evidence)
        state.updates += 1

    def _invert(self, y: Handle) -> None:
        """Turn y into z = L^-1 y, in place."""
        kernel, used = self._kernel, min(self.state.updates, self.c_d.size)
        rates = self.c_d[:used]
        kernel.blend(y, 1 / math.prod(1 - rates), 0.0, y)
        if used == 0:
            return
        # y / a = z + sum_i b_i M_i. With M_i.z taken from there:
        # ((1 - c_i) / c_i) b_i + sum_{j >= i} (M_i.M_j) b_j = M_i.y / a.
        directions = kernel.part(self.state.directions, 0, used)
        system = np.diag((1 - rates) / rates) + np.triu(kernel.gram(directions, accurate=False))
        along = kernel.products(directions, y)
        b = solved_lower(system[::-1, ::-1], along[::-1])[::-1]
        kernel.add_rows(y, -b, directions)


def product_coefficients(products: Vector, along: Vector, rates: Vector) -> Vector:
    """Return b, shape (draws, k): y = a_k (z + sum_i b_i M_i) for the ordered product of k factors.

    `products` are M_i.M_j, shape (k, k), `along` are M_i.z of each draw, and `rates` are c_i < 1.
    """
    # ((1 - c_i) / c_i) b_i - sum_{j < i} (M_i.M_j) b_j = M_i.z.
    system = np.diag((1 - rates) / rates) - np.tril(products, -1)
    return np.ascontiguousarray(solved_lower(system, along.T).T)


def solved_lower(system: Vector, right: Vector) -> Vector:
    """Return the solution of a lower triangular system, one column per right-hand side.

    Entry by entry, because the order of additions in LAPACK depends on the processor.
    """
    left = np.array(right, dtype=np.float64)
    for i in range(left.shape[0]):
        left[i] /= system[i, i]
        left[i + 1 :] -= np.multiply.outer(system[i + 1 :, i], left[i])
    return left


class LMMA(AskTell):
    """LM-MA-ES, limited-memory matrix adaptation (Loshchilov, Glasmachers, Beyer 2019).

    Parameters are those of `AskTell`; `LMMA.option_table()` lists the options.
    """

    name = "lm-ma"
    search_type = LMMASearch
