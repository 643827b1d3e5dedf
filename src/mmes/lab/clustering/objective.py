"""The objective of sparse spectral clustering, evaluated on a whole population at once."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

# Entries of U U' held at a time: enough to keep numpy busy, few enough for a cache and for memory.
BLOCK_ENTRIES = 1 << 17
_scratch = threading.local()


def _buffer(*shape: int) -> Array:
    """Return an array whose memory this thread's next call uses again.

    Memory of this size is returned to the operating system when freed, and new pages cost several
    times as much as the computation in them.
    """
    size = int(np.prod(shape))
    held: Array = getattr(_scratch, "held", np.empty(0))
    if held.size < size:
        held = _scratch.held = np.empty(size)
    return held[:size].reshape(shape)


class SparseSpectralObjective:
    """f(U) = Tr(U' L U) + beta * sum_ij |(U U')_ij| for matrices U with orthonormal columns.

    L is symmetric, and beta, at least 0, is the weight of the sparsity of U U'. The value depends
    only on the span of the columns. Calling the object costs about N_s^2 N_c multiply-adds per
    candidate.
    """

    def __init__(self, laplacian: ArrayLike, beta: float) -> None:
        matrix = np.array(laplacian, dtype=np.float64, order="C")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"laplacian must be a square matrix, not of shape {matrix.shape}")
        if not np.isfinite(matrix).all():
            raise ValueError("laplacian has an entry that is not finite")
        if not (np.isfinite(beta) and beta >= 0.0):
            raise ValueError(f"beta is {beta!r}; it must be a finite number >= 0")
        self.laplacian: Array = matrix
        self.beta = float(beta)

    def __call__(self, bases: ArrayLike) -> float | Array:
        """Return f of one basis (N_s, N_c), or the values of a batch (..., N_s, N_c) of them."""
        array = np.asarray(bases, dtype=np.float64)
        rows = len(self.laplacian)
        if array.ndim < 2 or array.shape[-2] != rows:
            raise ValueError(
                f"a basis must have {rows} rows, one for each sample; "
                f"the array given has shape {array.shape}"
            )
        values = self._evaluate(array.reshape(-1, rows, array.shape[-1]))
        return float(values[0]) if array.ndim == 2 else values.reshape(array.shape[:-2])

    def _evaluate(self, bases: Array) -> Array:
        """Return the values of a (count, N_s, N_c) batch, a block of U U' at a time."""
        count, rows, _ = bases.shape
        values = np.zeros(count)
        candidates = max(1, BLOCK_ENTRIES // rows**2)
        height = rows if candidates > 1 else max(1, BLOCK_ENTRIES // rows)
        for first in range(0, count, candidates):
            block = bases[first : first + candidates]
            turned = np.ascontiguousarray(np.swapaxes(block, -1, -2))
            for top in range(0, rows, height):
                weights = self.laplacian[top : top + height].reshape(-1, 1)
                part = block[:, top : top + height]
                entries = np.matmul(part, turned, out=_buffer(*part.shape[:2], rows))
                entries = entries.reshape(len(block), 1, -1)
                # As a stack of dot products, so that no value depends on the rest of the batch.
                trace = (entries @ weights)[:, 0, 0]
                np.abs(entries, out=entries)
                sparsity = entries.sum(axis=(1, 2))
                values[first : first + candidates] += trace + self.beta * sparsity
        return values
