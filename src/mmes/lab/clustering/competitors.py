"""White-box solvers of sparse spectral clustering, to compare the evolution strategy with.

`subgradient_trust_region` is the paper's competitor GSC: a trust region that treats the objective
as if it were smooth. `smoothed_trust_region` is the fair reference: the same trust region on smooth
approximations that approach the objective. It uses derivatives; if they exist, it is the better
method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from mmes.lab.clustering.objective import Array, SparseSpectralObjective
from mmes.lab.clustering.trust_region import TrustRegionResult, trust_region
from mmes.spaces.manifolds import Grassmann

FIRST_SMOOTHING, LAST_SMOOTHING, SMOOTHING_FACTOR = 1e-2, 1e-8, 0.25


class SmoothedModel:
    """The objective with |x| replaced by sqrt(x^2 + e^2) - e, and its derivatives.

    With a width e of 0 the value is exact, the gradient is that of a subgradient, and the Hessian
    takes the signs of U U' as fixed.
    """

    def __init__(
        self, objective: SparseSpectralObjective, manifold: Grassmann, smoothing: float
    ) -> None:
        self.objective = objective
        self.manifold = manifold
        self.smoothing = smoothing

    def value(self, point: Array) -> float:
        """Return the smoothed objective."""
        if self.smoothing == 0.0:
            return float(self.objective(point))
        entries = point @ point.T
        trace = float(np.vdot(self.objective.laplacian, entries))
        soft = np.hypot(entries, self.smoothing) - self.smoothing
        return trace + self.objective.beta * float(soft.sum())

    def derivatives(self, point: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return the Riemannian gradient at a basis, and the Hessian as a map of tangents."""
        beta, proj = self.objective.beta, self.manifold.proj
        entries = point @ point.T
        if self.smoothing == 0.0:
            slope, bend = np.sign(entries), None
        else:
            width = np.hypot(entries, self.smoothing)
            slope, bend = entries / width, 2.0 * beta * self.smoothing**2 / width**3
        matrix = 2.0 * (self.objective.laplacian + beta * slope)
        euclidean = matrix @ point
        tilt = point.T @ euclidean

        def hessian(tangent: Array) -> Array:
            along = matrix @ tangent - tangent @ tilt
            if bend is not None:
                cross = tangent @ point.T
                along += (bend * (cross + cross.T)) @ point
            return proj(point, along)

        return proj(point, euclidean), hessian


def subgradient_trust_region(
    laplacian: ArrayLike,
    beta: float,
    start: ArrayLike,
    max_iterations: int = 300,
    tolerance: float = 1e-6,
) -> TrustRegionResult:
    """Minimise the objective by a trust region that is given a subgradient as the gradient.

    The Laplacian is (N_s, N_s), the start an orthonormal basis, (N_s, N_c); see `trust_region`.
    """
    objective, manifold, point = _problem(laplacian, beta, start)
    model = SmoothedModel(objective, manifold, smoothing=0.0)
    return trust_region(model, manifold, point, np.sqrt(manifold.k), max_iterations, tolerance)


def smoothed_trust_region(
    laplacian: ArrayLike,
    beta: float,
    start: ArrayLike,
    max_iterations: int = 300,
    tolerance: float = 1e-6,
) -> TrustRegionResult:
    """Minimise smooth approximations of the objective that approach it, each from the last one.

    Parameters are those of `subgradient_trust_region`; the limit and the tolerance hold for each
    approximation. The result's value is that of the objective itself, the norm that of the last
    approximation, and iterations and evaluations are those of all approximations together.
    """
    objective, manifold, point = _problem(laplacian, beta, start)
    iterations = evaluations = 0
    smoothing, result = FIRST_SMOOTHING, None
    while result is None or smoothing > LAST_SMOOTHING:
        if result is not None:
            smoothing = max(smoothing * SMOOTHING_FACTOR, LAST_SMOOTHING)
        model = SmoothedModel(objective, manifold, smoothing)
        result = trust_region(
            model, manifold, point, np.sqrt(manifold.k), max_iterations, tolerance
        )
        point = result.x
        iterations, evaluations = iterations + result.nit, evaluations + result.nfev
    return replace(result, fun=float(objective(point)), nit=iterations, nfev=evaluations)


def spectral_basis(laplacian: ArrayLike, n_clusters: int) -> Array:
    """Return the eigenvectors of the smallest eigenvalues: the solution for beta = 0."""
    matrix = np.asarray(laplacian, dtype=np.float64)
    return np.linalg.eigh(matrix)[1][:, :n_clusters]


def _problem(
    laplacian: ArrayLike, beta: float, start: ArrayLike
) -> tuple[SparseSpectralObjective, Grassmann, Array]:
    objective = SparseSpectralObjective(laplacian, beta)
    columns = np.shape(start)[-1] if np.ndim(start) == 2 else 1
    manifold = Grassmann(len(objective.laplacian), columns)
    return objective, manifold, manifold.point(start)
