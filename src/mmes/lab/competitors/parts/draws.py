"""Random numbers of the competitors, each at its address: (seed, stream, step, part)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmes.base import randomness

try:
    import mmes.kernels._native as _native
except ImportError:  # choose_kernel says why
    _native = None

Vector = NDArray[np.float64]
Indices = NDArray[np.int64]


class Draws:
    """Uniform and normal numbers by address.

    An algorithm counts its steps (generations, children, local steps) and uses a stream once per
    step; `part` distinguishes further draws of the same kind within a step. `simd` is the SIMD
    level of the compiled kernel; None computes with numpy alone: uniform numbers are the same to
    the bit, normal ones to float32 rounding.
    """

    def __init__(self, seed: int, simd: str | None = None):
        self._seed = seed
        self._level = None if simd is None or _native is None else _native.Level(simd)

    def uniforms(self, count: int, stream: int, step: int, part: int = 0) -> Vector:
        """Return uniform numbers in (0, 1)."""
        if self._level is None or _native is None:
            return randomness.uniforms(count, self._seed, stream, step, part)
        numbers = np.empty(count)
        _native.uniforms(self._level, numbers, self._seed, stream, step, part)
        return numbers

    def normals(self, count: int, stream: int, step: int, part: int = 0) -> Vector:
        """Return standard normal numbers."""
        if self._level is None or _native is None:
            found = randomness.normals(count, self._seed, stream, step, part)
        else:
            found = np.empty(count, dtype=np.float32)
            _native.normals(self._level, found, self._seed, stream, step, part)
        return found.astype(np.float64)

    def cauchys(self, count: int, stream: int, step: int, part: int = 0) -> Vector:
        """Return standard Cauchy numbers, each the ratio of two normal ones."""
        above, below = self.normals(2 * count, stream, step, part).reshape(2, count)
        return above / np.where(below == 0.0, 1.0, below)

    def integers(self, below: int, count: int, stream: int, step: int, part: int = 0) -> Indices:
        """Return integers from 0 to below - 1."""
        return (self.uniforms(count, stream, step, part) * below).astype(np.int64)

    def permutation(self, count: int, stream: int, step: int, part: int = 0) -> Indices:
        """Return the numbers 0 to count - 1 in random order."""
        return np.argsort(self.uniforms(count, stream, step, part), kind="stable")
