"""Vectors in host memory: what the reference and the native kernel share.

Every sum over coordinates has a fixed order, so that no result depends on the processor:
element-wise operations use numpy, and the final sum is rounded exactly.
"""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base import memory
from mmes.kernels.protocol import Vector
from mmes.spaces.boxes import Box

# Coordinates that are added up side by side.
_LANES = 512
# Coordinates that are worked on at a time.
_PART = 2**16
# The native kernel writes whole cache lines past the caches where rows begin at one.
_ALIGNMENT = 64
# Populations kept for use again: that of the search and its image in a box.
_KEPT = 2


class HostVectors:
    """Memory and arithmetic of vectors that are numpy arrays; see `Kernel`."""

    device = None
    entry_bytes = vector_bytes = 8

    def __init__(self) -> None:
        self._pool: list[_Block] = []

    def available_bytes(self) -> int:
        """See `Kernel.available_bytes`."""
        return memory.available_bytes()

    def vector(self, n: int) -> Vector:
        """See `Kernel.vector`."""
        return np.zeros(n)

    def directions(self, m: int, n: int, dtype: str = "float32") -> NDArray[np.float32]:
        """See `Kernel.directions`; memory is not touched before it is used."""
        if dtype != "float32":
            raise ValueError(
                f"archive_dtype={dtype!r} needs a device; numpy directions are float32"
            )
        return np.zeros((m, n), dtype=np.float32)

    def population(self, rows: int, n: int) -> Vector:
        """See `Kernel.population`."""
        pool = self._pool
        if pool and (rows > pool[0].shape[0] or n != pool[0].shape[1]):
            pool.clear()  # the population has grown: that memory will not be asked for again
        if pool and rows == 1 < pool[0].shape[0]:
            return aligned((1, n), np.float64)  # a point in passing opens no second population
        for block in pool:
            if block.free:
                return block.lent(rows)
        # As large as the largest so far: what is not used is not touched.
        pool.insert(0, _Block(pool[0].shape if pool else (rows, n)))
        del pool[_KEPT:]
        return pool[0].lent(rows)

    def from_host(self, array: NDArray[Any]) -> Vector:
        """See `Kernel.from_host`."""
        return np.array(array, dtype=np.float64)

    def to_host(self, handle: NDArray[Any]) -> NDArray[Any]:
        """See `Kernel.to_host`."""
        return handle

    def copy(self, vector: Vector) -> Vector:
        """See `Kernel.copy`."""
        return vector.copy()

    def assign(self, target: NDArray[Any], source: NDArray[Any]) -> None:
        """See `Kernel.assign`."""
        target[...] = source

    def row(self, rows: NDArray[Any], index: int) -> NDArray[Any]:
        """See `Kernel.row`."""
        return rows[index]

    def part(self, rows: NDArray[Any], start: int, stop: int | None = None) -> NDArray[Any]:
        """See `Kernel.part`."""
        return rows[start:stop]

    def gathered(self, rows: NDArray[Any], index: NDArray[np.intp]) -> NDArray[Any]:
        """See `Kernel.gathered`."""
        return rows[index]

    def writes(self, rows: NDArray[Any]) -> int:
        """See `Kernel.writes`: none, users see read-only arrays."""
        return 0

    def ranked(self, values: Any, count: int, n: int) -> None:
        """See `Kernel.ranked`; nothing is done ahead."""

    def fetched(self, values: Any) -> Any:
        """See `Kernel.fetched`."""
        return values

    def readonly_view(self, handle: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """See `Kernel.readonly_view`."""
        if handle.shape != shape:
            handle = handle.reshape(shape)
        # Through a read-only buffer: not even setting its flag makes this array writable.
        return np.asarray(memoryview(handle).toreadonly())  # type: ignore[arg-type]

    def dot(self, a: Vector, b: Vector) -> float:
        """See `Kernel.dot`."""
        return ordered_sum(a * b)

    def largest(self, vector: Vector) -> float:
        """See `Kernel.largest`."""
        return max(float(vector.max()), -float(vector.min()))

    def blend(self, target: Vector, decay: float, gain: float, source: Vector) -> None:
        """See `Kernel.blend`."""
        for first in range(0, len(target), _PART):  # no second vector in passing
            part = target[first : first + _PART]
            part *= decay
            part += gain * source[first : first + _PART]

    def multiply(self, target: Vector, factors: Vector) -> None:
        """See `Kernel.multiply`."""
        target *= factors

    def divide(self, target: Vector, divisors: Vector) -> None:
        """See `Kernel.divide`."""
        target /= divisors

    def confine(self, image: Vector, points: Vector, box: Box) -> None:
        """See `Kernel.confine`."""
        image[...] = box.map_points(points)

    def adapt_deviations(
        self, deviations: Vector, rates: tuple[float, float, float], path: Vector, squares: Vector
    ) -> None:
        """See `ReducingKernel.adapt_deviations`."""
        variances = np.square(deviations, out=deviations)
        variances *= rates[0]
        variances += rates[1] * np.square(path)
        variances += rates[2] * squares
        np.sqrt(variances, out=deviations)

    def products(self, vectors: NDArray[np.float32], vector: Vector) -> Vector:
        """See `ReducingKernel.products`."""
        return np.array([ordered_sum(row * vector) for row in vectors])

    def add_rows(self, target: Vector, coefficients: Vector, vectors: NDArray[np.float32]) -> None:
        """See `ReducingKernel.add_rows`."""
        for coefficient, row in zip(coefficients, vectors, strict=True):
            target += coefficient * row


class _Lent(np.ndarray):
    """A population in use.

    Every array that shares its memory refers to this object: numpy skips a base only if the next
    one has the array's type, and this object has another base of its type.
    """


class _Block:
    """Memory of one population, aligned to a cache line; used again when it is free.

    For large n, new pages cost more than sampling into them; but an array that the caller kept, or
    a part of it, must not change.
    """

    def __init__(self, shape: tuple[int, int]):
        self.shape = shape
        self._array = aligned(shape, np.float64).view(_Lent)
        self._user: weakref.ref[Any] | None = None

    @property
    def free(self) -> bool:
        """Whether no array shares this memory any more."""
        return self._user is None or self._user() is None

    def lent(self, rows: int) -> Vector:
        """Return the memory of `rows` rows as a new array."""
        user = self._array[:rows]
        self._user = weakref.ref(user)
        return user.view(np.ndarray)


def aligned(shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
    """Return uninitialized memory for an array, aligned to a cache line."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.empty(size + _ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + size].view(dtype).reshape(shape)


def ordered_sum(terms: Vector) -> float:
    """Return the sum of float64 terms, in the same order on every processor."""
    whole = terms.size // _LANES * _LANES
    if whole <= _LANES:
        return math.fsum(terms)
    lanes = np.add.reduce(terms[:whole].reshape(-1, _LANES), axis=0)
    return math.fsum((*lanes, *terms[whole:]))
