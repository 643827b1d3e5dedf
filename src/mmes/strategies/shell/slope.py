"""Whether a search ends on a slope: how the values within a generation differ.

At a minimum of a smooth function they differ in proportion to the square of the steps, and where
the function has a slope left, or a kink, in proportion to the steps. So a search whose steps became
short before it found the way down, as at the edge of a penalty, is known by the power of the steps
with which the differences fell over three decades. The power does not change with f -> a f + b.
"""

from __future__ import annotations

import math
from array import array
from collections import deque

import numpy as np

from mmes.base.arrays import Arrays
from mmes.strategies.shell.standstill import median

# A note is taken when steps have fallen by this factor; those of three decades are kept.
_FALL = math.sqrt(10)
_KEPT = 7
# The least power at a minimum, that of abs(x)^1.5. At minima of smooth functions it was above that
# nearly always (1.7 to 2.4 in 383 of 420 runs), and where searches were stuck at penalties 0.6 to
# 1.4.
_LEAST_POWER = 1.5
# A second look at the end of a search begins with steps of this share of the longest ones.
_WIDE = 1e-3
# Differences of so many units of the last place are rounding.
_ULPS = 64


class Slope:
    """Takes note of the differences within generations while steps become shorter."""

    longest: float = 0.0
    """The length of the longest steps so far."""

    def __init__(self) -> None:
        self._notes: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        self._differences = array("d")
        self._reference = math.inf

    def observe(self, difference: float, window: int) -> None:
        """Take in by how much two ranks of a generation differ; `window` of them are kept."""
        self._differences.append(difference if difference >= 0 else math.inf)  # of -inf it is NaN
        if len(self._differences) > 2 * window:
            del self._differences[:-window]

    @property
    def typical(self) -> float:
        """The median of the newest differences; inf before the first."""
        return median(np.array(self._differences)) if self._differences else math.inf

    def note(self, step: float, value: float) -> None:
        """Take a note if steps have become shorter; `value` is one of the generation."""
        self.longest = max(self.longest, step)
        self._reference = min(self._reference, self.longest)
        if step * _FALL <= self._reference:
            self._reference, typical = step, self.typical
            if _ULPS * math.ulp(abs(value)) < typical < math.inf:
                self._notes.append((step, typical))

    @property
    def wide(self) -> float:
        """The length of steps for a second look."""
        return _WIDE * self.longest

    @property
    def left(self) -> bool:
        """Whether the function has a slope, or a kink, where the search ends."""
        if len(self._notes) < _KEPT:
            return False
        (step, difference), (step_now, now) = self._notes[0], self._notes[-1]
        return math.log(difference / now) < _LEAST_POWER * math.log(step / step_now)

    def arrays(self) -> Arrays:
        """Return the state."""
        return {
            "slope_notes": np.array(self._notes, dtype=np.float64).reshape(-1, 2),
            "slope_differences": np.array([self.longest, self._reference, *self._differences]),
        }

    def restore(self, arrays: Arrays) -> None:
        """Take over the state that `arrays` returned; older ones have none."""
        if "slope_notes" not in arrays:
            return
        notes, others = arrays["slope_notes"], arrays["slope_differences"]
        if not (np.isfinite(notes).all() and (notes > 0).all() and (others >= 0).all()):
            raise ValueError("steps and differences of values must be numbers > 0")
        self._notes.extend((float(step), float(difference)) for step, difference in notes)
        self.longest, self._reference, *differences = map(float, others)
        if self.longest == math.inf:
            raise ValueError("the longest steps must be finite")
        self._differences = array("d", differences)
