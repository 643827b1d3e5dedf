"""New values of the points that a run may return: which of them is the best, and how surely."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from mmes.base.arrays import Vector
from mmes.base.certainty import student

SURE = 2.0
"""Another point is returned instead of the average if it is better by so many standard errors."""
# With ten values an average is below the truth by so many once in 26 times. Normal numbers exceed
# this many standard deviations as often.
_SURE_OF_TEN = 1.772


@dataclass(frozen=True)
class Reevaluation:
    """New values of the best point, of the mean and of its average, taken at the end of a run."""

    x: Vector
    mean: Vector
    # With constraints: of the averages of both points, the violation, what of it is more than
    # tolerance and noise explain, and the largest standard error.
    violations: Vector = field(default_factory=lambda: np.zeros(2))
    excess: Vector = field(default_factory=lambda: np.zeros(2))
    errors: Vector = field(default_factory=lambda: np.zeros(2))
    # In the order of the calls as the others; empty where there is none, as with constraints.
    average: Vector = field(default_factory=lambda: np.empty(0))

    @property
    def evaluations(self) -> int:
        """How many values these are."""
        return sum(values.size for values in self.values().values())

    @property
    def failed(self) -> int:
        """How many of them are NaN."""
        return sum(int(np.isnan(values).sum()) for values in self.values().values())

    @property
    def noisy(self) -> bool:
        """Whether one point gave different values, of the objective or of constraints."""
        finite = (values[np.isfinite(values)] for values in self.values().values())
        return bool(self.errors.any()) or any(np.unique(values).size > 1 for values in finite)

    def better(self) -> tuple[str, float, float]:
        """Return the name of the best point, the average of its values, and the error of that.

        Averages are those of the finite values, inf where there is none. A point that failed more
        often than not is worse than one that did not, and one that violates constraints worse than
        one that does not. The average of the means is the best unless another one is surely
        better: the few values of the end tell less than the whole search.
        """
        found = {name: average_of(values) for name, values in self.values().items()}
        keys = [
            (found[name][0], excess, found[name][1])
            for name, excess in zip(("x", "mean"), self.excess.tolist(), strict=True)
        ]
        name = "mean" if keys[1] < keys[0] else "x"
        if self.average.size and not found["average"][0]:
            # Halves: differences of huge values are no numbers. Candidates may share their noise,
            # so that differences within a call tell more than averages.
            other, average = 0.5 * self.values()[name], 0.5 * self.average
            both = np.isfinite(other) & np.isfinite(average)
            _, lower, error = average_of(other[both] - average[both])
            if found[name][0] or not lower < -SURE * error:
                name = "average"
        _, average, error = found[name]
        return name, average, error

    def surely(self) -> float:
        """Return what is compared with a target: the average of the better point, and two errors.

        More errors for fewer values than ten, and inf for a single one, which may be luck.
        """
        name, average, error = self.better()
        count = int(np.isfinite(self.values()[name]).sum())
        errors = max(SURE, student(_SURE_OF_TEN, count - 1))
        return average + errors * error if count > 1 else math.inf

    def values(self) -> dict[str, Vector]:
        """Return the values by the names of their points."""
        third = {"average": self.average} if self.average.size else {}
        return {"x": self.x, "mean": self.mean} | third

    def arrays(self) -> dict[str, Vector]:
        """Return what a checkpoint keeps."""
        judged = {"violations": self.violations, "excess": self.excess, "errors": self.errors}
        return self.values() | judged


def average_of(values: Vector) -> tuple[bool, float, float]:
    """Return whether most of the values failed, the average of the finite ones, and its error."""
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return True, math.inf, math.nan
    # Squares of huge values overflow; a power of two changes no bit of the others.
    unit = 2.0 ** max(0, math.frexp(float(np.abs(finite).max()))[1] - 400)
    scaled = finite / unit
    apart = scaled - scaled[0]  # equal values have just this average, and the error 0
    error = float(np.std(apart, ddof=1)) / math.sqrt(finite.size) if finite.size > 1 else math.nan
    average = float(scaled[0] + np.mean(apart)) * unit
    return 2 * finite.size < values.size, average, error * unit
