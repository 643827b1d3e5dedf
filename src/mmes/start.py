"""Checking what a search starts from: start point, mutation strength, scales and bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.options import as_float, is_real
from mmes.base.tensors import device_of, hosted
from mmes.kernels import DEVICE_KERNELS
from mmes.manifolds import Manifold

Vector = NDArray[np.float64]

# Where bounds are all there is to tell the size of a step: the share of the box that the paper's
# experiments use.
SIGMA_SHARE_OF_BOX = 0.3

# What can be computed with: a run may still grow by 1e20 before it counts as running away, and
# squares of that are still numbers.
LARGEST = 1e100
SMALLEST_STEP = 1e-100
# Kernels keep scaled directions in single precision, and scale them again.
LARGEST_SCALE = 1e15


@dataclass(frozen=True)
class Start:
    """Where and how wide a run begins, checked.

    Attributes
    ----------
    x0 : ndarray or None
        The start point; None to draw it from the box.
    sigma0 : float
        The start mutation strength.
    box : tuple of ndarray or None
        The bounds (lower, upper), one entry per variable each.
    scale : ndarray or None
        The typical size of each variable.
    """

    x0: Vector | None
    sigma0: float
    box: tuple[Vector, Vector] | None
    scale: Vector | None

    @property
    def reach(self) -> Vector | float:
        """The standard deviation of the first step, by variable."""
        return self.sigma0 if self.scale is None else self.sigma0 * self.scale


def checked_start(
    x0: Any, sigma0: Any, bounds: Any, scale: Any, manifold: Manifold | None = None
) -> Start:
    """Return the start of a run; what was left out follows from finite bounds, or is an error."""
    if manifold is not None:
        if sigma0 is None:
            raise ValueError("sigma0 is needed; 1 suits a random start on most manifolds")
        point = None if x0 is None else manifold.point(x0, "x0")
        return Start(point, checked_sigma(sigma0), None, None)
    point = None if x0 is None else checked_point(x0)
    box = checked_bounds(bounds, None if point is None else point.size)
    finite = box is not None and all(np.isfinite(side).all() for side in box)
    if point is not None and box is not None:
        checked_inside(point, *box)
    if point is None and not finite:
        raise ValueError(
            "x0 is needed, unless bounds that are finite on all sides tell where to start"
        )
    n = point.size if point is not None else box[0].size  # type: ignore[index]
    if sigma0 is not None:
        sigma, sizes = checked_steps(sigma0, scale, n)
        return Start(point, sigma, box, sizes)
    if box is None or not finite or scale is not None:
        raise ValueError(
            "sigma0 is needed, unless finite bounds without a scale tell the size of the box; take "
            "about a third of the distance from x0, along a typical variable, within which the "
            "optimum is expected"
        )
    sigma, sizes = size_of_box(*box)
    return Start(point, sigma, box, sizes)


def size_of_box(lower: Vector, upper: Vector) -> tuple[float, Vector | None]:
    """Return the mutation strength, and the scales, with which a search of a box begins.

    The first step of each variable is 0.3 of the width there. The mutation strength is that of the
    geometric mean of the widths; where they differ, one scale per variable does the rest.
    """
    width = upper - lower
    if not (width > 0).any():
        raise ValueError("sigma0 is needed: the box has no width to take it from")
    typical = float(np.exp(np.log(width[width > 0]).mean()))
    even = np.all(width == width[0])
    scale = None if even else np.where(width > 0, width / typical, 1.0)
    return checked_steps(SIGMA_SHARE_OF_BOX * typical, scale, width.size)


def started_from(x0: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a start point in the host's memory, and the options with the device it came from."""
    there, kernel, found = device_of(x0), options.get("kernel"), {}
    device = options.get("device")
    if device is None:
        device = "cpu" if there is None and kernel in list(DEVICE_KERNELS) else there
    if device is None:
        return x0, options
    if there is not None and str(x0.dtype) in ("torch.float32", "torch.float64"):
        found["population_dtype"] = str(x0.dtype).removeprefix("torch.")
    named = str(device) if hasattr(device, "type") else device  # a torch.device
    return hosted(x0), found | options | {"device": named}


def check_workers(workers: Any, own: bool, device: str | None) -> None:
    """Raise ValueError if points on a device would have to travel to workers."""
    if device is not None and workers is not None and not own:
        raise ValueError(
            f"workers={workers!r} cannot be combined with device={device!r}: the candidates are "
            "made there and evaluated there; vectorized=True takes them all at once"
        )


