"""An objective for `mmes bench`: the risk of a portfolio with correlated assets."""

from __future__ import annotations

import numpy as np


def risk(weights: np.ndarray) -> np.ndarray:
    """Return the risk of each row of weights, with a penalty for not summing to 1.

    Neighbouring assets are correlated, and their volatilities span two orders of magnitude.
    """
    volatility = 10.0 ** np.linspace(-1.0, 1.0, weights.shape[1])
    scaled = weights * volatility
    variance = (scaled**2).sum(axis=1) + 1.8 * (scaled[:, 1:] * scaled[:, :-1]).sum(axis=1) / 2
    return variance + 100.0 * (weights.sum(axis=1) - 1.0) ** 2
