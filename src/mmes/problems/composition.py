"""The CEC large-scale functions: sums of base functions of groups of variables.

A `Part` defines the variables of a base function, how they are shifted, rotated and transformed,
and the weight of its value; a `Composition` is the sum of its parts. The suites only list parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmes.problems import base, native
from mmes.problems.problem import Vector


class Base(IntEnum):
    """The base functions; the native helper uses the same numbers."""

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
    """One term: weight * base(transforms((x[index] - shift) @ matrix))."""

    base: Base  # The base function.
    index: NDArray[np.int32]  # Its variables, in order.
    shift: Vector  # Its minimiser before rotation, one entry for each of them.
    matrix: Vector | None = None  # The rotation, applied to row vectors from the right.
    weight: float = 1.0  # The factor of its value.
    transform: Transform = Transform.NONE  # The transformations after the rotation.

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
            z = base.oscillate(z)
        if self.transform & Transform.ASYMMETRIC:
            z = base.asymmetric(z, base.asymmetry_coefficients(z.shape[1]))
        if self.transform & Transform.SCALE:
            z *= base.scale_coefficients(z.shape[1])
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


class Packed(NamedTuple):
    """The parts of a composition as the arrays that the native helper takes."""

    parts: NDArray[np.int64]  # base, transform, start, size, start of the matrix or -1
    weights: Vector
    variables: NDArray[np.int32]
    coefficients: Vector  # shifts, elliptic weights, asymmetries, scales
    matrices: Vector


@dataclass(frozen=True, eq=False)
class Composition:
    """A sum of parts, evaluated by the native helper or, without it, by numpy."""

    parts: tuple[Part, ...]  # The terms, added in this order.
    # A box outside of which the value is NaN; None evaluates every point.
    inside: tuple[Vector, Vector] | None = None

    def __call__(self, x: Vector) -> Vector:
        """Return the value of each row of x."""
        values = self.native(x) if native.helper else self.reference(x)
        if self.inside is not None:
            lower, upper = self.inside
            values[np.any((x < lower) | (x > upper), axis=1)] = np.nan
        return values

    def reference(self, x: Vector) -> Vector:
        """Return the values by numpy: the readable version, the fallback and the oracle."""
        total = np.zeros(len(x))
        for part in self.parts:
            total += part(x)
        return total

    def native(self, x: Vector, level: str = "") -> Vector:
        """Return the values by the native helper, at one of `native.levels()` or the best."""
        if native.helper is None:
            raise RuntimeError("the native helper mmes.problems._compiled is not built")
        return self._prepared.evaluate(x, level)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle, without the data of the native helper."""
        return {"parts": self.parts, "inside": self.inside}

    @cached_property
    def _prepared(self) -> Any:
        """The composition in the form of the native helper."""
        return native.helper.Composition(*self.packed())  # type: ignore[union-attr]

    def packed(self) -> Packed:
        """Return the composition as flat arrays, which the native helper reads."""
        starts: dict[int, int] = {-1: -1}  # by id: groups of one size share their matrix
        matrices = [np.empty(0)]
        rows = []
        start = end = 0
        for part in self.parts:
            size = len(part.index)
            key = -1 if part.matrix is None else id(part.matrix)
            if key not in starts and part.matrix is not None:
                starts[key] = end
                matrices.append(part.matrix.ravel())
                end += size * size
            rows.append((part.base, part.transform, start, size, starts[key]))
            start += size
        sizes = [len(part.index) for part in self.parts]
        coefficients = [
            np.concatenate([part.shift for part in self.parts]),
            np.concatenate([base.elliptic_weights(size) for size in sizes]),
            np.concatenate([base.asymmetry_coefficients(size) for size in sizes]),
            np.concatenate([base.scale_coefficients(size) for size in sizes]),
        ]
        return Packed(
            np.array(rows, dtype=np.int64),
            np.array([part.weight for part in self.parts]),
            np.concatenate([part.index for part in self.parts]),
            np.array(coefficients),
            np.concatenate(matrices),
        )
