"""Recombination weights and bounds of sigma of all strategies."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def log_weights(mu: int) -> NDArray[np.float64]:
    """Return w_1 .. w_mu, proportional to ln(mu + 1/2) - ln i, with sum 1."""
    raw = [math.log(mu + 0.5) - math.log(i) for i in range(1, mu + 1)]
    return np.array(raw) / math.fsum(raw)


def effective_size(weights: NDArray[np.float64]) -> float:
    """Return mu_eff = 1 / sum w_i^2."""
    return 1.0 / math.fsum(weights * weights)


# Beyond these, steps vanish or overflow in double precision, whatever limits a user sets.
SMALLEST_SIGMA, LARGEST_SIGMA = 1e-300, 1e280


def bounded_sigma(sigma: float) -> float:
    """Return sigma limited to a valid range; the stop rules end the run long before."""
    return min(max(sigma, SMALLEST_SIGMA), LARGEST_SIGMA)
