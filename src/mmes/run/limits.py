"""The limits of a run: target, budget, time and generations, with a reserve for its end."""

from __future__ import annotations

import math
import time
from typing import Any

from mmes.base.reasons import StopReason
from mmes.run.state import RunState

REEVALUATIONS = 10
"""Evaluations of the best point and of the mean, each, at the end of a noisy run."""
# Time kept at most for the evaluations at the end, where their number was left to us.
_KEPT_SHARE = 0.2


class Limits:
    """The limits of a run: its options (`mmes.run.options`), and its state, which changes."""

    def __init__(self, given: dict[str, Any], state: RunState):
        self._given, self._state = given, state
        self._began, self._evaluations_before = math.nan, 0

    # Time

    def begin(self) -> None:
        """Start the clock; the time limit starts again."""
        self._began, self._evaluations_before = time.monotonic(), self._state.evaluations

    def end(self) -> None:
        """Stop the clock."""
        self._began = math.nan

    @property
    def elapsed(self) -> float:
        """Seconds since the clock was started; 0 if it is stopped."""
        return 0.0 if math.isnan(self._began) else time.monotonic() - self._began

    def time_is_left(self) -> bool:
        """Return whether the search may continue, with a reserve for the evaluations at the end."""
        limit = self._given["time_limit"]
        if limit is None:
            return True
        kept = self.contenders * self._wanted_again * self._seconds_each
        if self._given["reevaluations"] is None:
            kept = min(kept, _KEPT_SHARE * limit)
        return self.elapsed + kept < limit

    @property
    def _seconds_each(self) -> float:
        """The average time of an evaluation in this process."""
        done = self._state.evaluations - self._evaluations_before
        return self.elapsed / done if done > 0 else 0.0

    # Evaluations

    def evaluations_left(self) -> float:
        """Return the evaluations that the search may still make."""
        budget = self._given["max_evaluations"]
        if budget is None:
            return math.inf
        kept = self._kept_for_target if budget > self._kept_for_target else 0
        return self.left_to_confirm() - kept

    def left_to_confirm(self) -> float:
        """Return the evaluations that are left to confirm a success, without those of the end."""
        budget = self._given["max_evaluations"]
        if budget is None:
            return math.inf
        kept = self.contenders * self._wanted_again
        kept += self._state.ends_on_batch and budget > 1
        return budget - kept - self._state.evaluations

    @property
    def _kept_for_target(self) -> int:
        """How many evaluations a point that reaches the target needs to be confirmed."""
        given, state = self._given, self._state
        wanted = given["target"] is not None and given["noise"] != "no" and state.es.grows
        if not wanted or state.noise.noisy or state.judged_otherwise:
            return 0
        return 2 if given["vectorized"] and state.constraints is None else 1

    def evaluations_again(self) -> int:
        """Return how often each of `contenders` is evaluated at the end."""
        count, seconds, limit = self._wanted_again, self._seconds_each, self._given["time_limit"]
        if self._given["reevaluations"] is not None or limit is None or seconds == 0.0:
            return count
        return min(count, max(int((limit - self.elapsed) / (self.contenders * seconds)), 1))

    @property
    def contenders(self) -> int:
        """How many points are evaluated again: the best, the mean, and its average if that fits."""
        least = 3 * (self._given["reevaluations"] or 1)
        return 2 + (self._state.average.point is not None and self.budget_left >= least)

    @property
    def budget_left(self) -> float:
        """The evaluations that are left, with those that are kept for the end."""
        budget = self._given["max_evaluations"]
        return math.inf if budget is None else budget - self._state.evaluations

    def let_go_on(self) -> StopReason | None:
        """Let a run that had ended continue; return why it cannot, if nothing is left for that.

        One that ended within a generation repeats that, unless the budget has changed. What was
        evaluated at its end stays then.
        """
        state = self._state
        if state.again is not None:
            left = self.evaluations_left()
            if left == state.unfinished:
                return None
            if left <= state.again.evaluations:
                return StopReason.MAX_EVALUATIONS
        state.go_on()
        state.unfinished = 0
        return None

    @property
    def _wanted_again(self) -> int:
        given = self._given["reevaluations"]
        noisy = self._state.noise.noisy or self._given["noise"] == "yes"
        if given is not None or not noisy:
            return given or 0
        return int(min(REEVALUATIONS, max(self.budget_left // self.contenders, 0)))

    # All of them

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit beside the target."""
        names = ("max_evaluations", "max_generations", "time_limit")
        return any(self._given[name] is not None for name in names)

    def target_reached(self) -> bool:
        """Return whether the best value, or validation, is at or below the target; not -inf."""
        target = self._given["target"]
        return target is not None and -math.inf < self._state.judged_value <= target

    def reached(self) -> StopReason | None:
        """Return why the run should end, or None; the target comes first."""
        if self.target_reached():
            return StopReason.TARGET_REACHED
        if self._state.best_value == -math.inf:
            return StopReason.UNBOUNDED
        return next(iter(self.spent()), None)

    def spent(self) -> list[StopReason]:
        """Return which of budget, generations and time are used up."""
        most = self._given["max_generations"]
        spent = {
            StopReason.MAX_EVALUATIONS: self.evaluations_left() <= 0,
            StopReason.MAX_GENERATIONS: most is not None and self._state.generations >= most,
            StopReason.TIME_LIMIT: not self.time_is_left(),
        }
        return [reason for reason, holds in spent.items() if holds]
