"""A Riemannian trust region with truncated conjugate gradients (Absil, Baker, Gallivan 2007).

It minimises a `SecondOrderModel` over a manifold. It does not depend on clustering.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mmes.spaces.manifolds import Manifold

Array = NDArray[np.float64]

ACCEPT, POOR, GOOD = 0.1, 0.25, 0.75  # ratios of actual to predicted decrease
SHRINK, GROW = 0.25, 2.0
KAPPA, THETA = 0.1, 1.0  # the inner iteration ends at |r| <= |r_0| min(kappa, |r_0|^theta)
# Near the optimum both decreases are rounding; this much of each makes their ratio 1 there.
RATIO_REGULARISATION = 1e3 * np.finfo(np.float64).eps


class SecondOrderModel(Protocol):
    """A function on a manifold with its Riemannian derivatives."""

    def value(self, point: Array) -> float:
        """Return the function value."""
        ...

    def derivatives(self, point: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return the Riemannian gradient and the map of a tangent to the Hessian along it."""
        ...


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
    model: SecondOrderModel,
    manifold: Manifold,
    start: Array,
    largest_radius: float,
    max_iterations: int = 300,
    tolerance: float = 1e-6,
) -> TrustRegionResult:
    """Minimise from `start` until the gradient norm is at most `tolerance`.

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
