"""The coordinate-wise transformations of the CEC 2013 suite."""

from __future__ import annotations

import numpy as np

from mmes.problems.base import ramp
from mmes.problems.problem import Vector

BETA = 0.2
ALPHA = 10.0


def oscillate(z: Vector) -> Vector:
    """Return T_osz(z): smooth local irregularities; zero stays zero and signs stay.

    sign(z) exp(h + 0.049 (sin(c1 h) + sin(c2 h))) with h = ln|z|.
    """
    h = np.log(np.where(z == 0.0, 1.0, np.abs(z)))
    positive = z > 0.0
    waves = np.sin(np.where(positive, 10.0, 5.5) * h)
    waves += np.sin(np.where(positive, 7.9, 3.1) * h)
    return np.sign(z) * np.exp(h + 0.049 * waves)


def asymmetry_coefficients(n: int) -> Vector:
    """Return beta u_i for T_asy."""
    return BETA * ramp(n)


def asymmetric(z: Vector, coefficients: Vector) -> Vector:
    """Return T_asy(z): z^(1 + beta u_i sqrt(z)) where z > 0, z elsewhere."""
    positive = np.maximum(z, 0.0)
    return np.where(z > 0.0, positive ** (1.0 + coefficients * np.sqrt(positive)), z)


def scale_coefficients(n: int) -> Vector:
    """Return alpha^(u_i / 2), the diagonal of Lambda."""
    return ALPHA ** (0.5 * ramp(n))
