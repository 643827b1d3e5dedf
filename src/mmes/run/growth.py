"""When a run doubles its population without a restart: where noise hides progress, and at kinks.

After each generation the run asks here what to do. On a suspicion (`noise`) the centre of the
search is evaluated a few times. Where its values differ by more than the search can see, the
population is doubled. Where the values of a generation agree with one another, but not with those
of other generations, as with a new minibatch per generation, a larger population does not help: the
strategy compares no generations from then on, if it can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mmes.base.arrays import Vector
from mmes.base.reasons import StopReason
from mmes.errors import NoLimitWarning, warn_user
from mmes.run.limits import REEVALUATIONS, Limits
from mmes.run.noise import ASKED, LONGEST, ROUNDS, SUSPICIOUS, Answers, Verdict, comparable
from mmes.run.restarts import RESTARTABLE
from mmes.run.state import RunState, Spent

# Growing is worth it where at least so many generations are left.
_WORTH = 50
_ENDED = (StopReason.CONVERGED_X, StopReason.CONVERGED_F, StopReason.STAGNATED)
# Ends that noise may cause; what comes from outside, as from a callback, it does not.
_BY_NOISE = (*RESTARTABLE, StopReason.SIGMA_TOO_LARGE)


class Growth:
    """What a run does about noise and about steps that collapse.

    `values_at` is that of `Evaluation`; `follow` tells the evaluator that the strategy has changed.
    """

    def __init__(
        self,
        options: dict[str, Any],
        state: RunState,
        limits: Limits,
        values_at: Callable[[list[Any], int], tuple[Any, Vector]],
        follow: Callable[[], None],
    ):
        self._options, self._state, self._limits = options, state, limits
        self._values_at, self._follow = values_at, follow
        self._warned = False  # that a noisy run may not end

    def after(self, reason: StopReason | None) -> StopReason | None:
        """Look at the generation that was told; return why the run should end, if it should."""
        reason = self._handled(self._handle_noise(reason))
        endless = self._state.noise.noisy and not self._limits.is_limited
        if reason is None and endless and not self._warned:
            self._warned = True
            warn_user(
                "f is noisy, and the run has no limit: it may not end by itself; give "
                "max_evaluations or time_limit",
                NoLimitWarning,
            )
        return reason

    def resumed(self, reason: StopReason | None) -> StopReason | None:
        """Ask what a run before this one could not ask to the end, or do what it could not do."""
        reason = self.confirmed(reason)
        if self._state.question is Verdict.ASKING:
            reason = self._handle_noise(reason)
        else:
            reason = self._act(reason)
        return self._handled(reason)

    def confirmed(self, reason: StopReason | None) -> StopReason | None:
        """Evaluate the best point again before its value is a success; return why to end.

        A value that reaches the target may be luck. What a vectorized objective returns may depend
        on the other rows, as ranks do. At the target the point is evaluated twice in one call:
        the two ranks of equal points differ. A search that has converged is compared with its mean,
        which is better than a point that was the best of its rows long ago.
        """
        state, watch = self._state, self._state.noise
        together = self._options["vectorized"] and state.constraints is None
        at_target = reason is StopReason.TARGET_REACHED
        claimed = at_target or (together and reason in _ENDED)
        if not claimed or not state.es.grows or self._options["noise"] == "no":
            return reason
        if state.judged_otherwise:
            return reason
        if watch.noisy:
            return self._confirmed_by_average() if at_target else reason
        if watch.confirmed == state.best_value:
            return reason
        points = [state.best_x]
        if together:
            points.append(state.best_x if at_target else state.es.mean)
        if self._limits.left_to_confirm() < len(points):
            return reason
        value, before = self._value_again(points, 2 if at_target else 1), watch.confirmed
        if watch.confirms(value, state.best_value, together):
            if state.partial.evaluations:  # a resumed run repeats the generation, and asks again
                watch.confirmed = before
            return reason
        # A noisy run from here on: the target is compared with the typical value.
        return self.confirmed(self._limits.reached()) if at_target else StopReason.STAGNATED

    def _value_again(self, points: list[Any], judged: int) -> float:
        """Evaluate points in one call; return the value that is farthest from the best one.

        The first `judged` points are the best one. NaN if one of them fails each time, or if
        constraints are no longer what they were.
        """
        state, handled = self._state, self._state.constraints
        for _ in range(ASKED):  # it may fail now and then
            if self._limits.left_to_confirm() < len(points):
                break
            _, (found,) = self._values_at(points, 1)
            values = found if handled is None else found[:, 0]
            failed = int(np.isnan(values).sum())
            if state.partial.evaluations:  # they are not saved, and are made again
                state.partial += Spent(len(points), failed=failed)
            else:
                state.spent += Spent(len(points), failed=failed, again=len(points))
            state.warn_of_failures(values)
            again = values[:judged].tolist()
            if all(value < np.inf for value in again):
                same = handled is None or handled.confirms(found)
                return max(again, key=lambda v: abs(v - state.best_value)) if same else np.nan
        return np.nan

    def _confirmed_by_average(self) -> StopReason | None:
        """Under noise, evaluate the mean several times where generations reach the target."""
        state, watch, target = self._state, self._state.noise, self._options["target"]
        # A run that had ended was resumed.
        known = watch.reached_in == state.generations and watch.reached <= target
        if known or self._limits.evaluations_left() < REEVALUATIONS:
            return StopReason.TARGET_REACHED
        _, values = self._values_at([state.es.mean], REEVALUATIONS)
        with state.changing():
            below = watch.below(target, values[:, 0], state.evaluations, state.generations)
        return StopReason.TARGET_REACHED if below else self._limits.reached()

    def _handled(self, reason: StopReason | None) -> StopReason | None:
        state, reason = self._state, self._handle_collapse(self._handle_ceiling(reason))
        # Nobody knows what the search has converged to where generations cannot be compared.
        asks = self._options["noise"] != "no" and state.es.grows
        unsure = asks and state.noise.jumps
        # Integers under constraints jump, but whether they come back to the best point is known.
        back = None if state.constraints is None else state.constraints.ends.came_back
        unsure = unsure if back is None else not back
        # The best value of noise, with other multipliers or of an earlier start may be elsewhere.
        comparable = not state.noise.noisy and state.constraints is None and state.start == 0
        if asks and comparable and reason in SUSPICIOUS:
            unsure = unsure or state.es.strayed(state.best_seen()[1])
        return StopReason.STAGNATED if unsure and reason in SUSPICIOUS else reason

    def _handle_ceiling(self, reason: StopReason | None) -> StopReason | None:
        """Grow where most candidates are at a ceiling, and only chance tells them apart."""
        state, ends_it = self._state, reason is not None and reason not in RESTARTABLE
        if ends_it or self._options["noise"] == "no" or not state.es.grows:
            return reason
        if not (state.ceiling_due and self._room_to_grow) or state.partial.evaluations:
            return reason
        return None if self._changed(state.answer_ceiling) else reason

    @property
    def _room_to_grow(self) -> bool:
        return 2 * self._state.es.population_size <= self._limits.evaluations_left() / 4

    def _changed(self, change: Callable[[], None]) -> bool:
        """Change the search and tell the evaluator; return whether it fitted into memory."""
        try:
            with self._state.changing(MemoryError):
                change()
        except MemoryError:
            return False
        self._follow()
        return True

    def _handle_noise(self, reason: StopReason | None) -> StopReason | None:
        """Ask whether the objective is noisy, if that is suspected, and grow where noise rules."""
        state, watch, asked = self._state, self._state.noise, self._options["noise"]
        if asked == "no" or not state.es.grows or state.partial.evaluations:
            return reason
        if watch.shared and state.es.probes:  # nothing is left to ask, or to be done
            return reason
        # Noise may look like a kink.
        kinked = watch.unasked and state.es.answer_to_collapse() is not None
        suspected = kinked or watch.suspects(state.es.sigma, reason)
        # Who says that it is noisy is believed, and asked once whether.
        first = asked == "yes" and not watch.noisy and watch.evaluations == 0
        if not (suspected or first):
            if reason is None:  # at a limit, whoever goes on may see another reason
                state.question = Verdict.CLEAR
            return reason
        # From here on for whoever goes on if this raises, or with more budget. A question that does
        # not fit would have another answer; at the end it is better than none.
        if self._limits.evaluations_left() < (LONGEST if reason is None else ASKED):
            return reason
        mean, answers = self._ask()
        with state.changing():
            state.question = watch.answer(answers, state.es.sigma)
            seen = answers.mean[~np.isnan(answers.mean)]
            if state.constraints is None and not watch.noisy and seen.size:
                state.offer(mean, seen.item(0))
            # Noise that candidates share looks like progress, or like a kink: both compare
            # generations.
            compares = watch.shared and state.es.can_probe
            in_vain = compares or watch.in_vain(state.es.sigma, reason)
            if state.question is Verdict.HIDDEN and not in_vain:
                state.question = Verdict.CLEAR
        state.warn_of_failures(answers.all)
        if self._limits.target_reached():
            return self.confirmed(StopReason.TARGET_REACHED)
        # The question may have spent the budget.
        return self._act(reason) or self._limits.reached()

    def _ask(self) -> tuple[Any, Answers]:
        """Return the centre of the search, and values of it and of the best point."""
        state, handled = self._state, self._state.constraints
        left, asked = self._limits.evaluations_left(), np.empty(0)
        mean = state.es.mean
        for _ in range(int(min(ROUNDS, left // ASKED))):
            (mean,), found = self._values_at([mean], ASKED)
            values = found[:, 0] if handled is None else handled.values(found[:, 0])
            asked = np.concatenate((asked, values))
            if comparable(asked):
                break
        left -= asked.size
        if handled is not None or not comparable(asked):
            return mean, Answers(asked)
        if np.unique(asked[np.isfinite(asked)]).size > 1:
            matters = state.es.can_probe or state.es.probes
            if state.noise.shared is not None or not matters or left < 2 * ASKED:
                return mean, Answers(asked)
            _, twins = self._values_at([mean, mean], ASKED)
            return mean, Answers(asked, twins=twins)
        return mean, Answers(asked, best=self._ask_best(left), recorded=state.best_value)

    def _ask_best(self, left: float) -> Vector:
        """Return new values of the best point, which was evaluated in an earlier generation.

        One is enough where the value was seen once: that of a noisy objective is never seen again.
        """
        state, values = self._state, np.empty(0)
        once = state.noise.seen < 2
        while values.size < ASKED and left - values.size >= 1:
            _, found = self._values_at([state.best_seen()[1]], 1)
            values = np.append(values, found)
            if once and values[0] == state.best_value:
                break
        return values

    def _act(self, reason: StopReason | None) -> StopReason | None:
        """Do what the answer asks for: grow where noise rules; return why to end, if at all."""
        state = self._state
        if self._options["noise"] == "no":  # who resumes may know better
            return reason
        if state.question is Verdict.UNANSWERED:
            # Nobody knows whether it is noisy, so that nobody knows whether it converged.
            return StopReason.STAGNATED if reason in SUSPICIOUS else reason
        if state.question is not Verdict.HIDDEN:
            return reason
        if state.noise.shared and state.es.probes:
            return reason
        change = state.noise.shared and state.es.can_probe
        if not (change or self._room_to_grow):
            # It goes on as it is while it can: what would end it otherwise is the noise.
            return StopReason.NOISY if reason in _BY_NOISE else reason
        if not self._changed(state.answer_noise):
            in_vain = state.noise.in_vain(state.es.sigma, reason)
            return StopReason.NOISY if in_vain or reason in _BY_NOISE else reason
        return None if reason in _BY_NOISE else reason

    def _handle_collapse(self, reason: StopReason | None) -> StopReason | None:
        """Grow where sigma collapses, as at a kink, instead of coming to an end there."""
        state = self._state
        ends_it = reason is not None and reason not in RESTARTABLE
        if ends_it or self._options["noise"] == "no" or state.partial.evaluations:
            return reason
        answer = state.es.answer_to_collapse()
        if answer is None:
            return self._look_again(reason)
        size = state.es.population_size * 2 ** answer[0]
        enough = _WORTH * size <= self._limits.evaluations_left()
        if size > state.largest_population_size or not enough:
            return reason
        return None if self._changed(lambda: state.answer_collapse(*answer)) else reason

    def _look_again(self, reason: StopReason | None) -> StopReason | None:
        """Repeat the end of a search that has seen a kink or a slope.

        Not if it starts again anyway, nor under noise, where no values are the same as before.
        """
        state = self._state
        allowed = self._options["restarts"]
        last = reason is not None and allowed != "unlimited" and state.start >= allowed
        enough = _WORTH * state.es.population_size <= self._limits.evaluations_left()
        if not (last and enough) or state.noise.noisy:
            return reason
        with state.changing():
            again = state.es.look_again()
        if again:
            self._follow()
        return None if again else reason