def check_able(on_host: bool, strategy: str, manifold: Manifold | None, device: str) -> None:
    """Raise ValueError if a search cannot live on a device."""
    if manifold is not None:
        raise ValueError(f"device={device!r} cannot be combined with a manifold, here {manifold}")
    if on_host:
        raise ValueError(
            f"the strategy {strategy!r} works on numpy arrays and cannot live on a device, here "
            f"device={device!r}"
        )


def claimed_size(x0: Any) -> int:
    """Return how many variables a start point seems to have (at least 1), before it is checked."""
    try:
        return max(int(np.size(x0)), 1)
    except ValueError:  # a ragged list, which `checked_point` will refuse
        return 1


def checked_point(x0: Any, name: str = "x0") -> Vector:
    """Return a private float64 copy of a start point: one-dimensional, not empty, finite."""
    array = _real_array(x0, name)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, one entry per variable, not of shape {array.shape}"
        )
    if array.size == 0:
        raise ValueError(f"{name} is empty; at least one variable is needed")
    copy = np.array(array, dtype=np.float64)
    bad = ~np.isfinite(copy)
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(f"{name} must be finite, but {name}[{at}] is {copy[at]}")
    far = np.abs(copy) > LARGEST
    if far.any():
        at = int(far.argmax())
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
                f"the entries of scale must not differ by more than a factor of "
                f"{LARGEST_SCALE**2:g}, but reach from {low} to {high}"
            )
        common = 2.0 ** int((math.log2(low) + math.log2(high)) / 2)
    if not SMALLEST_STEP <= sigma * common <= LARGEST or sigma * high > LARGEST:
        raise ValueError(
            f"sigma0 * scale must lie in {SMALLEST_STEP:g}..{LARGEST:g}, but sigma0 is {sigma} and "
            f"scale reaches from {low} to {high}"
        )
    return sigma * common, sizes / common


def checked_scale(scale: Any, n: int) -> Vector | None:
    """Return one positive scale per variable, or None if none were given."""
    if scale is None:
        return None
    array = np.array(_real_array(scale, "scale"), dtype=np.float64)
    if array.shape != (n,):
        raise ValueError(f"scale must have one entry per variable, shape ({n},), not {array.shape}")
    bad = ~(np.isfinite(array) & (array > 0))
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(f"scale must be finite and > 0, but scale[{at}] is {array[at]}")
    return array


def checked_bounds(bounds: Any, n: int | None) -> tuple[Vector, Vector] | None:
    """Return (lower, upper), one entry per variable each, or None if there are no bounds.

    Taken are a tuple (lower, upper) of numbers or arrays, n pairs (low, high) where None stands for
    no bound, and an object with attributes `lb` and `ub` such as SciPy's Bounds. Infinite entries
    mean no bound. A tuple of two pairs for two variables is read as pairs, in SciPy's manner,
    unless only (lower, upper) gives a box with some width.

    Parameters
    ----------
    bounds : object
        What the user gave.
    n : int or None
        Number of variables; None takes it from the bounds themselves.
    """
    if bounds is None:
        return None
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        bounds = (bounds.lb, bounds.ub)
    if isinstance(bounds, tuple) and len(bounds) == 2 and not _two_pairs(bounds, n):
        sides = [_side(bounds[0], -np.inf), _side(bounds[1], np.inf)]
    else:
        try:
            pairs = [(low, high) for low, high in bounds]
        except (TypeError, ValueError):
            raise ValueError(
                "bounds must be a tuple (lower, upper), or a list of one pair (low, high) a "
                f"variable, not {_short(bounds)}"
            ) from None
        sides = [
            _side([pair[0] for pair in pairs], -np.inf),
            _side([pair[1] for pair in pairs], np.inf),
        ]
    if any(side.size == 0 for side in sides):
        raise ValueError(
            "bounds are empty; they must be a tuple (lower, upper), or a list of one pair "
            "(low, high) a variable"
        )
    if n is None:
        n = max(side.size for side in sides)
        if all(side.ndim == 0 for side in sides):
            raise ValueError(
                "without x0 the bounds must tell the number of variables: give an array for a side"
            )
    for side, word in zip(sides, ("lower", "upper"), strict=True):
        if side.ndim > 1 or (side.ndim == 1 and side.size != n):
            raise ValueError(
                f"the {word} bounds must be one number or {n} of them, one per variable, "
                f"not of shape {side.shape}"
            )
    lower, upper = (np.ascontiguousarray(np.broadcast_to(side, (n,))) for side in sides)
    bad = ~(lower <= upper)  # also true for NaN
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(
            "a lower bound must not exceed the upper one, "
            f"but variable {at} has [{lower[at]}, {upper[at]}]"
        )
    for side, word in ((lower, "lower"), (-upper, "upper")):
        far = side > LARGEST
        if far.any():
            raise ValueError(f"{word} bound {int(far.argmax())} is beyond ±{LARGEST:g}")
    narrow = (lower < upper) & (upper - lower < SMALLEST_STEP)
    if narrow.any():
        at = int(narrow.argmax())
        raise ValueError(
            f"bounds must be equal or at least {SMALLEST_STEP:g} apart, but variable {at} has "
            f"[{lower[at]}, {upper[at]}]"
        )
    # A bound that no candidate can reach is none.
    return np.where(lower < -LARGEST, -np.inf, lower), np.where(upper > LARGEST, np.inf, upper)


