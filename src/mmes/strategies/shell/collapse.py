"""How values fall with sigma: as its square where the objective is smooth, in proportion at a kink.

At a kink (an absolute value, a maximum, an exact penalty) smaller steps do not succeed more often,
but they lower the values of a generation. A rule that shrinks sigma while values fall then shrinks
it to nothing while the mean stands still. Each time sigma has fallen by the root of ten a note is
taken: the average of the medians of the newest generations. With notes one decade of sigma apart,

    r = (f_1 - f_2) / (f_0 - f_1)

is about 0.01 where the objective is smooth and 0.1 or more at a kink; above 1 the search has just
found its way. r does not change with f -> a f + b. Two notes decide, by their geometric mean. While
a search learns the scales or axes of a problem r may be larger too, but sigma hardly falls then: a
fall by ten that takes long says nothing, and where it is as fast as on the sphere less is asked.

The answer is a larger population, as it is to noise. A search of fewer than 6 sqrt(n) candidates
gets so many as soon as values fall as at a kink. One that has them grows if sigma also fell faster
than an evolution strategy can converge.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# A note is taken when sigma has fallen by this factor; two of them are a decade.
_FALL = math.sqrt(10)
_DECADE = 2
# At and above this r tells nothing.
_FOUND_ITS_WAY = 1.2
# Generations of a fall by ten, in units of n damping / lambda: the fastest convergence there is,
# that on the sphere, takes 9 to 12. Fewer than this are too fast.
_TOO_FAST = 8.0
# Where a fall took no longer than the first, a mean of r above the second is a kink, unless one of
# the two is below half of that.
_KINKED = ((20.0, 0.03), (150.0, 0.07))
# A kink needs so many times sqrt(n) candidates.
_NEEDED = 6.0
# Differences of so many units of the last place are rounding.
_ULPS = 64
# Medians that are averaged at most.
_LONGEST = 1000


class Note(NamedTuple):
    """What is noted when sigma has fallen by the root of ten."""

    generation: int
    sigma: float
    value: float


class Collapse:
    """Tells from the values and sigma when steps vanish though the search has not converged.

    Parameters
    ----------
    n : int
        The number of variables.
    sigma : float
        The mutation strength now.
    """

    def __init__(self, n: int, sigma: float):
        self._n, self._reference = n, sigma
        self._notes: deque[Note] = deque(maxlen=2 * _DECADE + 1)
        self._medians = array("d")
        self._ratio = 0.0  # r of the last note; 0 where it told nothing
        self._kinked = self._too_fast = False

    def observe(
        self, generation: int, sigma: float, median: float, size: int, damping: float
    ) -> None:
        """Take note of a generation: sigma after it, its median value, lambda and the damping."""
        if not math.isfinite(median):
            return
        window = min(max(5, self._n // size), _LONGEST)
        self._medians.append(median)
        if len(self._medians) > 2 * window:
            del self._medians[:-window]
        if sigma * _FALL <= self._reference:
            recent = self._medians[-window:]
            value = math.fsum(one / len(recent) for one in recent)  # the sum may be too large
            self._notes.append(Note(generation, sigma, value))
            self._reference = sigma
            self._judge(self._n * damping / size)

    def _judge(self, pace: float) -> None:
        notes = self._notes
        if len(notes) < 2 * _DECADE + 1:
            return
        first, second, last = notes[0], notes[_DECADE], notes[-1]
        before, now = first.value - second.value, second.value - last.value
        rounding = _ULPS * math.ulp(abs(first.value))
        told = min(before, now) > rounding and now < _FOUND_ITS_WAY * before
        previous, self._ratio = self._ratio, now / before if told else 0.0
        mean, taken = math.sqrt(previous * self._ratio), last.generation - second.generation
        mean = min(mean, 2 * previous, 2 * self._ratio)
        self._kinked = any(taken <= long * pace and mean > large for long, large in _KINKED)
        self._too_fast = taken < _TOO_FAST * pace

    @property
    def collapsed(self) -> bool:
        """Whether values fell as at a kink, and sigma faster than a search can converge."""
        return self._kinked and self._too_fast

    def answer(self, size: int) -> tuple[int, float] | None:
        """Return how often the population should be doubled now, and sigma then; None: it need not.

        Sigma goes back to where it was two decades ago, before the fall.
        """
        doublings = math.ceil(math.log2(_NEEDED * math.sqrt(self._n) / size) - 0.02)
        if self._kinked and doublings > 0:
            return doublings, self._notes[0].sigma
        return (1, self._notes[0].sigma) if self.collapsed and doublings <= 0 else None

    def anew(self, sigma: float) -> Collapse:
        """Return one that begins with this sigma, and the last note for what was there before."""
        fresh = Collapse(self._n, sigma)
        if self._notes:
            fresh._notes.append(self._notes[-1]._replace(sigma=sigma))
        return fresh

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state."""
        verdict = [self._reference, self._ratio, float(self._kinked), float(self._too_fast)]
        return {
            "collapse_notes": np.array(self._notes, dtype=np.float64).reshape(-1, 3),
            "collapse_medians": np.array(self._medians, dtype=np.float64),
            "collapse_verdict": np.array(verdict),
        }

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over the state that `arrays` returned; older ones have none."""
        if "collapse_verdict" not in arrays:
            return
        notes, verdict = arrays["collapse_notes"], arrays["collapse_verdict"]
        if not all(np.isfinite(a).all() for a in (notes, verdict, arrays["collapse_medians"])):
            raise ValueError("what is known of a collapse must be finite")
        if not (notes[:, 1] > 0).all() or not verdict[0] > 0:
            raise ValueError("the mutation strengths before a collapse must be > 0")
        self._notes.extend(Note(int(g), float(s), float(v)) for g, s, v in arrays["collapse_notes"])
        self._medians = array("d", map(float, arrays["collapse_medians"]))
        self._reference, self._ratio, kinked, too_fast = map(float, arrays["collapse_verdict"])
        self._kinked, self._too_fast = bool(kinked), bool(too_fast)
