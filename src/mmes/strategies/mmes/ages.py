"""How likely a stored direction is drawn by its age; see `mixture` for the formulas."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def directed_share(c_a: float, m: int) -> float:
    """Return gamma = 1 - (1 - c_a)^m, the share of the variance along the stored directions."""
    return -math.expm1(m * math.log1p(-c_a))


def age_probabilities(c_a: float, m: int) -> Vector:
    """Return the probability of each age, from the newest direction (age 0) to the oldest.

    This is alpha_{m - age} = c_a (1 - c_a)^age / gamma, the geometric law on 0, 1, 2, .. taken
    modulo m.
    """
    decay, total = math.log1p(-c_a), directed_share(c_a, m)
    return np.array([c_a * math.exp(age * decay) / total for age in range(m)])


def cumulative_ages(c_a: float, m: int) -> Vector:
    """Return the cumulative law of the ages, ending at exactly 1, for inversion."""
    decay, total = math.log1p(-c_a), directed_share(c_a, m)
    return np.array([*(-math.expm1(k * decay) / total for k in range(1, m)), 1.0])
