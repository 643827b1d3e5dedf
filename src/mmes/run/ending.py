"""The end of a run: the last evaluations, the result, and what an early error tells."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from mmes.base.reasons import StopReason
from mmes.errors import CheckpointError, EvaluationError, note
from mmes.evaluate.protocol import location_of
from mmes.run.evaluation import Evaluation
from mmes.run.limits import Limits
from mmes.run.reevaluation import Reevaluation
from mmes.run.restarts import RESTARTABLE
from mmes.run.result import Result, result_of
from mmes.run.saving import Saver
from mmes.run.settings import RunSettings
from mmes.run.state import RunState, Spent


class Ending:
    """What a run does where a search ends, after its last generation, or after an error.

    `save` writes the checkpoint, if the run has one, and returns whether it did.
    """

    def __init__(
        self,
        settings: RunSettings,
        state: RunState,
        limits: Limits,
        evaluation: Evaluation,
        save: Callable[[], bool],
    ):
        self._settings, self._options = settings, settings.limits
        self._state, self._limits, self._evaluation = state, limits, evaluation
        self._save = save

    def look_at_mean(self, reason: StopReason | None) -> StopReason | None:
        """With constraints, see whether a search that has converged did so at a feasible point.

        That is its mean, or one next to it that satisfies linear constraints to rounding. Return
        why the run ends: by its budget, where nothing is left to look.
        """
        state, handled = self._state, self._state.constraints
        if handled is None or handled.settled is not None or reason is None:
            return reason
        if not (reason in RESTARTABLE or reason is StopReason.NOISY):
            return reason
        if self._limits.evaluations_left() < 1:
            judged = state.noise.noisy or not reason.converged  # at the end, or by its best point
            return reason if judged else StopReason.MAX_EVALUATIONS
        es = state.es
        exact = handled.exact_mean(es.mean, self._settings.space)
        mean = es.mean if exact is None else es.in_shape(es.kernel.from_host(exact))
        points, table = self._evaluation.values_at([mean], 1)
        with state.changing():
            state.take_measured(points, table[0])
            handled.end_at(table[0])
        return reason

    def make_exact(self, reason: StopReason) -> None:
        """Move the best point so that it satisfies linear constraints to rounding."""
        state, handled = self._state, self._state.constraints
        hurried = reason in (StopReason.TIME_LIMIT, StopReason.REQUESTED)
        if handled is None or hurried or state.noise.noisy or self._limits.evaluations_left() < 1:
            return
        x = handled.exact(self._settings.space)
        if x is not None:
            point = state.es.in_shape(state.es.kernel.from_host(x))
            points, table = self._evaluation.values_at([point], 1)
            with state.changing():
                state.spent += Spent(1, failed=int(np.isnan(table[0]).any()))
                handled.take_exact(points[0], table[0], state.es.kernel, self._options["target"])

    def evaluate_again(self) -> None:
        """Evaluate the points that may be returned again, where that is wanted and was not done."""
        state, given = self._state, self._options["reevaluations"]
        if state.again is not None and given in (None, state.again.x.size):
            return  # a run that had ended was resumed
        if state.ends_on_batch:
            self._evaluate_on_batch()
            return
        state.go_on()
        count = self._limits.evaluations_again()
        if count:
            points = [state.best_x, state.es.mean, state.average.point]
            _, values = self._evaluation.values_at(points[: self._limits.contenders], count)
            state.end_with(state.averaged(values))
            state.warn_of_failures(values)
            self._save()

    def _evaluate_on_batch(self) -> None:
        """Evaluate the mean on the last batch, within the budget."""
        state, batches = self._state, self._evaluation.batches
        budget = self._options["max_evaluations"]
        if batches is None or (budget is not None and state.evaluations >= budget):
            return
        if batches.seen < 0 and state.generations:  # a process before this one saw it
            self._evaluation.see_batch(state.generations - 1)
        if batches.seen >= 0:
            _, values = self._evaluation.values_at([state.es.mean], 1)
            state.end_with(Reevaluation(np.empty(0), values[:, 0].copy()))
            state.warn_of_failures(values)
            self._save()

    def validate(self, reason: StopReason) -> StopReason:
        """Take the validation loss of the last mean; it may reach the target."""
        judge = self._state.validation
        if judge is None or judge.at_end is not None:
            return reason
        with self._evaluation.interrupts.interruptible():
            self._state.validate_end()
        if judge.at_end is not None:
            self._save()
        return StopReason.TARGET_REACHED if self._limits.target_reached() else reason

    def judge_average(self, reason: StopReason) -> StopReason:
        """Return that the target was reached where the averages of a noisy run say so."""
        state, target = self._state, self._options["target"]
        if target is None or state.again is None or not state.noise.noisy:
            return reason
        if state.validation is not None or state.violates(reason):
            return reason
        return StopReason.TARGET_REACHED if state.again.surely() <= target else reason

    def now(self) -> Spent:
        """Return what this process has spent besides evaluations."""
        retried = self._evaluation.evaluator.retried
        return Spent(seconds=self._limits.elapsed, retried=retried)

    def result(self, reason: StopReason) -> Result:
        """Return the result of a run that ends for this reason."""
        state, others = self._state, []
        if reason is not StopReason.INTERRUPTED:
            constrained = state.constraints is not None
            # A single value of noise has reached nothing.
            target = None if constrained or state.noise.noisy else self._options["target"]
            others = [*state.es.reasons(target), *self._limits.spent()]
            if constrained and state.violates(reason):
                others, reason = [reason, *others], StopReason.INFEASIBLE
        reasons = tuple(dict.fromkeys((reason, *others)))
        return result_of(state, self._settings, self.now(), reasons)

    def save_and_annotate(self, error: BaseException, saver: Saver) -> None:
        """After an error: save the state, tell what was found and how to continue."""
        state, saved = self._state, False
        if state.settled and not isinstance(error, CheckpointError):
            try:
                saved = self._save()
            except Exception as second:
                note(error, second)
        if saved:
            error.add_note(
                f"mmes: the state after generation {state.generations} is saved; resume it with "
                f"mmes.resume({str(saver.path)!r}, fun)"
            )
        place = location_of(error)
        if place:
            error.add_note(f"mmes: this was {place}")
        if place or isinstance(error, KeyboardInterrupt | SystemExit | EvaluationError):
            attach(error, self.result(StopReason.INTERRUPTED))
        elif state.settled:  # batches, validation or a callback; a fault here must not hide that
            with contextlib.suppress(Exception):
                attach(error, self.result(StopReason.INTERRUPTED))


def attach(error: BaseException, result: Result | None) -> None:
    """Give an error the result; a class of the user's may refuse it."""
    with contextlib.suppress(Exception):
        error.result = result  # type: ignore[attr-defined]


def close_all(closable: list[Any], first: BaseException | None, result: Result | None) -> None:
    """Close all of them; the first error is raised, and later ones are noted in it.

    `first` is the error that ended the run, if one did; it is raised elsewhere. An error that is
    raised here gets the result so far.
    """
    raised = first
    for one in closable:
        try:
            one.close()
        except Exception as error:
            if raised is None:
                raised = error
            else:
                note(raised, error)
    if raised is not None and raised is not first:
        attach(raised, result)
        raise raised
