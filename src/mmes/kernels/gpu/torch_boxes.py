"""Boxes on a device: bounds as tensors, and the treatments of `mmes.spaces.boxes` on tensors."""
# pyright: reportMissingImports=false

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from mmes.spaces.boxes import Box, BoxCode, Smooth
from mmes.spaces.boxes.reflect import fold


class DeviceBox(NamedTuple):
    """A box whose arrays are tensors."""

    code: BoxCode  # The treatment.
    # lower, upper, knee: in float64, one entry per variable; `knee` is zero except for smooth
    # bounds.
    lower: torch.Tensor
    upper: torch.Tensor
    knee: torch.Tensor
    # lowest, highest: the outermost points of the box that the population's precision can write.
    lowest: torch.Tensor
    highest: torch.Tensor

    @classmethod
    def of(cls, box: Box, device: torch.device, dtype: torch.dtype) -> DeviceBox:
        """Return the box on a device, for a population of this precision."""
        knee = box.knee if isinstance(box, Smooth) else np.zeros_like(box.lower)
        sides = box.lower, box.upper
        if dtype is torch.float32:
            sides = inside_float32(*sides)
        tensors = [
            torch.tensor(array, device=device) for array in (box.lower, box.upper, knee, *sides)
        ]
        return cls(box.code, *tensors)

    def part(self, first: int, last: int) -> DeviceBox:
        """Return the box of a span of the variables."""
        return DeviceBox(self.code, *(side[first:last] for side in self[1:]))

    def map_points(self, points: torch.Tensor) -> torch.Tensor:
        """Return the points of the box that stand for points of the search."""
        if self.code is BoxCode.CLIP:
            return self._clamped(points)
        lower, upper = self.lower, self.upper
        wide = points.to(torch.float64)
        if self.code is BoxCode.REFLECT:
            inside = (wide >= lower) & (wide <= upper)
            return self._clamped(torch.where(inside, wide, fold(wide, lower, upper, torch)))
        a = self.knee
        y = fold(wide, lower - a, upper + a, torch)
        quarter = torch.where(a > 0, 0.25 / torch.where(a > 0, a, 1.0), 0.0)
        from_lower, from_upper = y - (lower - a), (upper + a) - y
        x = torch.where(from_lower < 2.0 * a, lower + quarter * from_lower**2, y)
        x = torch.where(from_upper < 2.0 * a, upper - quarter * from_upper**2, x)
        return self._clamped(x)

    def _clamped(self, points: torch.Tensor) -> torch.Tensor:
        rounded = points.to(self.lowest.dtype)
        return torch.minimum(torch.maximum(rounded, self.lowest), self.highest)


def inside_float32(
    lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the outermost float32 numbers inside the bounds.

    Where there is none, as for a variable fixed at 0.1, the nearest one stands for both.
    """
    with np.errstate(over="ignore"):
        low, high = lower.astype(np.float32), upper.astype(np.float32)
    low = np.where(low < lower, np.nextafter(low, np.float32(np.inf)), low)
    high = np.where(high > upper, np.nextafter(high, np.float32(-np.inf)), high)
    nearest = lower.astype(np.float32)
    between = low <= high
    return np.where(between, low, nearest), np.where(between, high, nearest)
