"""A kernel on a manifold: flat steps from an inner kernel, bent onto the space they belong to.

MMES talks to a kernel in flat vectors of length N; this one takes them for points and tangents of
a manifold, written out entry by entry. Nothing else of a generation changes, so that there is one
MMES for all spaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmes.manifolds.protocol import Array, Manifold

if TYPE_CHECKING:
    from mmes.kernels import Box, Kernel, Noise, StepLaw


class ManifoldKernel:
    """A `Kernel` whose vectors are points and tangents of a manifold.

    Parameters
    ----------
    inner : Kernel
        Draws the flat steps.
    manifold : Manifold
        The space.

    Notes
    -----
    The tangents of the last sampled generation are kept, because a point of some manifolds does not
    tell the step that led to it. `recombine` follows `sample` within a generation, so they are
    always those of the parents.
    """

    def __init__(self, inner: Kernel, manifold: Manifold) -> None:
        self.inner = inner
        self.manifold = manifold
        self._tangents: Array = np.empty((0, *manifold.shape))

    @property
    def name(self) -> str:
        """For people: which kernel this is, and where it works."""
        return f"{self.inner.name} on {self.manifold}"

    def normals(self, count: int, seed: int, stream: int, generation: int) -> NDArray[np.float32]:
        """See `Kernel.normals`."""
        return self.inner.normals(count, seed, stream, generation)

    def mixture_draws(
        self, cumulative: Array, draws: int, used: int, seed: int, generation: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """See `Kernel.mixture_draws`."""
        return self.inner.mixture_draws(cumulative, draws, used, seed, generation)

    def sample(
        self,
        population: Array,
        draws: int,
        mean: Array,
        sigma: float,
        archive: NDArray[np.float32] | None,
        law: StepLaw,
        box: Box | None,
        seed: int,
        generation: int,
    ) -> None:
        """Fill the population with the retractions of the steps sigma z, projected at the mean.

        Projection is linear: one of the whole mixture carries the archive rows in it, which are
        tangents at earlier means, to this mean, and makes the ambient Gaussian isotropic there.
        """
        if box is not None:
            raise ValueError(f"bounds cannot be combined with {self.manifold}")
        origin = np.zeros_like(mean)
        steps = np.empty_like(population)
        self.inner.sample(steps, draws, origin, sigma, archive, law, None, seed, generation)
        point = self._shaped(mean)
        self._tangents = self.manifold.proj(point, self._shaped(steps))
        self._shaped(population)[:] = self.manifold.retract(point, self._tangents)

    def recombine(
        self,
        population: Array,
        parents: NDArray[np.int64],
        weights: Array,
        mean: Array,
        path: Array,
        decay: float,
        gain: float,
        archive_row: NDArray[np.float32] | None,
    ) -> None:
        """Move the mean along the weighted tangents of the parents, and the path with it."""
        del population
        old = self._shaped(mean).copy()
        step = np.tensordot(weights, self._tangents[parents], axes=1)
        new = self.manifold.retract_mean(old, step)
        moved = decay * self._shaped(path) + gain * step
        self._shaped(path)[:] = self.manifold.transport(old, new, moved)
        self._shaped(mean)[:] = new
        if archive_row is not None:
            archive_row[:] = path

    def adapt_scale(
        self, scale: Array, weights: Array, rate: float, noise: Noise, seed: int, generation: int
    ) -> None:
        """Refuse: a manifold's coordinates have no scales of their own."""
        raise ValueError(f"scaling='adaptive' cannot be combined with {self.manifold}")

    def _shaped(self, flat: Array) -> Array:
        """Return the same memory as arrays of the manifold's shape."""
        return flat.reshape(*flat.shape[:-1], *self.manifold.shape)
