"""A kernel on a manifold: flat steps from an inner kernel, projected onto the manifold.

MMES passes flat vectors of length N to a kernel; this one interprets them as points and tangents of
a manifold. Nothing else in a generation changes, so that one MMES works on all spaces.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmes.kernels.host import HostVectors
from mmes.kernels.protocol import Kernel, RecombineCall, SampleCall, ScaleCall
from mmes.spaces.manifolds.protocol import Array, Manifold

# Numbers of a block of points that are projected and retracted together.
_BLOCK = 2**18
# Vectors that the linear algebra of one point takes for itself.
_TEMPORARY = 12


def rows_at_a_time(n: int) -> int:
    """Return how many points of n entries are processed together."""
    return max(_BLOCK // n, 1)


def planned_bytes(population_size: int, n: int) -> int:
    """Return the additional memory of a generation compared with a flat search."""
    return 8 * n * (population_size + _TEMPORARY * min(rows_at_a_time(n), population_size))


class ManifoldKernel(HostVectors):
    """A `Kernel` whose vectors are points and tangents of a manifold; `inner` draws the flat steps.

    The tangents of the last sampled generation are kept, because on some manifolds a point does not
    determine the step that led to it. `recombine` follows `sample` within a generation, so they are
    always those of the parents.
    """

    def __init__(self, inner: Kernel, manifold: Manifold) -> None:
        super().__init__()
        self.inner = inner
        self.manifold = manifold
        self.tangents: Array = np.empty((0, *manifold.shape))

    @property
    def name(self) -> str:
        """The name of the kernel and its manifold, for display."""
        return f"{self.inner.name} on {self.manifold}"

    def normals(self, count: int, seed: int, stream: int, generation: int) -> NDArray[np.float32]:
        """See `Kernel.normals`."""
        return self.inner.normals(count, seed, stream, generation)

    def sample(self, call: SampleCall) -> None:
        """Fill the population with the retractions of the steps sigma z, projected at the mean.

        Projection is linear: one projection of the whole mixture also transports its archive rows,
        which are tangents at earlier means, to this mean, and makes the ambient Gaussian isotropic
        there.
        """
        if call.box is not None:
            raise ValueError(f"bounds cannot be combined with {self.manifold}")
        count, n = call.population.shape
        if self.tangents.shape[0] != count:
            self.tangents = np.empty((count, *self.manifold.shape))
        flat = self.tangents.reshape(count, n)
        self.inner.sample(call._replace(population=flat, mean=self.vector(n)))
        point, images = self._shaped(call.mean), self._shaped(call.population)
        # A few rows at a time: projections and retractions need several times their memory.
        rows = rows_at_a_time(n)
        for first in range(0, count, rows):
            part = self.tangents[first : first + rows]
            part[:] = self.manifold.proj(point, part)
            images[first : first + rows] = self.manifold.retract(point, part)

    def recombine(self, call: RecombineCall) -> None:
        """Move the mean along the weighted tangents of the parents, and the path with it."""
        path, mean = self._shaped(call.path), self._shaped(call.mean)
        old = mean.copy()
        step = np.zeros(self.manifold.shape)
        for parent, weight in zip(call.parents, call.weights, strict=True):
            step += weight * self.tangents[parent]
        new = self.manifold.retract_mean(old, step)
        path[:] = self.manifold.transport(old, new, call.decay * path + call.gain * step)
        mean[:] = new
        if call.archive_row is not None:
            call.archive_row[:] = call.path

    def sample_and_recombine(self, sampling: SampleCall, step: RecombineCall) -> None:
        """Refuse: the tangents of a whole generation must be stored."""
        raise ValueError(f"a search on {self.manifold} must store its population")

    def adapt_scale(self, call: ScaleCall) -> float:
        """Refuse: the coordinates of a manifold have no scales."""
        raise ValueError(f"scaling='adaptive' cannot be combined with {self.manifold}")

    def _shaped(self, flat: Array) -> Array:
        """Return the same memory as arrays of the manifold's shape."""
        return flat.reshape(*flat.shape[:-1], *self.manifold.shape)
