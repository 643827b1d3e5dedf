"""Where and with which seed each start of a run begins, and after which ends another may follow."""

from __future__ import annotations

from typing import Any

import numpy as np

from mmes.base import randomness
from mmes.base.arrays import Vector
from mmes.base.randomness import Stream
from mmes.base.reasons import StopReason
from mmes.spaces.manifolds import Manifold
from mmes.spaces.space import Space

# A start that ends for one of these reasons has done what it could; another one may do better.
RESTARTABLE = (
    StopReason.CONVERGED_X,
    StopReason.CONVERGED_F,
    StopReason.FLAT,
    StopReason.STAGNATED,
    StopReason.SIGMA_TOO_SMALL,
    StopReason.INFEASIBLE,
)

DOUBLINGS = 1
"""How often the population is doubled at a restart."""


def start_seed(seed: int, start: int) -> int:
    """Return the seed of a start: that of the run first, an independent one at each restart."""
    return seed if start == 0 else randomness.child_seed(seed, start)


def uniform_start(lower: Vector, upper: Vector, seed: int, start: int = 0) -> Vector:
    """Return a start point uniform in a box, from the seed and the number of the start."""
    u = randomness.uniforms(lower.size, seed, Stream.START_POINT, start)
    return np.clip(lower + u * (upper - lower), lower, upper)


def start_point(space: Space, seed: int, start: int) -> Vector:
    """Return the start point of a start.

    The first start begins at x0 if it was given. All others begin uniformly in the box if it is
    finite; otherwise normally distributed around x0 with standard deviation sigma0 times the scale,
    moved into the box. On a manifold they begin at a random point.
    """
    x0, box, manifold = space.x0, space.box, space.manifold
    if start == 0 and x0 is not None:
        return x0
    if manifold is not None:
        return random_point(manifold, seed, start)
    if box is not None and all(np.isfinite(side).all() for side in box):
        return uniform_start(*box, seed, start)
    if x0 is None:
        raise ValueError("x0 is needed, unless all variables have finite lower and upper bounds")
    step = space.reach * randomness.normals(x0.size, seed, Stream.START_POINT, start)
    point = x0 + step
    return point if box is None else np.clip(point, *box)


def random_point(manifold: Manifold, seed: int, start: int = 0) -> Vector:
    """Return the random start point on a manifold, from the seed and the number of the start."""
    return manifold.random_point(_StartNormals(seed, start))


class _StartNormals:
    """Normal numbers at the address of a start point, with the interface of a generator."""

    def __init__(self, seed: int, start: int):
        self._address = seed, Stream.START_POINT, start

    def standard_normal(self, size: Any = None, /) -> Vector:
        normals = randomness.normals(int(np.prod(size)), *self._address)
        return normals.astype(np.float64).reshape(size)
