"""When a search with constraints has ended: what its generations say about their values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.arrays import Vector
from mmes.base.saved_numbers import checked_scalar
from mmes.strategies.shell.standstill import NothingBetter

# Values that differ by at most this many units in the last place of f are equal.
_ULPS = 64
# For this many generations, or a tenth of the number of variables.
_WINDOW = 20
# Values that differ by less than half of what the tolerance of a constraint is worth are equal
# after so many windows: they may keep moving by that (the cube of Klee and Minty).
_LONG, _HALF = 25, 0.5
# Beside integers, real variables no longer change the value if they do by this share of what the
# integers change.
_SLIGHT = 1e-5
# A search of integers comes back to the best feasible point in this share of its generations; in
# the others all candidates may violate constraints.
_CAME_BACK = 0.5


@dataclass
class _Standstill:
    """Counts generations whose values are all equal to a level."""

    count: int = 0
    level: float = math.nan

    def see(self, lowest: float, highest: float, same: float) -> None:
        """Take note of a generation; values that differ by no more than `same` are equal."""
        if abs(lowest - self.level) <= same and highest - lowest <= same:
            self.count += 1
        else:
            self.count, self.level = 0, lowest

    def entries(self) -> list[Any]:
        return [self.count, None if math.isnan(self.level) else self.level]

    @classmethod
    def restored(cls, entries: list[Any]) -> _Standstill:
        count, level = entries
        level = math.nan if level is None else checked_scalar("level", level, 0.0)
        return cls(checked_scalar("standstill", count, 0), level)


class EndCounts:
    """Counts the generations in which nothing changes any more.

    n is the number of variables, `integers` of those that are integers and can change, and `alone`
    says whether no others can. The values by which points are ranked never stand still where
    integers violate constraints in turn, nor does the mean settle: the best feasible point is what
    can be judged then.
    """

    def __init__(self, n: int, integers: int = 0, alone: bool = False):
        self._window = max(n // 10, _WINDOW)
        self._only_integers = alone
        self._nothing_better = NothingBetter(integers, _CAME_BACK) if integers else None
        # Whether the best feasible point is judged.
        self.by_best = self._nothing_better is not None
        # Generations whose values are equal up to rounding, and up to what a tolerance is worth.
        self._standstills = [_Standstill(), _Standstill()]

    def watch(self, values: Vector, f: Vector, worth: float) -> None:
        """Take note of a generation: the values by which it was ranked, and those of f.

        Counted are generations whose values differ by no more than the rounding of f: the rule of
        the strategy sees only the values that rank, which may be much smaller than f. And those
        whose values differ by less than half of `worth`, that of the tolerance of a constraint.
        """
        finite = np.isfinite(values)
        if not finite.any():
            return
        lowest, highest = float(values[finite].min()), float(values[finite].max())
        rounding = _ULPS * math.ulp(float(np.abs(f[finite]).max()))
        for standstill, same in zip(self._standstills, (rounding, _HALF * worth), strict=True):
            standstill.see(lowest, highest, same)

    def look_for_better(self, best: float, f: Vector, feasible: NDArray[np.bool_]) -> bool:
        """With `by_best`: return whether the search keeps coming back to the best feasible point.

        `best` is its value, `f` and `feasible` belong to the newest generation.
        """
        counts = self._nothing_better
        assert counts is not None
        found = np.where(feasible, f, np.inf)
        lowest = float(np.min(found, initial=np.inf, where=~np.isnan(found)))
        same = _ULPS * math.ulp(abs(best))
        finite = f[np.isfinite(f)]
        if not self._only_integers and finite.size:  # real variables may still move the value
            same = max(same, _SLIGHT * float(0.5 * finite.max() - 0.5 * finite.min()))
        counts.see(best, lowest, same)
        return counts.over

    def anew(self) -> None:
        """Count again from the next generation on."""
        self._standstills = [_Standstill(), _Standstill()]
        self.forget_best()

    def forget_best(self) -> None:
        """Count again how often nothing better was found."""
        if self._nothing_better is not None:
            self._nothing_better = self._nothing_better.anew()

    @property
    def came_back(self) -> bool | None:
        """With integers: whether the search keeps coming back to the best feasible point.

        None without integers, and before that can be known.
        """
        counts = self._nothing_better
        return None if counts is None or counts.generations < _WINDOW else counts.came_back

    @property
    def converged(self) -> bool:
        """Whether the values were equal for a window of generations, or nothing was better.

        Where all variables are integers, twice as many generations without anything better are an
        end, too, even if the search does not come back to the best point. `Growth` calls that end
        STAGNATED: nobody knows whether it has converged.
        """
        counts = self._nothing_better if self._only_integers else None
        ended = counts is not None and (counts.over or counts.generations >= 2 * counts.patience)
        rounded, worthless = self._standstills
        return ended or rounded.count >= self._window or worthless.count >= _LONG * self._window

    def entries(self) -> dict[str, Any]:
        """Return the state."""
        counts = self._nothing_better
        return {
            "standstills": [one.entries() for one in self._standstills],
            "nothing_better": None if counts is None else counts.entries(),
        }

    def restore(self, entries: dict[str, Any]) -> None:
        """Take over what `entries` returned; older states have no count of what is better."""
        first, second = entries["standstills"]
        self._standstills = [_Standstill.restored(first), _Standstill.restored(second)]
        if self._nothing_better is not None:
            self._nothing_better.restore(entries.get("nothing_better"))
