"""A kernel on a manifold: flat steps from an inner kernel, bent onto the space they belong to.

MMES talks to a kernel in flat vectors of length N; this one takes them for points and tangents of
a manifold, written out entry by entry. Nothing else of a generation changes, so that there is one
MMES for all spaces.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmes.kernels.host import HostVectors
from mmes.kernels.protocol import Kernel, RecombineCall, SampleCall, ScaleCall
from mmes.manifolds.protocol import Array, Manifold


class ManifoldKernel(HostVectors):
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
        super().__init__()
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

    def sample(self, call: SampleCall) -> None:
        """Fill the population with the retractions of the steps sigma z, projected at the mean.

        Projection is linear: one of the whole mixture carries the archive rows in it, which are
        tangents at earlier means, to this mean, and makes the ambient Gaussian isotropic there.
        """
        if call.box is not None:
            raise ValueError(f"bounds cannot be combined with {self.manifold}")
        count, n = call.population.shape
        steps = self.population(count, n)
        self.inner.sample(call._replace(population=steps, mean=self.vector(n)))
        point = self._shaped(call.mean)
        self._tangents = self.manifold.proj(point, self._shaped(steps))
        self._shaped(call.population)[:] = self.manifold.retract(point, self._tangents)

    def recombine(self, call: RecombineCall) -> None:
        """Move the mean along the weighted tangents of the parents, and the path with it."""
        path, mean = self._shaped(call.path), self._shaped(call.mean)
        old = mean.copy()
        chosen = self._tangents[call.parents]
        weights = call.weights.reshape(-1, *(1,) * (chosen.ndim - 1))
        step = np.add.reduce(weights * chosen, axis=0)
        new = self.manifold.retract_mean(old, step)
        path[:] = self.manifold.transport(old, new, call.decay * path + call.gain * step)
        mean[:] = new
        if call.archive_row is not None:
            call.archive_row[:] = call.path

    def adapt_scale(self, call: ScaleCall) -> None:
        """Refuse: a manifold's coordinates have no scales of their own."""
        raise ValueError(f"scaling='adaptive' cannot be combined with {self.manifold}")

    def _shaped(self, flat: Array) -> Array:
        """Return the same memory as arrays of the manifold's shape."""
        return flat.reshape(*flat.shape[:-1], *self.manifold.shape)
