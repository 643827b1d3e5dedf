"""CMA-ES (Hansen and Ostermeier 2001; Hansen 2016): the full covariance matrix.

As published, and active (Jastrebski and Arnold 2006), in the form of Hansen 2016: the worst steps
reduce the variance in their directions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mmes.base.arrays import Arrays, Indices
from mmes.base.memory import in_words
from mmes.base.options import Option
from mmes.kernels import Noise, RecombineCall, SampleCall, StepLaw
from mmes.strategies.parts.cma_rates import Rates
from mmes.strategies.parts.population import (
    POPULATION_SIZE,
    damping_option,
    default_population_size,
    limit_length,
    mirrored_option,
    reducing,
    value_or,
)
from mmes.strategies.parts.search_base import SearchBase
from mmes.strategies.parts.step_size import Evidence, StepState, adapt_sigma
from mmes.strategies.shell.ask_tell import AskTell
from mmes.strategies.shell.protocol import Setup, Vector

# Matrices of n x n numbers at the same time: C, its factor, the inverse of that where there are
# bounds, and two in passing while the factor is made; the eigen-decomposition has two more.
_MATRICES = {"cholesky": 5, "eigen": 7}
# Coordinates that are computed at a time from the triangular factor.
_STRIP = 128

_OPTIONS = (
    POPULATION_SIZE,
    Option(
        "factor",
        str,
        "Factorization of the covariance; 'eigen' takes about twenty times as long as 'cholesky'.",
        default="cholesky",
        choices=("cholesky", "eigen"),
    ),
    mirrored_option(False),
    damping_option("Factor of the damping d_sigma of the cumulative rule"),
)


@dataclass
class State:
    """What the strategy carries from one generation to the next, with the symbols of the paper.

    C changes in every generation but is used only when it is factorized again; until then its
    updates are collected, and then done as one matrix product.
    """

    mean: Vector  # m: centre of the search
    sigma: float  # mutation strength
    path: Vector  # p_c: evolution path
    covariance: Vector  # C: covariance matrix, as of the last factorisation
    root: Vector  # A with C = A A', as of then: triangular (Cholesky), or B D
    basis: Vector | None  # B: eigenvectors; None with the Cholesky factor
    pending: Vector  # rows w with C_now = decay C + sum w w' - sum v v': updates since then
    step: StepState  # p_s: state of the cumulative step-size rule
    removed: Vector | None = None  # rows v of the same; None unless active
    decay: float = 1.0  # see pending
    updates: int = 0  # g: generations processed
    factorised: int = 0  # the generation of the last factorisation


class CMASearch(SearchBase[State]):
    """CMA-ES: x ~ m + sigma N(0, C)."""

    options: ClassVar = _OPTIONS
    on_host: ClassVar = True
    # The matrix library adds in an order that depends on the processor.
    replicable: ClassVar = False
    active: ClassVar = False
    """Whether the worst candidates count in the covariance, with negative weights."""

    def __init__(self, setup: Setup, options: dict[str, Any]):
        n = setup.n
        super().__init__(setup, options)
        p = self.population
        self.rates = rates = Rates.full(n, p.mu_eff, options["damping"])
        self.rule = rates.rule()
        # N.B. with clipping and reflection the worst would take away the variance that leads along
        # the walls: CMA-ES as published then.
        self._active = self.active and setup.box is None
        self._negative = rates.negative_weights(p.size)
        # Generations between factorisations; the text counts lambda evaluations each.
        self.gap = 1 / (10 * n * (rates.c_1 + rates.c_mu))
        self._eigen = options["factor"] == "eigen"
        self._inverse: Vector | None = None
        # The generation, A, z_k and y_k of the newest draws.
        self._kept: tuple[int, Vector, Vector, Vector] | None = None
        self._kernel = reducing(setup.kernel)
        scale = np.ones(n) if setup.scale is None else setup.scale
        self.state = State(
            setup.mean,
            setup.sigma,
            path=np.zeros(n),
            covariance=np.diag(scale**2),
            root=np.diag(scale),
            basis=np.eye(n) if self._eigen else None,
            pending=np.empty((0, n)),
            step=StepState(path=np.zeros(n)),
            removed=np.empty((0, n)) if self._active else None,
        )

    @classmethod
    def planned(
        cls,
        n: int,
        options: dict[str, Any],
        available: int,
        entry_bytes: int = 8,
        vector_bytes: int = 8,
    ) -> tuple[dict[str, Any], int]:
        candidates = value_or(options["population_size"], default_population_size(n))
        matrices = _MATRICES[options["factor"]]
        needed = 8 * n * (matrices * n + 4 * candidates + 10)
        if needed - 32 * n * candidates <= available < needed:
            raise MemoryError(
                f"CMA-ES needs {in_words(needed)} for n = {n} with a population of {candidates}, "
                f"but {in_words(available)} are usable: the population is too large"
            )
        if needed > available:
            fitting = math.isqrt(available // (8 * matrices))
            raise MemoryError(
                f"CMA-ES keeps n x n matrices: n = {n} needs {in_words(needed)}, but "
                f"{in_words(available)} are usable, "
                f"enough for n = {fitting}; MMES, SepCMA and the limited-memory strategies need "
                "memory in proportion to n"
            )
        return options, needed

    def spread(self) -> float:
        return math.sqrt(
            max(float(np.diagonal(self.state.covariance).max()), 0.0) * self.state.decay
        )

    @property
    def learning_time(self) -> float:
        """The generations that C is an average of."""
        return 1 / (self.rates.c_1 + self.rates.c_mu)

    def mean_axis(self) -> float:
        """Return the n-th root of the determinant of A, with which candidates were drawn."""
        root = self.state.root
        axes = np.diagonal(root) if not self._eigen else np.sqrt(np.einsum("ij,ij->j", root, root))
        return math.exp(float(np.log(np.abs(axes)).mean()))

    def sample(self, population: Vector, generation: int, rows: Indices | None = None) -> None:
        """x_k = m + sigma y_k, y_k = A z_k, z_k ~ N(0, I)."""
        state, draws = self.state, self.population.draws
        _, steps = self._drawn(generation)
        if rows is not None or draws < self.population_size:
            wanted = np.arange(self.population_size) if rows is None else rows
            steps = np.where(wanted < draws, 1.0, -1.0)[:, None] * steps[wanted % draws]
        np.multiply(steps, state.sigma, out=population)
        population += state.mean
        if self._box is not None:
            self._kernel.confine(population, population, self._box)

    def _drawn(self, generation: int) -> tuple[Vector, Vector]:
        """Return z_k and y_k, one draw per row; those of the newest generation are kept."""
        root = self.state.root
        if self._kept is None or self._kept[0] != generation or self._kept[1] is not root:
            z = self._noise(generation)
            self._kept = generation, root, z, self._correlated(z)
        return self._kept[2:]

    def _correlated(self, z: Vector) -> Vector:
        """Return A z_k for each row z_k."""
        root, n = self.state.root, z.shape[1]
        if self._eigen:
            return z @ root.T
        # A is triangular: this omits most of the products with zero.
        y = np.empty_like(z)
        for begin in range(0, n, _STRIP):
            end = min(begin + _STRIP, n)
            np.matmul(z[:, :end], root[begin:end, :end].T, out=y[:, begin:end])
        return y

    def _noise(self, generation: int) -> Vector:
        """Return z_k, one draw per row."""
        draws, n = self.population.draws, self.state.mean.size
        z, zero = np.empty((draws, n)), self._kernel.vector(n)
        self._kernel.sample(
            SampleCall(z, draws, zero, 1.0, None, StepLaw(), None, self._seed, generation)
        )
        return z

    def update(self, population: Vector, ranking: Indices, values: Vector, generation: int) -> None:
        """Update the state with an evaluated generation."""
        state, p, rates, sigma = self.state, self.population, self.rates, self.state.sigma
        # y_(k) = (x_(k) - m) / sigma, of the candidates as they were evaluated, and in the end the
        # rows of the update.
        rows = np.empty((p.mu + 1, state.mean.size))
        steps = np.subtract(population[ranking[: p.mu]], state.mean, out=rows[: p.mu])
        steps /= sigma
        worst = self._worst(ranking[p.mu :], generation) if self._active else None
        # p_s <- (1 - c_s) p_s + sqrt(c_s (2 - c_s) mu_eff) B <z>_w;
        # sigma <- sigma exp((c_s/d_s) (|p_s|/chi_n - 1)).
        # N.B. without B for the Cholesky factor, whose path lives in slowly turning coordinates.
        weights, n = p.noise_weights(ranking), state.mean.size
        z = self._kernel.noise_sum(weights, n, Noise.NORMAL, self._seed, generation)
        if self._box is not None:
            # The noise that would have made the parents as they were evaluated, but not longer than
            # what was drawn.
            # N.B. with the noise as drawn, parents that all lie at a wall would look like a long
            # path and make sigma diverge.
            drawn, z = z, self._inverse_root() @ (p.weights @ steps)
            limit_length(self._kernel, z, drawn)
        if state.basis is not None:
            z = state.basis @ z
        evidence = Evidence(values[ranking], lambda: z, self._kernel)
        adapt_sigma(state, self.rule, evidence)
        state.updates += 1
        # h = 0 stalls p_c while p_s is long.
        path = state.step.path
        moves = rates.path_moves(self._kernel.dot(path, path), state.updates)
        # m <- m + sigma <y>_w;
        # p_c <- (1 - c_c) p_c + h sqrt(c_c (2 - c_c) mu_eff) <y>_w.
        self._kernel.recombine(
            RecombineCall(
                population,
                ranking[: p.mu],
                p.weights,
                state.mean,
                state.path,
                1 - rates.c_c,
                rates.path_gain(moves) / sigma,
            )
        )
        # C <- (1 - c_1 - c_mu sum_k w_k + (1 - h) c_1 c_c (2 - c_c)) C
        #      + c_1 p_c p_c' + c_mu sum_k w_k y_(k) y_(k)'.
        steps *= np.sqrt(rates.c_mu * p.weights)[:, None]
        rows[p.mu] = math.sqrt(rates.c_1) * state.path
        decay = rates.covariance_decay(moves)
        if worst is not None and state.removed is not None:
            decay += rates.c_mu * float(self._negative.sum())
            state.removed = np.concatenate((math.sqrt(decay) * state.removed, worst))
        state.decay *= decay
        state.pending = np.concatenate((math.sqrt(decay) * state.pending, rows))
        if state.updates - state.factorised > self.gap:
            self._factorise()

    def _worst(self, worst: Indices, generation: int) -> Vector:
        """Return the rows that C loses: sqrt(c_mu |w_k| n) y_(k) / |z_(k)|, the best first.

        A long step removes no more than one of the expected length: C stays positive definite. N.B.
        y as it was drawn, not from the candidates: where steps reach the resolution of x, these are
        rounded, and so long in the measure of C that they would take away more than there is.
        """
        # A mirrored candidate has the step -y, and the same y y'.
        z, y = (rows[worst % self.population.draws] for rows in self._drawn(generation))
        squares = np.einsum("ij,ij->i", z, z)
        shares = np.where(squares > 0, self._negative / np.maximum(squares, 1e-300), 0.0)
        y *= np.sqrt(self.rates.c_mu * z.shape[1] * shares)[:, None]
        return y

    def restore(self, scalars: dict[str, Any], arrays: Arrays) -> None:
        super().restore(scalars, arrays)
        # Older files have B D where C was not positive definite.
        if not self._eigen and np.triu(self.state.root, 1).any():
            self.state.root = _triangular(self.state.root)

    def _inverse_root(self) -> Vector:
        """Return A^-1, computed once for each A."""
        if self._inverse is None:
            self._inverse = np.asarray(np.linalg.inv(self.state.root), dtype=np.float64)
        return self._inverse

    def _factorise(self) -> None:
        """Apply the collected updates of C and factorize it."""
        state = self.state
        state.covariance *= state.decay
        state.covariance += state.pending.T @ state.pending
        state.pending, state.decay = np.empty((0, state.mean.size)), 1.0
        if state.removed is not None:
            state.covariance -= state.removed.T @ state.removed
            state.removed = np.empty((0, state.mean.size))
        state.factorised = state.updates
        self._inverse = None
        if not self._eigen:
            try:
                state.root = np.asarray(np.linalg.cholesky(state.covariance), dtype=np.float64)
                return
            except np.linalg.LinAlgError:  # not positive definite in floating point
                pass
        # C = B D^2 B'.
        squares, basis = np.linalg.eigh(state.covariance)
        smallest = np.finfo(float).eps * max(float(squares[-1]), np.finfo(float).tiny)
        lengths = np.sqrt(np.maximum(squares, smallest))
        if self._eigen:
            state.root, state.basis = basis * lengths, basis
            return
        state.root = _triangular(basis * lengths)
        if self._active:
            state.covariance = state.root @ state.root.T


def _triangular(root: Vector) -> Vector:
    """Return the triangular A with A A' = B B': B = (Q R)' = R' Q', so that A = R'."""
    upper = np.asarray(np.linalg.qr(root.T, mode="r"), dtype=np.float64)
    return np.ascontiguousarray(upper.T)


class CMAES(AskTell):
    """CMA-ES with the full covariance matrix (Hansen and Ostermeier 2001): O(n^2) time and memory.

    Parameters are those of `AskTell`; `CMAES.option_table()` lists the options.
    """

    name = "cma-es"
    search_type = CMASearch


class ActiveCMASearch(CMASearch):
    """CMA-ES with negative weights in the covariance."""

    active: ClassVar = True


class ActiveCMA(AskTell):
    """Active CMA-ES: the worst candidates reduce the variance (Jastrebski and Arnold 2006).

    The weights are those of Hansen 2016. With clipped or reflected bounds it is plain CMA-ES.
    Parameters are those of `AskTell`; `ActiveCMA.option_table()` lists the options.
    """

    name = "active-cma"
    search_type = ActiveCMASearch
