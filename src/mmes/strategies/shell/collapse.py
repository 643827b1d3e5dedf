"""How values fall with sigma: as its square where the objective is smooth, in proportion at a kink.

At a kink (an absolute value, a maximum, an exact penalty) smaller steps do not succeed more often,
but they lower the values of a generation. A rule that shrinks sigma while values fall then shrinks
it to nothing while the mean stands still. Each time sigma has fallen by the root of ten a note is
taken: the average of the medians of the newest generations. With notes one decade of sigma apart,

    r = (f_1 - f_2) / (f_0 - f_1)

is about 0.01 where the objective is smooth and 0.1 or more at a kink; above 1 the search has just
found its way. r does not change with f -> a f + b. Two notes decide, by their geometric mean. Where
a full covariance matrix shrinks together with sigma, as in active CMA-ES, r would be 0.03 to 0.07
at a kink: there sigma is everywhere times the geometric mean of the axes (`HasAxes`). While
a search learns the scales or axes of a problem r may be larger too, but sigma hardly falls then: a
fall by ten that takes long says nothing, and where it is as fast as on the sphere less is asked.

The answer is a larger population, as it is to noise. A search of fewer than 6 sqrt(n) candidates
gets so many as soon as values fall as at a kink. One that has them grows if sigma also fell faster
than an evolution strategy can converge.

Values that fall in proportion to sigma do not tell an optimum from a crease along which the search
is stuck: there too they approach a limit. So a search that has seen a kink, or ends on a slope
(`Slope`), is believed to have converged only after a second look: sigma goes back to what it was
before the kink, or further, and the values must end where they ended before, which must not be
above the best value of all.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmes.base.arrays import Arrays
from mmes.strategies.shell.slope import Slope
from mmes.strategies.shell.standstill import median as median_of

# A note is taken when sigma has fallen by this factor; two of them are a decade.
_FALL = math.sqrt(10)
_DECADE = 2
# Notes that are kept: two decades, and one more.
_KEPT = 2 * _DECADE + 2
# At and above this r tells nothing.
_FOUND_ITS_WAY = 1.2
# Generations of a fall by ten, in units of n damping / lambda: the fastest convergence there is,
# that on the sphere, takes 9 to 12. Fewer than this are too fast.
_TOO_FAST = 8.0
# Where a fall took no longer than the first, a mean of r above the second is a kink, unless one of
# the two is below half of that.
_KINKED = ((20.0, 0.03), (150.0, 0.07))
# The same where steps are known by all their axes. r is then 0.08 to 0.1 at kinks; in 1216 runs on
# smooth functions it was up to 0.029 in falls of up to 60, 0.043 up to 100, and 0.13 up to 150.
_KINKED_BY_AXES = ((60.0, 0.04), (100.0, 0.06))
# Where the first of two notes has an r above this, values had ceased to fall as the square of sigma
# before it, as on a rugged objective: sigma then goes back by half a decade more.
_EARLIER = 0.25
# A kink needs so many times sqrt(n) candidates.
_NEEDED = 6.0
# Differences of so many units of the last place are rounding.
_ULPS = 64
# Medians that are averaged at most.
_LONGEST = 1000
# Values end where they ended before if they differ by at most so many times the differences between
# the last generations, or by the second as a share of what they fell since the kink was seen. At
# optima they differ by up to 5 times the larger one of the differences at the two ends, along
# creases most often by 12 times or more. An exact penalty falls by 1e8 times what is left.
_SAME, _NOTHING = 10.0, 1e-13
# Differences between generations are at most so many times those within one, unless the median of
# some generations is that of a penalty.
_WITHIN = 10.0
# A best value that is lower than where values end, by more than so many times what counts as the
# same, was found elsewhere: at optima by up to 1.2 times.
_LOWER = 10.0
# Looks at the end, at most: values that end elsewhere each time do not converge.
_LOOKS = 3


class Note(NamedTuple):
    """What is noted when sigma has fallen by the root of ten."""

    generation: int
    sigma: float
    value: float


class Collapse:
    """Tells from the values and sigma when steps vanish though the search has not converged.

    With `by_axes`, sigma is everywhere times the geometric mean of the axes.
    """

    def __init__(self, n: int, sigma: float, by_axes: bool = False):
        self._n, self._reference, self._by_axes = n, sigma, by_axes
        self._notes: deque[Note] = deque(maxlen=_KEPT)
        self._medians = array("d")
        self._ratio = 0.0  # r of the last note; 0 where it told nothing
        self._kinked = self._too_fast = False
        self._fell_from = sigma  # before what the last note says
        # Before the first kink that was seen: sigma (0: none was seen) and the value.
        self._before = (0.0, 0.0)
        self._looks = 0
        self._claim = (0.0, 0.0)  # at the last look: where values ended, and what is the same
        self._best = math.inf  # the lowest of all values
        self.slope = Slope()

    def observe(
        self,
        generation: int,
        sigma: float,
        median: float,
        size: int,
        damping: float,
        best: float = math.inf,
        difference: float = math.inf,
    ) -> None:
        """Take note of a generation: sigma after it, its median value, lambda and the damping.

        `best` is the lowest value so far, and `difference` that between two ranks of the better
        half.
        """
        if not math.isfinite(median):
            return
        self._best = best
        window = min(max(5, self._n // size), _LONGEST)
        self._medians.append(median)
        if len(self._medians) > 2 * window:
            del self._medians[:-window]
        self.slope.observe(difference, window)
        if sigma * _FALL <= self._reference:
            self._notes.append(Note(generation, sigma, _mean(self._medians[-window:])))
            self._reference = sigma
            self._judge(self._n * damping / size)

    def _judge(self, pace: float) -> None:
        notes = self._notes
        if len(notes) < 2 * _DECADE + 1:
            return
        first, second, last = notes[-1 - 2 * _DECADE], notes[-1 - _DECADE], notes[-1]
        before, now = first.value - second.value, second.value - last.value
        rounding = _ULPS * math.ulp(abs(first.value))
        told = min(before, now) > rounding and now < _FOUND_ITS_WAY * before
        previous, self._ratio = self._ratio, now / before if told else 0.0
        mean, taken = math.sqrt(previous * self._ratio), last.generation - second.generation
        mean = min(mean, 2 * previous, 2 * self._ratio)
        rules = _KINKED_BY_AXES if self._by_axes else _KINKED
        self._kinked = any(taken <= long * pace and mean > large for long, large in rules)
        self._too_fast = taken < _TOO_FAST * pace
        fell_from = notes[0] if previous > _EARLIER else first
        self._fell_from = fell_from.sigma
        if self._kinked and not self._before[0]:
            self._before = fell_from.sigma, fell_from.value

    @property
    def collapsed(self) -> bool:
        """Whether values fell as at a kink, and sigma faster than a search can converge."""
        return self._kinked and self._too_fast

    @property
    def kinked(self) -> bool:
        """Whether a kink was seen at any time."""
        return self._before[0] > 0

    @property
    def doubted(self) -> bool:
        """Whether a kink or a slope was seen, and no second look has confirmed the end."""
        if not (self.kinked or self.slope.left) or not self._medians:
            return False
        value, now = self._claim[0], self._end()
        same = max(self._claim[1], self._same())
        ended_there = abs(value - now) <= same and now - self._best <= _LOWER * same
        return not (self._looks and ended_there)

    def _end(self) -> float:
        """Return where the values of the last generations end, whatever a few of them are."""
        return median_of(np.array(self._medians))

    def _same(self) -> float:
        """Return by how much values that end at the same place may differ."""
        value, start = self._end(), self._before[1]
        differences = max(self._medians) - min(self._medians)
        differences = min(differences, _WITHIN * self.slope.typical)
        rounding = _ULPS * math.ulp(abs(value))
        return max(_SAME * differences, rounding, _NOTHING * abs(start - value))

    def look_again(self) -> float | None:
        """Take note of where the values end; return sigma for another look, None for no more."""
        if not self.doubted or self._looks == _LOOKS:
            return None
        if not self.kinked:
            self._before = self._reference, self._medians[0]
        self._claim = self._end(), self._same()
        self._looks += 1
        return self._before[0]

    def answer(self, size: int) -> tuple[int, float] | None:
        """Return how often the population should be doubled now, and sigma then; None: it need not.

        Sigma goes back to where it was before the fall, two decades ago or a little more.
        """
        doublings = math.ceil(math.log2(_NEEDED * math.sqrt(self._n) / size) - 0.02)
        if self._kinked and doublings > 0:
            return doublings, self._fell_from
        return (1, self._fell_from) if self.collapsed and doublings <= 0 else None

    def anew(self, sigma: float) -> Collapse:
        """Return one that begins with this sigma, and the last note for what was there before."""
        fresh = Collapse(self._n, sigma, self._by_axes)
        fresh._before, fresh._looks = self._before, self._looks
        fresh._claim, fresh._best = self._claim, self._best
        fresh.slope.longest = self.slope.longest
        if self._notes:
            fresh._notes.append(self._notes[-1]._replace(sigma=sigma))
        return fresh

    def arrays(self) -> Arrays:
        """Return the state."""
        verdict = [self._reference, self._ratio, self._kinked, self._too_fast, self._fell_from]
        return {
            "collapse_notes": np.array(self._notes, dtype=np.float64).reshape(-1, 3),
            "collapse_medians": np.array(self._medians, dtype=np.float64),
            "collapse_verdict": np.array(verdict, dtype=np.float64),
            "collapse_looks": np.array([*self._before, self._looks, *self._claim]),
            "collapse_best": np.array([self._best]),
            **self.slope.arrays(),
        }

    def restore(self, arrays: Arrays) -> None:
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
        self._reference, self._ratio, kinked, too_fast, *fell = map(float, verdict)
        self._fell_from = fell[0] if fell else self._notes[0].sigma if self._notes else 1.0
        self._kinked, self._too_fast = bool(kinked), bool(too_fast)
        if "collapse_looks" in arrays:  # older states have none
            sigma, value, looks, *claim = map(float, arrays["collapse_looks"])
            if not (sigma >= 0 and 0 <= looks <= _LOOKS and np.isfinite([value, *claim]).all()):
                raise ValueError("what was seen at a kink must be finite")
            self._before, self._looks = (sigma, value), int(looks)
            self._claim = claim[0], claim[1]
        if "collapse_best" in arrays:  # older states have none
            self._best = float(arrays["collapse_best"][0])
            if math.isnan(self._best):
                raise ValueError("the best value before a kink must be a number")
        self.slope.restore(arrays)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(one / len(values) for one in values)  # the sum may be too large
