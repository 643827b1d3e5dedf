"""Tests on values for the end of a run."""

from __future__ import annotations

import math
from array import array
from collections import deque
from typing import Any

import numpy as np

from mmes.base.arrays import Arrays, Vector
from mmes.base.saved_numbers import checked_scalar

# If the typical value of a generation moves by this share between the quarters of a window, the
# search is under way.
MOVEMENT = 1e-3
# How many times at most a window is looked through for that while it passes.
LOOKS = 1000
# The long window, in windows, over which generations are compared.
LONG = 10
# Values that differ by at most this many units in the last place are equal.
ULPS = 4
# Values of a generation that differ by more than this share of all differences ever seen, and by so
# many times what counts as the same, are not those of a search that converged.
APART, TIMES_SAME = 1e-3, 1e3
# Generations without anything better after which a search of integers may be over: so many, and so
# many for each integer.
_FEWEST, _EACH = 400, 40


class ValueHistory:
    """Decides from the values of the generations when a search has ended.

    All but the rule of `tolerance` are invariant under f -> a f + b with a > 0, as the strategies
    are, until the resolution of float64 ends it. They look back over `window` generations; values
    that differ by no more than `ftol` are equal, and 0 means up to rounding.

    `tolerance` is the rule of the paper's tables, as inferred from them: the run stagnates when the
    best value improved by less than `tolerance` * window * abs(best) over the window. One thing is
    asked besides: the values of the generations must stand still too. After a lucky start the best
    value may stand for thousands of generations while a strategy learns the problem's scales, and
    those of its generations move. None: the medians of the generations over a long window decide
    instead.
    """

    def __init__(
        self, window: int, ftol: float = 0.0, tolerance: float | None = None, longest: int = 0
    ):
        self.window = window
        self.longest = max(LONG * window, longest)  # the long window
        self.ftol = ftol
        self.tolerance = tolerance
        # The best value within each generation, as far back as any rule looks.
        self._values = array("d")
        # Lowest and highest value of the newest generation, and of all.
        self._newest = (math.inf, -math.inf)
        self._ever = (math.inf, -math.inf)
        # Only improvements are kept: (generation, best value from that generation on).
        self._improvements: deque[tuple[int, float]] = deque()
        self._generation = 0
        self._fell = True  # whether values fell over the long window, when last looked
        self._apart = 0  # generations with values since some of one generation lay apart

    def observe(self, generation: int, best: float, lowest: float, highest: float) -> None:
        """Add the best value so far, and the values of the finished generation.

        Failures do not count: `lowest` and `highest` are those of the finite values. A generation
        without any, where `lowest` is inf, is ignored.
        """
        self._generation = generation
        if self.tolerance is not None:
            self._note_improvement(generation, best)
        if lowest == math.inf:
            return
        self._newest = lowest, highest
        self._ever = min(lowest, self._ever[0]), max(highest, self._ever[1])
        allowed = max(APART * (self._ever[1] - self._ever[0]), TIMES_SAME * self.same)
        self._apart = 0 if highest - lowest > allowed else self._apart + 1
        self._values.append(lowest)
        longest = self.longest
        if len(self._values) > longest + longest // 10 + 1:
            del self._values[:-longest]
        if len(self._values) >= longest and generation % max(1, longest // 100) == 0:
            self._fell = self._values_fell()

    def anew(self) -> ValueHistory:
        """Return one with the same rules that has seen nothing; but flat is flat from the start."""
        fresh = ValueHistory(self.window, self.ftol, self.tolerance, self.longest)
        fresh._ever = self._ever
        return fresh

    @property
    def flat(self) -> bool:
        """Whether all values so far are equal, for a window."""
        return self._ever[0] == self._ever[1] and len(self._values) >= self.window

    @property
    def converged(self) -> bool:
        """Whether the newest generation, and the best of each in the window, are the same."""
        lowest, highest = self._newest
        same = self.same
        if not highest - lowest <= same or len(self._values) < self.window:
            return False
        recent = self._recent(self.window)
        return float(recent.max()) - float(recent.min()) <= same

    @property
    def on_steps(self) -> bool:
        """Whether values lay apart within the window: equal ones are then those of a step of f.

        The values of a search that converged differ by rounding, or hardly more, all the time; on a
        loss that counts errors they are the same, or differ by an error.
        """
        return self._apart < self.window

    @property
    def stagnated(self) -> bool:
        """Whether values stopped falling: over the long window, or by the tolerance if given."""
        return not self._fell if self.tolerance is None else self._within_tolerance(self.tolerance)

    @property
    def same(self) -> float:
        """Return by how much the newest values may differ and be the same."""
        return self.ftol or ULPS * math.ulp(max(map(abs, self._newest)))

    def _values_fell(self) -> bool:
        """Compare the medians of the newest and of the oldest third of the long window."""
        recent = self._recent(self.longest)
        third = recent.size // 3
        return median(recent[-third:]) < median(recent[:third])

    def _note_improvement(self, generation: int, best: float) -> None:
        if not self._improvements or best < self._improvements[-1][1]:
            self._improvements.append((generation, best))
        limit = generation - self.window
        while len(self._improvements) > 1 and self._improvements[1][0] <= limit:
            self._improvements.popleft()

    def _within_tolerance(self, tolerance: float) -> bool:
        if not self._improvements:
            return False
        since, old = self._improvements[0]
        waited = self._generation - since - self.window
        if waited < 0 or not math.isfinite(old):
            return False
        best = self._improvements[-1][1]
        still = old == best or old - best < tolerance * self.window * abs(best)
        # Looking through a long window costs as much as a generation: not each time.
        look = waited % max(self.window // LOOKS, 1) == 0
        return still and look and not self.generations_move(tolerance)

    def generations_move(self, tolerance: float) -> bool:
        """Return whether the best values of the generations rise or fall within the window."""
        recent = self._recent(self.window)
        if recent.size < 4 or not np.isfinite(recent).all():
            return False
        typical = [median(part) for part in np.array_split(recent, 4)]
        share = max(MOVEMENT, tolerance * self.window)
        return max(typical) - min(typical) > share * abs(typical[-1])

    def _recent(self, count: int) -> Vector:
        return np.array(self._values[-count:])

    def arrays(self) -> Arrays:
        """Return the state."""
        lines = np.array(self._improvements, dtype=np.float64).reshape(-1, 2)
        extremes = np.array([*self._newest, *self._ever, float(self._fell), self._apart])
        return {
            "improvements": lines,
            "recent": np.array(self._values, dtype=np.float64),
            "extremes": extremes,
        }

    def restore(self, generation: int, arrays: Arrays) -> None:
        """Restore the state that `arrays` returned."""
        for name in ("improvements", "recent", "extremes"):
            if np.isnan(arrays[name]).any():
                raise ValueError(f"{name} must be numbers")
        self._generation = generation
        if self.tolerance is not None:
            self._improvements = deque((int(g), float(best)) for g, best in arrays["improvements"])
        self._values = array("d", map(float, arrays["recent"]))
        low, high, lowest, highest, fell, apart = map(float, arrays["extremes"])
        self._newest, self._ever, self._fell = (low, high), (lowest, highest), bool(fell)
        if not apart < 2.0**53:
            raise ValueError(f"the generations since values lay apart cannot be {apart}")
        self._apart = self.window if apart < 0 else int(apart)  # format 1 did not know it


class NothingBetter:
    """Counts the generations in a row that found nothing better, and those that found the best.

    That is how a search of integers ends: its steps never become short, so that its generations
    never have equal values for long. It is over when nothing better was found while each of the
    `integers` changed up and down about twenty times (one of them per generation, by 1), and a
    `share` of the generations came back to the best value.
    """

    def __init__(self, integers: int, share: float):
        self.patience, self.share = max(_FEWEST, _EACH * integers), share
        self.level = math.inf
        self.generations, self.again = 0, 0

    def anew(self) -> NothingBetter:
        """Return one with the same rule that has counted nothing."""
        fresh = NothingBetter(0, self.share)
        fresh.patience = self.patience
        return fresh

    def see(self, best: float, lowest: float, same: float) -> None:
        """Take note of the best value so far and of the lowest one of a generation.

        Values that differ by no more than `same` are equal.
        """
        if not abs(best - self.level) <= same:
            self.level, self.generations, self.again = best, 0, 0
        elif math.isfinite(best):
            self.generations += 1
            self.again += abs(lowest - best) <= same

    @property
    def over(self) -> bool:
        """Whether the search has converged."""
        return self.generations >= self.patience and self.came_back

    @property
    def came_back(self) -> bool:
        """Whether enough of these generations came back to the best value."""
        return self.again >= self.share * self.generations

    def entries(self) -> list[Any]:
        """Return the state."""
        return [self.generations, self.again, self.level if math.isfinite(self.level) else None]

    def restore(self, entries: list[Any] | None) -> None:
        """Take over what `entries` returned; None of a state that had no such count."""
        if entries is not None:
            generations, again, level = entries
            self.generations = checked_scalar("generations", generations, 0)
            self.again = checked_scalar("again", again, 0, 0, self.generations)
            self.level = math.inf if level is None else checked_scalar("level", level, 0.0)


def median(values: Vector) -> float:
    """Return the median, without overflow."""
    places = (values.size - 1) // 2, values.size // 2
    lower, upper = np.partition(values, places)[list(places)].tolist()
    return 0.5 * lower + 0.5 * upper
