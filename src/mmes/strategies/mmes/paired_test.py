"""Paired test adaptation (PTA) of the mutation strength."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def success_share(
    best: NDArray[np.float64], previous: NDArray[np.float64], weights: NDArray[np.float64]
) -> float:
    """Return L, the sum of w_i over the ranks at which this generation beats the previous one.

    A tie is no success.
    """
    return float(weights @ (best < previous))


def smoothed(success: float, share: float, mu_eff: float, c_s: float) -> float:
    """Return the new W.

    2 L - 1 has mean 0 and variance 1 / mu_eff when both generations are alike, so W is near
    standard normal then. N.B. the text says that the factor 1 / sqrt(sum w^2) is replaced by
    mu_eff; it equals sqrt(mu_eff).
    """
    return (1 - c_s) * success + math.sqrt(c_s * (2 - c_s) * mu_eff) * (2 * share - 1)


def growth(success: float, significance: float, damping: float) -> float:
    """Return the factor of sigma, exp((Phi(W) - 1 + alpha_z) / d_sigma)."""
    return math.exp((normal_cdf(success) - 1 + significance) / damping)


def normal_cdf(x: float) -> float:
    """Return Phi(x)."""
    return 0.5 * math.erfc(-x / math.sqrt(2))
