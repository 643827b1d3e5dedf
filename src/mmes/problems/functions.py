"""The basic problems of the paper: six functions and five of them rotated.

All have minimum 0 and the default box [-5, 5]^n. The rotated ones replace x by R x with an
orthogonal R that is drawn, on first use, from an explicit seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np

from mmes.base import memory
from mmes.problems import base, native
from mmes.problems.problem import Batch, Problem, Vector, box

BOX = (-5.0, 5.0)
LARGEST_ALPHA = 300
"""For larger alpha, 10^alpha is not a finite number."""
SQUARES = {"sphere": (1.0, 1.0), "discus": (1e6, 1.0), "cigar": (1.0, 1e6)}


class Kind(IntEnum):
    """The kinds of formulas; the native helper uses the same numbers."""

    SQUARES = 0  # c_1 x_1^2 + c_2 sum_{i>1} x_i^2
    ELLIPSOID = 1  # sum_i c_i x_i^2
    ROSENBROCK = 2
    POWERS = 3  # sum_i |x_i|^c_i


@dataclass(frozen=True, eq=False)
class Function:
    """One of the formulas with its coefficients c, evaluated by the native helper or by numpy."""

    kind: Kind
    coefficients: Vector

    def __call__(self, x: Vector) -> Vector:
        """Return the value of each row of x."""
        return self.native(x) if native.helper else self.reference(x)

    def reference(self, x: Vector) -> Vector:
        """Return the values by numpy: the readable version, the fallback and the oracle."""
        c = self.coefficients
        match self.kind:
            case Kind.SQUARES:
                return c[0] * x[:, 0] ** 2 + c[1] * base.sphere(x[:, 1:])
            case Kind.ELLIPSOID:
                return base.elliptic(x, c)
            case Kind.ROSENBROCK:
                return base.rosenbrock(x)
            case Kind.POWERS:
                terms = np.abs(x)
                np.power(terms, c, out=terms)
                return np.add.reduce(terms, axis=1)

    def native(self, x: Vector, level: str = "") -> Vector:
        """Return the values by the native helper, at one of `native.levels()` or the best."""
        if native.helper is None:
            raise RuntimeError("the native helper mmes.problems._compiled is not built")
        return native.helper.evaluate_rows(x, self.kind, self.coefficients, level)


@lru_cache(maxsize=1)  # so that copies unpickled for each task of a worker share one matrix
def rotation_matrix(dimension: int, seed: int) -> Vector:
    """Return an orthogonal matrix drawn uniformly (Haar measure) from the given seed.

    The Q of a Gaussian matrix's QR decomposition is not uniform as LAPACK returns it: its columns
    have the signs of R's diagonal, which are corrected here.
    """
    generator = np.random.Generator(np.random.Philox(seed))
    q, r = np.linalg.qr(generator.standard_normal((dimension, dimension)))
    q *= np.where(np.diagonal(r) < 0.0, -1.0, 1.0)
    q.setflags(write=False)
    return q


@dataclass(frozen=True, eq=False)
class Rotated:
    """A function of R x; R is drawn at the first evaluation and not pickled."""

    function: Batch
    dimension: int
    seed: int
    unrotated_minimizer: Vector
    _drawn: list[Vector] = field(default_factory=list, repr=False)

    @property
    def matrix(self) -> Vector:
        """The rotation R."""
        if not self._drawn:
            self._drawn.append(rotation_matrix(self.dimension, self.seed))
        return self._drawn[0]

    def __call__(self, x: Vector) -> Vector:
        """Return the value of each row of x."""
        return self.function(x @ self.matrix.T)

    def minimizer(self) -> Vector:
        """Return R' times the minimiser of the unrotated function."""
        return self.unrotated_minimizer @ self.matrix

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_drawn": []}


