"""Sums of base functions of groups of variables: what every CEC large-scale function is.

A `Part` says which variables a base function sees, how they are shifted, rotated and transformed,
and what weight its value has; a `Composition` is the sum of its parts. The suites only list parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag

import numpy as np
from numpy.typing import NDArray

from mmes.problems import base, transforms
from mmes.problems.problem import Vector


class Base(IntEnum):
    """The base functions; the native helper knows them by the same numbers."""

    SPHERE = 0
    ELLIPTIC = 1
    RASTRIGIN = 2
    ACKLEY = 3
    SCHWEFEL = 4
    ROSENBROCK = 5


class Transform(IntFlag):
    """The transformations that come before a base function, applied in this order."""

    NONE = 0
    OSCILLATE = 1
    ASYMMETRIC = 2
    SCALE = 4


@dataclass(frozen=True, eq=False)
class Part:
    """One term: weight * base(transforms((x[index] - shift) @ matrix)).

    Attributes
    ----------
    base : Base
        The base function.
    index : ndarray of int
        The variables it sees, in its order.
    shift : ndarray
        Its minimiser before rotation, one entry for each of them.
    matrix : ndarray or None
        The rotation, applied to row vectors from the right.
    weight : float
        The factor of its value.
    transform : Transform
        The transformations after the rotation.
    """

    base: Base
    index: NDArray[np.int32]
    shift: Vector
    matrix: Vector | None = None
    weight: float = 1.0
    transform: Transform = Transform.NONE

    @property
    def separable(self) -> bool:
        """Whether its variables can be minimised one by one."""
        return self.matrix is None and self.base not in (Base.SCHWEFEL, Base.ROSENBROCK)

    def __call__(self, x: Vector) -> Vector:
        """Return the term of each row of x."""
        z = x[:, self.index]
        z -= self.shift
        if self.matrix is not None:
            z = z @ self.matrix
        if self.transform & Transform.OSCILLATE:
            z = transforms.oscillate(z)
        if self.transform & Transform.ASYMMETRIC:
            z = transforms.asymmetric(z, transforms.asymmetry_coefficients(z.shape[1]))
        if self.transform & Transform.SCALE:
            z *= transforms.scale_coefficients(z.shape[1])
        return self.weight * self._base_value(z)

    def _base_value(self, z: Vector) -> Vector:
        match self.base:
            case Base.SPHERE:
                return base.sphere(z)
            case Base.ELLIPTIC:
                return base.elliptic(z, base.elliptic_weights(z.shape[1]))
            case Base.RASTRIGIN:
                return base.rastrigin(z)
            case Base.ACKLEY:
                return base.ackley(z)
            case Base.SCHWEFEL:
                return base.schwefel(z)
            case Base.ROSENBROCK:
                return base.rosenbrock(z)


@dataclass(frozen=True, eq=False)
class Composition:
    """A sum of parts, evaluated by the native helper or, without it, by numpy.

    Attributes
    ----------
    parts : tuple of Part
        The terms, added in this order.
    outside : tuple of ndarray, optional
        A box outside of which the value is NaN; None evaluates every point.
    """

    parts: tuple[Part, ...]
    outside: tuple[Vector, Vector] | None = None

    def __call__(self, x: Vector) -> Vector:
        """Return the value of each row of x."""
        values = self.reference(x)
        if self.outside is not None:
            lower, upper = self.outside
            values[np.any((x < lower) | (x > upper), axis=1)] = np.nan
        return values

    def reference(self, x: Vector) -> Vector:
        """Return the values by numpy: the reading copy, the fallback and the oracle."""
        total = np.zeros(len(x))
        for part in self.parts:
            total += part(x)
        return total
