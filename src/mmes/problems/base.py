"""The base functions of every suite, as row-wise formulas on a batch, and their transformations.

Each takes a (..., n) array and returns the values of its rows. Row sums go through `einsum`, which
adds the entries of a row in an order that depends on n alone: a point has the same value, to the
bit, alone and in a batch of any size. A matrix product with a vector of weights would not.
"""

from __future__ import annotations

import numpy as np

from mmes.problems.problem import Vector

E = np.exp(1.0)


def ramp(n: int) -> Vector:
    """Return u_i = i / (n - 1) for i = 0..n-1, the exponents' ramp from 0 to 1 (0 for n = 1)."""
    return np.arange(n) / max(n - 1, 1)


def elliptic_weights(n: int, alpha: float = 6.0) -> Vector:
    """Return the coefficients 10^(alpha u_i) of the elliptic function."""
    return 10.0 ** (alpha * ramp(n))


def dot_rows(a: Vector, b: Vector) -> Vector:
    """Return the inner products of the rows of a with the rows of b."""
    return np.einsum("...i,...i->...", a, b)


def sphere(z: Vector) -> Vector:
    """Return sum z_i^2."""
    return dot_rows(z, z)


def elliptic(z: Vector, weights: Vector) -> Vector:
    """Return sum weights_i z_i^2."""
    return dot_rows(z * weights, z)


def rosenbrock(z: Vector) -> Vector:
    """Return sum_{i<n-1} 100 (z_i^2 - z_{i+1})^2 + (z_i - 1)^2."""
    head = z[..., :-1]
    valley = head * head
    valley -= z[..., 1:]
    slope = head - 1.0
    return 100.0 * sphere(valley) + sphere(slope)


def rastrigin(z: Vector) -> Vector:
    """Return sum z_i^2 - 10 cos(2 pi z_i) + 10."""
    waves = np.cos(2.0 * np.pi * z)
    return sphere(z) + 10.0 * (z.shape[-1] - waves.sum(axis=-1))


def ackley(z: Vector) -> Vector:
    """Return 20 - 20 exp(-0.2 sqrt(mean z_i^2)) + e - exp(mean cos(2 pi z_i)).

    Grouped this way, with e from the same exponential, the minimum is exactly 0.
    """
    n = z.shape[-1]
    waves = np.cos(2.0 * np.pi * z)
    valley = 20.0 - 20.0 * np.exp(-0.2 * np.sqrt(sphere(z) / n))
    return valley + (E - np.exp(waves.sum(axis=-1) / n))


def schwefel(z: Vector) -> Vector:
    """Return sum_i (z_0 + ... + z_i)^2 (Schwefel's problem 1.2), with running sums."""
    return sphere(np.cumsum(z, axis=-1))


# The coordinate-wise transformations of the CEC 2013 suite

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
