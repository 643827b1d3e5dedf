"""White-box solvers of sparse spectral clustering, to compare the evolution strategy with.

Both use a Riemannian trust region with truncated conjugate gradients (Absil, Baker, Gallivan 2007).
`subgradient_trust_region` is the paper's competitor GSC: a trust region that treats the objective
as if it were smooth. `smoothed_trust_region` is the fair reference: the same trust region on smooth
approximations that approach the objective. It uses derivatives; if they exist, it is the better
method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from mmes.lab.clustering.objective import Array, SparseSpectralObjective
from mmes.spaces.manifolds import Grassmann, Manifold

FIRST_SMOOTHING, LAST_SMOOTHING, SMOOTHING_FACTOR = 1e-2, 1e-8, 0.25

ACCEPT, POOR, GOOD = 0.1, 0.25, 0.75  # ratios of actual to predicted decrease
SHRINK, GROW = 0.25, 2.0
KAPPA, THETA = 0.1, 1.0  # the inner iteration ends at |r| <= |r_0| min(kappa, |r_0|^theta)
# Near the optimum both decreases are rounding; this much of each makes their ratio 1 there.
RATIO_REGULARISATION = 1e3 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class SmoothedModel:
    """The objective with |x| replaced by sqrt(x^2 + e^2) - e, and its derivatives.

    With a width e of 0 the value is exact, the gradient is that of a subgradient, and the Hessian
    takes the signs of U U' as fixed.
    """

    objective: SparseSpectralObjective
    manifold: Grassmann
    smoothing: float  # The width e.

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


@dataclass(frozen=True)
class TrustRegionResult:
    """The result of the trust region."""

    x: Array  # The last point; no point seen is better.
    fun: float  # Its value.
    gradient_norm: float  # Norm of its Riemannian gradient.
    nit: int  # Outer iterations done.
    nfev: int  # Function values computed.
    converged: bool  # Whether the gradient norm reached the tolerance.


def trust_region(
    model: SmoothedModel,
    manifold: Manifold,
    start: Array,
    largest_radius: float,
    max_iterations: int = 300,
    tolerance: float = 1e-6,
) -> TrustRegionResult:
    """Minimise a model on a manifold until the gradient norm is at most `tolerance`.

    The radius is at most `largest_radius`, and an eighth of it at first; `max_iterations` limits
    the outer iterations.
    """
    point, value, evaluations = start, model.value(start), 1
    radius = largest_radius / 8.0
    gradient, hessian = model.derivatives(point)
    norm = float(np.linalg.norm(gradient))
    iteration = 0
    while iteration < max_iterations and norm > tolerance and radius > np.finfo(float).eps:
        iteration += 1
        step, bent_step, at_boundary = _truncated_cg(gradient, hessian, radius, manifold.dim)
        trial = manifold.retract_mean(point, manifold.proj(point, step))
        trial_value = model.value(trial)
        evaluations += 1
        slack = RATIO_REGULARISATION * max(1.0, abs(value))
        predicted = -_inner(gradient, step) - 0.5 * _inner(step, bent_step)
        ratio = (value - trial_value + slack) / (predicted + slack)
        if not ratio >= POOR:  # also when it is not a number
            radius *= SHRINK
        elif ratio > GOOD and at_boundary:
            radius = min(GROW * radius, largest_radius)
        if ratio > ACCEPT and trial_value <= value + slack:
            point, value = trial, trial_value
            gradient, hessian = model.derivatives(point)
            norm = float(np.linalg.norm(gradient))
    return TrustRegionResult(point, value, norm, iteration, evaluations, norm <= tolerance)


def _inner(a: Array, b: Array) -> float:
    return float(np.vdot(a, b))


def _truncated_cg(
    gradient: Array, hessian: Callable[[Array], Array], radius: float, limit: int
) -> tuple[Array, Array, bool]:
    """Minimise the quadratic model within the radius, by the rules of Steihaug and Toint.

    Returns the step, the Hessian along it, and whether it ends on the boundary.
    """
    step, bent_step = np.zeros_like(gradient), np.zeros_like(gradient)
    residual, direction = gradient, -gradient
    square = first = _inner(residual, residual)
    target = first * min(KAPPA, np.sqrt(first) ** THETA) ** 2
    for _ in range(limit):
        bent = hessian(direction)
        curvature = _inner(direction, bent)
        length = square / curvature if curvature > 0.0 else np.inf
        if curvature <= 0.0 or np.linalg.norm(step + length * direction) >= radius:
            length = _length_to_boundary(step, direction, radius)
            return step + length * direction, bent_step + length * bent, True
        step, bent_step = step + length * direction, bent_step + length * bent
        residual = residual + length * bent
        previous, square = square, _inner(residual, residual)
        if square <= target:
            break
        direction = (square / previous) * direction - residual
    return step, bent_step, False


def _length_to_boundary(step: Array, direction: Array, radius: float) -> float:
    """Return the positive t with |step + t direction| = radius."""
    a, b = _inner(direction, direction), _inner(step, direction)
    c = radius**2 - _inner(step, step)
    return float((np.sqrt(b * b + a * c) - b) / a)


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
