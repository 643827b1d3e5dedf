"""Minimise the sparse-spectral-clustering objective by MMES on the Grassmann manifold."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike

from mmes.base.randomness import child_seed
from mmes.lab.clustering.competitors import spectral_basis
from mmes.lab.clustering.objective import Array, SparseSpectralObjective
from mmes.minimize import minimize
from mmes.run.restarts import random_point
from mmes.spaces.manifolds import Grassmann

# A random start needs long steps; beside the spectral solution long ones would forget it.
FIRST_SIGMA = {"random": 1.0, "spectral": 0.01}


@dataclass(frozen=True)
class SearchSettings:
    """The settings of a search. The defaults are those of the paper's experiment."""

    init: str = "random"  # ``"random"`` subspace, or ``"spectral"`` for the solution with beta = 0.
    # Number of further searches, each with the full budget, or ``"budget"``: as many as it
    # allows.
    restarts: int | str = 0
    max_evaluations: int = 300_000  # The budget.
    # Step size at which a search ends. A smaller one converges further, at up to twice the
    # evaluations.
    min_sigma: float = 1e-6
    mirrored: bool = True  # Whether candidates come in pairs of opposite steps.

    def __post_init__(self) -> None:
        if self.init not in FIRST_SIGMA:
            raise ValueError(f"init is {self.init!r}; it must be 'random' or 'spectral'")
        if self.restarts != "budget" and not _is_integer(self.restarts, 0):
            raise ValueError(
                f"restarts is {self.restarts!r}; it must be an integer >= 0 or 'budget'"
            )
        if not _is_integer(self.max_evaluations, 1):
            raise ValueError(
                f"max_evaluations is {self.max_evaluations!r}; it must be an integer >= 1"
            )
        if not isinstance(self.min_sigma, Real) or not 0.0 < self.min_sigma < np.inf:
            raise ValueError(f"min_sigma is {self.min_sigma!r}; it must be a number > 0")


def _is_integer(value: object, low: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low


PAPER_SETTINGS = SearchSettings()


@dataclass(frozen=True)
class Solution:
    """The best subspace of all searches."""

    basis: Array  # Orthonormal basis U of it, (N_s, N_c).
    value: float  # Its objective value.
    evaluations: int  # Number of evaluations over all searches.
    searches: int  # Number of searches.


def sparse_basis(
    laplacian: ArrayLike,
    n_clusters: int,
    beta: float,
    *,
    seed: int,
    settings: SearchSettings = PAPER_SETTINGS,
) -> Solution:
    """Minimise Tr(U' L U) + beta * sum_ij |(U U')_ij| over subspaces of dimension N_c.

    The Laplacian L is symmetric, (N_s, N_s). The seed is that of the random start and of the
    search; restarts use seeds derived from it. By default the settings are those of the paper.
    """
    objective = SparseSpectralObjective(laplacian, beta)
    manifold = Grassmann(len(objective.laplacian), n_clusters)
    spend_all = settings.restarts == "budget"
    searches = evaluations = 0
    best = None
    while True:
        search_seed = seed if searches == 0 else child_seed(seed, searches)
        left = settings.max_evaluations - evaluations if spend_all else settings.max_evaluations
        result = minimize(
            objective,
            _start(objective.laplacian, manifold, settings.init, search_seed),
            FIRST_SIGMA[settings.init],
            manifold=manifold,
            vectorized=True,
            seed=search_seed,
            max_evaluations=left,
            sigma_min=settings.min_sigma,
            mirrored=settings.mirrored,
            stagnation_window="off",
            noise="off",
        )
        searches, evaluations = searches + 1, evaluations + result.nfev
        if best is None or result.fun < best.fun:
            best = result
        spent = evaluations >= settings.max_evaluations
        if spent if spend_all else searches > int(settings.restarts):
            return Solution(best.x, best.fun, evaluations, searches)


def _start(laplacian: Array, manifold: Grassmann, init: str, seed: int) -> Array:
    if init == "spectral":
        return spectral_basis(laplacian, manifold.k)
    return random_point(manifold, seed)