def checked_box(bounds: Any, n: int | None, who: str) -> tuple[Vector, Vector]:
    """Return copies of (lower, upper) for an algorithm that needs a box, finite on all sides."""
    box = checked_bounds(bounds, n)
    if box is None:
        raise ValueError(f"{who} searches a box: give bounds=(lower, upper), finite on all sides")
    lower, upper = (np.array(side) for side in box)
    bad = ~(np.isfinite(lower) & np.isfinite(upper))
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(
            f"{who} searches a box: the bounds must be finite on all sides and at most "
            f"{LARGEST:g} in size, but variable {at} has [{lower[at]}, {upper[at]}]"
        )
    return lower, upper


def _two_pairs(bounds: tuple[Any, Any], n: int | None) -> bool:
    """Return whether a tuple that could be (lower, upper) is rather one pair per variable."""
    listed = all(isinstance(side, list | tuple) and len(side) == 2 for side in bounds)
    if not listed or n not in (None, 2):
        return False
    try:
        first, second = ([_side(row[0], -np.inf), _side(row[1], np.inf)] for row in bounds)
        across = [
            (_side(low, -np.inf), _side(high, np.inf)) for low, high in zip(*bounds, strict=True)
        ]
    except TypeError:  # no numbers: the message comes later
        return False
    pairs_fit = all((low <= high).all() for low, high in (first, second))
    pairs_wide = all((low < high).all() for low, high in (first, second))
    sides_wide = all((low < high).all() for low, high in across)
    return pairs_fit and (pairs_wide or not sides_wide)


def checked_inside(x: Vector, lower: Vector, upper: Vector, name: str = "x0") -> None:
    """Raise ValueError if a start point lies outside the box."""
    outside = (x < lower) | (x > upper)
    if outside.any():
        at = int(outside.argmax())
        raise ValueError(
            f"{name} must lie inside the bounds, but {name}[{at}] = {x[at]} "
            f"is outside [{lower[at]}, {upper[at]}]"
        )


def checked_manifold(
    manifold: Manifold | None, strategy: str, able: bool, bounds: Any, scale: Any
) -> Manifold | None:
    """Return the manifold, once it is clear that the strategy can search it."""
    if manifold is None:
        return None
    if not isinstance(manifold, Manifold):
        raise TypeError(f"manifold must be one of mmes.manifolds, not {_short(manifold)}")
    if not able:
        raise ValueError(f"the strategy {strategy!r} does not search manifolds; 'mmes' does")
    for name, value in (("bounds", bounds), ("scale", scale)):
        if value is not None:
            raise ValueError(f"{name} cannot be combined with a manifold, here {manifold}")
    return manifold


def _side(values: Any, missing: float) -> Vector:
    if values is None:
        values = missing
    elif isinstance(values, list | tuple):
        values = [missing if value is None else value for value in values]
    # A copy: the user's own may change, and one that maps a checkpoint would keep the file.
    return np.array(_real_array(values, "bounds"), dtype=np.float64)


def _real_array(values: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(hosted(values))
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold real numbers, not {_short(values)}")
    return array


def _short(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} (a {type(value).__name__})"