def make(
    name: str, dimension: int = 1000, *, alpha: float | None = None, seed: int | None = None
) -> Problem:
    """Return one of the basic problems, a key of `DESCRIPTIONS`.

    The coefficients of the ellipsoids run from 1 to 10^alpha, by default 10^6; the seed is that of
    the rotation of the rotated problems, by default 0.
    """
    kind = name.removeprefix("rotated_")
    smallest = 2 if kind == "rosenbrock" else 1
    if isinstance(dimension, bool) or not isinstance(dimension, int | np.integer):
        raise TypeError(f"dimension must be an integer of at least {smallest}, not {dimension!r}")
    n = int(dimension)
    if n < smallest:
        raise ValueError(f"{name} needs a dimension of at least {smallest}, not {n}")
    details: dict[str, Any] = {}
    if kind == "ellipsoid":
        details["alpha"] = 6.0 if alpha is None else float(alpha)
        if not abs(details["alpha"]) <= LARGEST_ALPHA:
            raise ValueError(
                f"alpha must be a number from -{LARGEST_ALPHA} to {LARGEST_ALPHA}, not {alpha!r}"
            )
    elif alpha is not None:
        raise ValueError(f"alpha={alpha!r} belongs to the ellipsoids; {name} has no such option")
    _check_memory(name, n, rotated=kind != name)
    function, minimizer = _unrotated(kind, n, details.get("alpha", 6.0))
    if kind != name:
        rotated = Rotated(function, n, _checked_seed(seed), minimizer)
        details["seed"] = rotated.seed
        function, minimizer = rotated, rotated.minimizer
    elif seed is not None:
        raise ValueError(f"seed={seed!r} belongs to the rotated problems; {name} has no rotation")
    lower, upper = box(n, *BOX)
    return Problem(name, n, function, lower, upper, minimizer, 0.0, DESCRIPTIONS[name], details)


def _check_memory(name: str, n: int, rotated: bool) -> None:
    """Refuse problems that do not fit into memory."""
    # Minimiser, coefficients and box; and a rotation with what its decomposition takes.
    needed = 8 * (4 * n + (3 * n * n if rotated else 0))
    usable = memory.available_bytes() * memory.USABLE_SHARE
    if needed > usable:
        why = ", for a rotation matrix of n x n numbers" if rotated else ""
        raise MemoryError(
            f"{name} with {n:,} variables needs about {memory.in_words(needed)}{why}; "
            f"{memory.in_words(usable)} are usable"
        )


def _unrotated(kind: str, n: int, alpha: float) -> tuple[Function, Vector]:
    """Return the function and its minimiser."""
    minimizer = np.full(n, 1.0 if kind == "rosenbrock" else 0.0)
    minimizer.setflags(write=False)
    match kind:
        case "ellipsoid":
            function = Function(Kind.ELLIPSOID, base.elliptic_weights(n, alpha))
        case "rosenbrock":
            function = Function(Kind.ROSENBROCK, np.empty(0))
        case "different_powers":
            function = Function(Kind.POWERS, 2.0 + 4.0 * base.ramp(n))
        case _:
            function = Function(Kind.SQUARES, np.array(SQUARES[kind]))
    return function, minimizer


def _checked_seed(seed: int | None) -> int:
    if seed is None:
        return 0
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed must be a non-negative integer, not {seed!r}")
    return int(seed)


DESCRIPTIONS = {
    "sphere": "Sum of squares.",
    "ellipsoid": "Squares with coefficients from 1 to 10^alpha (alpha = 6): ill-conditioned.",
    "rosenbrock": "A long curved valley; the minimiser is the all-ones vector.",
    "discus": "One steep direction, 10^6 times the others.",
    "cigar": "One flat direction, all others 10^6 times steeper.",
    "different_powers": "Powers from 2 to 6: flatter and flatter near the minimum.",
    "rotated_ellipsoid": "Ellipsoid in rotated coordinates.",
    "rotated_rosenbrock": "Rosenbrock's valley in rotated coordinates.",
    "rotated_discus": "Discus in rotated coordinates.",
    "rotated_cigar": "Cigar in rotated coordinates.",
    "rotated_different_powers": "Different powers in rotated coordinates.",
}
