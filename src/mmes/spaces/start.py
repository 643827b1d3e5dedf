"""Checking what a search starts from: start point, mutation strength and scales."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mmes.base.arrays import Vector
from mmes.base.options import as_float, is_real
from mmes.spaces.bounds import LARGEST, SMALLEST_STEP, first_of, real_array

# Where bounds are all there is to tell the size of a step: the share of the box that the paper's
# experiments use.
SIGMA_SHARE_OF_BOX = 0.3

# Kernels keep scaled directions in single precision, and scale them again.
LARGEST_SCALE = 1e15


def size_of_box(lower: Vector, upper: Vector) -> tuple[float, Vector | None]:
    """Return the mutation strength, and the scales, with which a search of a box begins.

    The first step of each variable is 0.3 of the width there. The mutation strength is that of the
    geometric mean of the widths; where they differ, one scale per variable does the rest.
    """
    width = upper - lower
    if not (width > 0).any():
        raise ValueError(
            "all variables are fixed, as their lower and upper bounds are equal: nothing is left "
            "to search"
        )
    typical = float(np.exp(np.log(width[width > 0]).mean()))
    even = np.all(width == width[0])
    scale = None if even else np.where(width > 0, width / typical, 1.0)
    return checked_steps(SIGMA_SHARE_OF_BOX * typical, scale, width.size)


def claimed_size(x0: Any) -> int:
    """Return how many variables a start point seems to have (at least 1), before it is checked."""
    try:
        return max(int(np.size(x0)), 1)
    except ValueError:  # a ragged list, which `checked_point` will refuse
        return 1


def checked_point(x0: Any, name: str = "x0") -> Vector:
    """Return a private float64 copy of a start point: one-dimensional, not empty, finite."""
    array = real_array(x0, name)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, one entry per variable, not of shape {array.shape}"
        )
    if array.size == 0:
        raise ValueError(f"{name} is empty; at least one variable is needed")
    copy = np.array(array, dtype=np.float64)
    if (at := first_of(~np.isfinite(copy))) is not None:
        raise ValueError(f"{name} must be finite, but {name}[{at}] is {copy[at]}")
    if (at := first_of(np.abs(copy) > LARGEST)) is not None:
        raise ValueError(f"{name} must lie within ±{LARGEST:g}, but {name}[{at}] is {copy[at]}")
    return copy


def checked_sigma(sigma0: Any) -> float:
    """Return the start mutation strength: a finite number above 0."""
    if not is_real(sigma0):
        kind = type(sigma0).__name__
        several = hasattr(sigma0, "__len__") and not isinstance(sigma0, str | bytes)
        hint = "; one size per variable goes into scale=" if several else ""
        raise TypeError(f"sigma0 must be a finite number > 0, not {sigma0!r} (a {kind}){hint}")
    sigma = as_float(sigma0)
    if not (math.isfinite(sigma) and sigma > 0):
        raise ValueError(f"sigma0 must be a finite number > 0, not {sigma0!r}")
    if not SMALLEST_STEP <= sigma <= LARGEST:
        raise ValueError(f"sigma0 must lie in {SMALLEST_STEP:g}..{LARGEST:g}, not {sigma0!r}")
    return sigma


def checked_steps(sigma0: Any, scale: Any, n: int) -> tuple[float, Vector | None]:
    """Return the start mutation strength and one scale per variable, or None if none were given.

    Scales that are all very large or very small leave their common size to sigma: as a power of
    two, so that no step changes.
    """
    sizes = checked_scale(scale, n)
    sigma = checked_sigma(sigma0)
    if sizes is None:
        return sigma, None
    low, high = float(sizes.min()), float(sizes.max())
    common = 1.0
    if low < 1 / LARGEST_SCALE or high > LARGEST_SCALE:
        if math.log10(high) - math.log10(low) > 2 * math.log10(LARGEST_SCALE):
            raise ValueError(
                "the entries of scale must not differ by more than a factor of "
                f"{LARGEST_SCALE**2:g}, but range from {low} to {high}"
            )
        common = 2.0 ** int((math.log2(low) + math.log2(high)) / 2)
    if not SMALLEST_STEP <= sigma * common <= LARGEST or sigma * high > LARGEST:
        raise ValueError(
            f"sigma0 * scale must lie in {SMALLEST_STEP:g}..{LARGEST:g}, but sigma0 is {sigma} "
            f"and scale ranges from {low} to {high}"
        )
    return sigma * common, sizes / common


def checked_scale(scale: Any, n: int) -> Vector | None:
    """Return one positive scale per variable, or None if none were given."""
    if scale is None:
        return None
    array = np.array(real_array(scale, "scale"), dtype=np.float64)
    if array.shape != (n,):
        raise ValueError(f"scale must have one entry per variable, shape ({n},), not {array.shape}")
    if (at := first_of(~(np.isfinite(array) & (array > 0)))) is not None:
        raise ValueError(f"scale must be finite and > 0, but scale[{at}] is {array[at]}")
    return array
