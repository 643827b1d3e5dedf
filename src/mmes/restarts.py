"""The restart policy of the paper: a new start point, population size and damping doubled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes import randomness
from mmes.manifolds import Manifold
from mmes.randomness import Stream
from mmes.stopping import StopReason

# A start that ends for one of these reasons has done what it could; another one may do better.
RESTARTABLE = (
    StopReason.CONVERGED_X,
    StopReason.CONVERGED_F,
    StopReason.FLAT,
    StopReason.STAGNATED,
    StopReason.SIGMA_TOO_SMALL,
)


def start_seed(seed: int, start: int) -> int:
    """Return the seed of a start: the run's own first, an independent one at each restart."""
    return seed if start == 0 else randomness.child_seed(seed, start)


def start_point(
    x0: NDArray[np.float64] | None,
    reach: NDArray[np.float64] | float,
    box: tuple[NDArray[np.float64], NDArray[np.float64]] | None,
    seed: int,
    start: int,
    manifold: Manifold | None = None,
) -> NDArray[np.float64]:
    """Return where a start begins.

    The first begins at x0 where one was given. All others begin uniformly in the box where it is
    finite; where it is not, normally distributed around x0 with standard deviation `reach` (sigma0
    times the scale), brought into the box. On a manifold they begin at a random point.
    """
    if start == 0 and x0 is not None:
        return x0
    if manifold is not None:
        return manifold.random_point(_StartNormals(seed, start))
    if box is not None and all(np.isfinite(side).all() for side in box):
        lower, upper = box
        u = randomness.uniforms(lower.size, seed, Stream.START_POINT, start)
        return np.clip(lower + u * (upper - lower), lower, upper)
    if x0 is None:
        raise ValueError(
            "x0 is needed, unless bounds that are finite on all sides tell where to start"
        )
    step = reach * randomness.normals(x0.size, seed, Stream.START_POINT, start)
    point = x0 + step
    return point if box is None else np.clip(point, *box)


class _StartNormals:
    """The normal numbers at the address of a start point, as a manifold asks for them."""

    def __init__(self, seed: int, start: int):
        self._address = seed, Stream.START_POINT, start

    def standard_normal(self, size: Any = None, /) -> NDArray[np.float64]:
        normals = randomness.normals(int(np.prod(size)), *self._address)
        return normals.astype(np.float64).reshape(size)


def restart_options(options: dict[str, Any], population_size: int, start: int) -> dict[str, Any]:
    """Return the options of a start: lambda and the damping doubled at every restart.

    `population_size` is that of the first start.
    """
    if start == 0:
        return options
    grown = options | {"population_size": population_size * 2**start}
    if "damping" in options:
        grown["damping"] = options["damping"] * 2**start
    return grown
