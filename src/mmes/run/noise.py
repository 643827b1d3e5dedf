"""Noise: when a run should ask whether its objective is noisy, and what the answer says.

Noise hides improvements. Step-size rules then shrink the mutation strength until nothing moves, far
from the optimum, or hold it where it is. So a fall of sigma without a fall of the values is
suspicious, and so are values that stand still, generations that are often far worse than the last
one, and an end by convergence or stagnation. On a suspicion the centre of the search is evaluated a
few times: if all values are the same, and the best point has its value again, the objective counts
as deterministic for a long while.

A best value that is seen twice is suspicious too: it may be a ceiling (a reward that is capped),
where noise hides until a point that was lucky is evaluated again.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from mmes.base.arrays import Vector
from mmes.base.certainty import ROUNDING, share_of_rounding
from mmes.base.reasons import StopReason
from mmes.base.saved_numbers import checked_scalar, checked_value
from mmes.kernels import Handle, Kernel
from mmes.run.reevaluation import SURE, average_of
from mmes.strategies.parts.recombination import LARGEST_SIGMA

GENERATIONS = 50
"""A population of lambda is due once 50 lambda evaluations were spent: noise that hides progress
near an optimum would double it again and again. Least squares on 64 equations per candidate,
n = 200, 10 seeds: medians of 3e-4, with 100 generations 6e-4."""
CEILING_GENERATIONS = 12
"""The same at a ceiling, where most candidates are equal and a generation tells little. Cart-pole,
capped at 300, 35 seeds: mean rewards of 295 or more in 30 of them, in 25 with 25 generations."""
ASKED = 3
"""Evaluations of one point that answer a suspicion."""
ROUNDS = 3
"""How often so many are made at most, while failures leave nothing to compare."""
LONGEST = (ROUNDS + 2) * ASKED
"""Evaluations of the longest question: with pairs of values of the centre at the end."""
SUSPICIOUS = (StopReason.CONVERGED_X, StopReason.CONVERGED_F, StopReason.STAGNATED)
# Sigma fell by this factor since the values last fell: suspicious.
_FALL = 10.0
# Generations whose medians are smoothed, by their median, before they are compared.
_SMOOTHED = 5
# Values fell where the smoothed median is lower by this share of the interquartile range.
_PROGRESS = 0.25
# Values that did not fall for so many generations, or so many times the damping: suspicious.
_PATIENCE, _PATIENCE_DAMPING = 100, 6
# A fall of sigma begins at most so many times the patience before it is noticed.
_LATELY = 5
# A generation is far worse than the one before where its median is higher by so many interquartile
# ranges. Three times in about ten generations is suspicious: the two were not compared on the same
# objective. The share of such generations is an average with this rate. A question may meet the
# objective of the best point by chance: there are up to three, the second one after a generation
# that was not far worse, because objectives may take turns.
_FAR, _OFTEN, _RATE, _DOUBTS = 2.0, 0.2, 0.1, 3
# Suspicions are looked at once in so many generations.
_EVERY = 8
# A deterministic objective is asked again after sigma fell by this factor.
_ASKED_AGAIN = 1e-4
# Noise matters where it is more than this share of the interquartile range of a generation.
_SHARE = 0.1
# Against noise the search goes on with so many times the largest sigma there was lately: larger
# steps rise above the noise. Sphere + N(0, 1), n = 1000, 3e5 evaluations: 0.10 instead of 0.25.
_LARGER = 2.0
# Generations differ where values of one point within one differ so many times less than across.
_SHARED = 10.0
# The value of a single point is repeated to the bit, unless another machine or thread computes it:
# then sums are rounded otherwise, by a share of the largest value so far where they cancel. With a
# batch of another size that share is `ROUNDING`. Squared distances by |x|^2 - 2 x y + |y|^2 differ
# then by 2e4 times as much as is allowed here, if the search begins near y.
_ROUNDING_ALONE = 1e-13
# The weight of a mean in the average is about this power of its age: its memory is a fifth of the
# search so far.
_POWER = 4
# After so many times the evaluations a noisy run asks again whether its target is reached.
_LATER = 1.25


class Verdict(Enum):
    """What a question has found; what is not settled is part of the state of a run."""

    CLEAR = ""  # no noise, or none that matters, or it was answered
    ASKING = "asking"  # the question is not answered yet
    HIDDEN = "hidden"  # noise hides the progress
    UNANSWERED = "unanswered"  # the point failed again and again


# Values of the objective among the numbers of a watch.
_OF_ANY_SIGN = ("lowest", "best", "confirmed", "reached")


def _spread(values: Vector) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) - float(finite.min())


def comparable(values: Vector) -> bool:
    """Return whether values of one point can tell noise: at least two did not fail."""
    return int(np.isfinite(values).sum()) > 1


@dataclass(frozen=True)
class Answers:
    """Values that answer a suspicion."""

    # Of the centre of the search; of a call each where the objective takes a whole batch.
    mean: Vector
    # New ones of the best point, where those of the mean are the same, and its value so far.
    best: Vector = field(default_factory=lambda: np.empty(0))
    recorded: float = math.nan
    # Where those of the mean differ: pairs of values of it, a row per call.
    twins: Vector = field(default_factory=lambda: np.empty((0, 2)))

    @property
    def all(self) -> Vector:
        """All values."""
        return np.concatenate((self.mean, self.best, self.twins.ravel()))


@dataclass
class NoiseWatch:
    """What a run knows about the noise of its objective."""

    noisy: bool = False  # Whether one point has given different values.
    # Whether the candidates of a generation share their noise, so that generations cannot be
    # compared; None where that was not asked.
    shared: bool | None = None
    asked_at: float = math.inf  # Sigma when all values of a point were last found the same.
    # Evaluations spent on questions, and those of them that failed.
    evaluations: int = 0
    failed: int = 0
    # When values last fell: the smoothed median of the generation, sigma, and generations since.
    lowest: float = math.inf
    sigma_then: float = 0.0
    since: int = 0
    width: float = 0.0  # The interquartile range of the newest generation.
    # The share of generations, lately, that were far worse than the one before, whether the newest
    # was, and questions about that which have found nothing.
    setbacks: float = 0.0
    worse: bool = False
    doubts: int = 0
    patience: int = _PATIENCE  # Generations without a fall of the values that make it suspicious.
    recent: list[float] = field(default_factory=list)  # Medians of the newest generations.
    sigmas: list[float] = field(
        default_factory=list
    )  # Mutation strengths of the newest generations.
    largest_sigma: float = 0.0  # The largest sigma of this start.
    best: float = math.inf  # The lowest value of a generation so far.
    seen: int = 0  # How many candidates had it.
    magnitude: float = 0.0  # The largest absolute value so far.
    ceiling: bool = False  # Whether half of the newest generation have the best value.
    confirmed: float = math.inf  # The best value that its point had again.
    # Evaluations before which nobody asks again whether a noisy run has reached its target.
    not_before: int = 0
    # What new values of a mean surely reach, and the number of generations then: who resumes a run
    # that has ended there need not ask again.
    reached: float = math.inf
    reached_in: int = 0

    def observe(self, values: Vector, sigma: float, damping: float) -> None:
        """Take note of a generation: its values, the mutation strength it was drawn with."""
        ordered = sorted(filter(math.isfinite, values.tolist()))  # numpy is slower for so few
        size = len(ordered)
        if size == 0:  # failed candidates say nothing
            return
        if ordered[0] < self.best:
            self.best, self.seen = ordered[0], 0
        equal = bisect_right(ordered, self.best)
        self.seen, self.ceiling = self.seen + equal, 2 * equal >= size
        self.magnitude = max(self.magnitude, abs(ordered[0]), abs(ordered[-1]))
        self.largest_sigma = max(self.largest_sigma, sigma)
        self.width = ordered[3 * size // 4] - ordered[size // 4]
        middle = ordered[size // 2]
        if self.recent and 2 * size >= values.size:
            # Halves: differences of huge values are no numbers.
            least = max(0.5 * _FAR * self.width, 0.5 * ROUNDING * self.magnitude)
            self.worse = 0.5 * middle - 0.5 * self.recent[-1] > least
            self.setbacks += _RATE * (self.worse - self.setbacks)
        self.recent = [*self.recent[1 - _SMOOTHED :], middle]
        self.patience = int(min(max(_PATIENCE, _PATIENCE_DAMPING * damping), 2.0**53))
        self.since += 1
        self.sigmas.append(sigma)
        if len(self.sigmas) > 2 * _LATELY * self.patience:  # now and then is enough
            del self.sigmas[: -_LATELY * self.patience]
        smoothed = sorted(self.recent)[len(self.recent) // 2]
        if self.sigma_then == 0.0 or smoothed < self.lowest - _PROGRESS * self.width:
            self.lowest, self.sigma_then, self.since = smoothed, sigma, 0

    def suspects(self, sigma: float, reason: StopReason | None) -> bool:
        """Return whether it is time to ask."""
        now = self.worse == (self.doubts % 2 == 0)
        if self.unasked and (self.seen > 1 or (self.jumps and now)):
            return True
        if not self.noisy and _ASKED_AGAIN * self.asked_at < sigma:
            return self.unasked and self._suspicious(sigma, reason)
        return self._suspicious(sigma, reason)

    @property
    def unasked(self) -> bool:
        """Whether nothing is known about the noise yet."""
        return self.asked_at == math.inf and not self.noisy

    @property
    def jumps(self) -> bool:
        """Whether generations are often far worse than the one before."""
        return self.setbacks > _OFTEN

    def _suspicious(self, sigma: float, reason: StopReason | None) -> bool:
        if reason in SUSPICIOUS:
            return True
        return self.in_vain(sigma, reason) and self.since % _EVERY == 0

    def in_vain(self, sigma: float, reason: StopReason | None) -> bool:
        """Return whether the search gets nowhere: values stand, or sigma fell without them.

        Steps that vanish while the values fall are the end of a search, under noise too.
        """
        if reason in (StopReason.CONVERGED_F, StopReason.STAGNATED):
            return True
        return sigma * _FALL < self.sigma_then or self.since >= self.patience

    @property
    def typical(self) -> float:
        """The median of the newest generations; inf until there are enough of them."""
        enough = len(self.recent) == _SMOOTHED
        return sorted(self.recent)[_SMOOTHED // 2] if enough else math.inf

    def confirms(self, value: float, recorded: float, together: bool) -> bool:
        """Take in a new value of the best point; return whether it is the recorded one.

        Another one means noise, unless it differs by no more than rounding. `together` says whether
        the objective takes many points at once.
        """
        if self._same(value, recorded, together):
            self.confirmed = recorded
            return True
        self.noisy = True
        return False

    def _same(self, value: float, recorded: float, together: bool = True) -> bool:
        """Return whether two values differ by no more than rounding; `together` as above."""
        share = share_of_rounding(value, recorded)
        of_largest = (share if together else _ROUNDING_ALONE) * self.magnitude
        # Halves: differences of huge values are no numbers.
        apart = abs(0.5 * value - 0.5 * recorded)
        return value == recorded or apart <= 0.5 * max(share * abs(recorded), of_largest)

    def below(self, target: float, values: Vector, evaluations: int, generation: int) -> bool:
        """Take in values of the mean; return whether it surely reaches the target.

        Values of noise reach any target by chance: if not, nobody asks again for a while.
        """
        self.evaluations += values.size
        self.failed += int(np.isnan(values).sum())
        failed, average, error = average_of(values)
        if not failed and average + 2 * SURE * error <= target:
            self.reached, self.reached_in = average + 2 * SURE * error, generation
            return True
        self.not_before = int(_LATER * (evaluations + values.size))
        return False

    def answer(self, answers: Answers, sigma: float) -> Verdict:
        """Take in the values of a question; return what they say about the progress."""
        self.evaluations += answers.all.size
        self.failed += int(np.isnan(answers.all).sum())
        if not comparable(answers.mean):
            self.setbacks = 0.0
            return Verdict.UNANSWERED
        spread = _spread(answers.mean)
        if spread == 0.0:
            again = answers.best[np.isfinite(answers.best)]
            # Python's floats, whose differences may be too large without a warning.
            spread = max((abs(one - answers.recorded) for one in again.tolist()), default=0.0)
            if all(self._same(one, answers.recorded) for one in again.tolist()):
                self.doubts += self.jumps
                if not self.jumps or self.doubts >= _DOUBTS:
                    self.asked_at = sigma
                return Verdict.CLEAR
            # What is the same now, and was another before, changes between generations. Values
            # that differ now are noise that the centre does not show, as at a ceiling.
            self.shared = again.size > 1 and _spread(again) == 0.0
            spread = spread if self.shared else 0.0
        twins = answers.twins[np.isfinite(answers.twins).all(1)]
        if len(twins) > 1:
            # Halves first: differences and sums of huge values are no numbers.
            halves = 0.5 * twins
            apart = 2.0 * float(np.abs(halves[:, 0] - halves[:, 1]).max())
            self.shared = _SHARED * apart <= _spread(halves[:, 0] + halves[:, 1])
        self.noisy = True
        return Verdict.HIDDEN if spread > _SHARE * self.width else Verdict.CLEAR

    def sigma_before(self) -> float:
        """Return the mutation strength to go on with: twice the largest that there was lately.

        N.B. not that of the last fall of the values: where the search stands far from the optimum,
        candidates improve merely by coming closer to its centre.
        """
        lately = max(self.sigmas[-_LATELY * self.patience :])
        return max(lately, min(_LARGER * lately, self.largest_sigma))

    def wait(self) -> None:
        """Give the search time: population, damping or mutation strength have changed."""
        self.since = 0

    def begin_again(self) -> None:
        """Forget the values: another start begins."""
        self.lowest, self.sigma_then, self.since = math.inf, 0.0, 0
        self.recent, self.sigmas, self.largest_sigma = [], [], 0.0
        self.setbacks, self.worse = 0.0, False

    def entries(self) -> dict[str, Any]:
        """Return what a checkpoint writes as text, infinite numbers too; see `arrays`."""
        return {
            name: str(value) if value == math.inf else value
            for name, value in asdict(self).items()
            if name != "sigmas"
        }

    def arrays(self) -> dict[str, Vector]:
        """Return what is too long for text: with a large damping, `sigmas`."""
        return {"sigmas": np.array(self.sigmas, dtype=np.float64)}

    @classmethod
    def restored(cls, entries: dict[str, Any], arrays: dict[str, Vector]) -> NoiseWatch:
        """Return the watch that `entries` and `arrays` were taken from."""
        # The first checkpoints of this version kept the list among the entries.
        fresh = asdict(cls())
        listed = fresh | entries | {name: array.tolist() for name, array in arrays.items()}
        for name in ("noisy", "ceiling", "worse"):
            if not isinstance(listed[name], bool):
                raise TypeError(f"{name} must be true or false, not {listed[name]!r}")
        if listed["shared"] not in (True, False, None):
            raise TypeError(f"shared must be true, false or null, not {listed['shared']!r}")
        found = {name: listed[name] for name in ("noisy", "shared", "ceiling", "worse")}
        counts = ("evaluations", "failed", "since", "patience", "seen", "doubts")
        for name in (*counts, "not_before", "reached_in"):
            found[name] = checked_scalar(name, listed[name], 0, low=int(name == "patience"))
        for name in (*_OF_ANY_SIGN, "asked_at", "sigma_then", "width", "magnitude"):
            # JSON has no infinity: it is a word there.
            word = math.inf if listed[name] == "inf" else listed[name]
            found[name] = checked_value(name, word)
            if name not in _OF_ANY_SIGN and found[name] < 0:
                raise ValueError(f"{name} must not be negative, but is {found[name]}")
        found["setbacks"] = checked_scalar("setbacks", listed["setbacks"], 0.0, 0.0, 1.0)
        largest = listed["largest_sigma"]
        found["largest_sigma"] = checked_scalar("largest_sigma", largest, 0.0, 0.0, LARGEST_SIGMA)
        found["recent"] = [checked_scalar("recent", value, 0.0) for value in listed["recent"]]
        found["sigmas"] = [
            checked_scalar("sigmas", value, 0.0, 0.0, LARGEST_SIGMA) for value in listed["sigmas"]
        ]
        return cls(**found)


@dataclass
class MeanAverage:
    """The average of the means of the generations since noise was found, newer ones weigh more.

    Under noise the mean moves about the optimum, also where all values are at a ceiling; the
    average is closer to it. Sphere + N(0, 1), n = 200, 6e4 evaluations: 0.019 instead of 0.12.
    """

    wanted: bool  # Whether an average of points is a point, and may be returned.
    point: Handle | None = None  # The average, if there is one.
    count: int = 0  # Of how many means.

    def take(self, mean: Handle, kernel: Kernel) -> None:
        """Add the mean of a generation."""
        if not self.wanted:
            return
        self.count += 1
        if self.point is None:
            self.point = kernel.copy(mean)
        else:
            gain = (_POWER + 1) / (_POWER + self.count)
            kernel.blend(self.point, 1 - gain, gain, mean)
