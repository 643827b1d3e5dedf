"""The main loop: ask, evaluate, tell, observe, save, stop, restart."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mmes.base.arrays import Vector
from mmes.base.interrupts import Interrupts
from mmes.base.reasons import StopReason
from mmes.errors import EvaluationError, RestartWarning, warn_user
from mmes.evaluate.adapter import is_evaluator
from mmes.evaluate.arguments import with_arguments, with_batches
from mmes.evaluate.choose import make_evaluator
from mmes.evaluate.protocol import HoldsDevices, MakesEvaluator
from mmes.evaluate.rows import RowsOnDemand
from mmes.kernels.devices import check_workers
from mmes.run.ending import Ending, attach, close_all
from mmes.run.evaluation import Evaluation
from mmes.run.growth import Growth
from mmes.run.limits import Limits
from mmes.run.noise import Verdict
from mmes.run.observing.progress import Observers, Progress
from mmes.run.restarts import RESTARTABLE
from mmes.run.result import Result
from mmes.run.resuming import continued, resumed_arguments
from mmes.run.saving import Saver, checked_notes, restored_state, saved_state
from mmes.run.settings import RunSettings
from mmes.run.state import Code, RunState, Spent
from mmes.spaces.manifolds import Manifold
from mmes.strategies import Optimizer

# Said rather than that a stop was requested.
_FIRST = (StopReason.TARGET_REACHED, StopReason.UNBOUNDED)


class Run:
    """A run of `minimize` as an object, which can be stopped from another thread.

    Parameters are those of `minimize`, and:

    Parameters
    ----------
    state : dict, optional
        A state of the same run, as returned by `state`, to continue from.
    """

    def __init__(
        self,
        fun: Callable[[Any], Any] | None,
        x0: ArrayLike | None = None,
        sigma0: float | None = None,
        *,
        bounds: Any = None,
        scale: ArrayLike | None = None,
        manifold: Manifold | None = None,
        constraints: Any = None,
        integers: Any = None,
        strategy: str | type[Optimizer] = "auto",
        callback: Any = None,
        progress: bool = False,
        args: Any = (),
        catch: tuple[type[BaseException], ...] = (),
        workers: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        batches: Any = None,
        validation: Any = None,
        state: dict[str, Any] | None = None,
        **options: Any,
    ):
        elsewhere = "replicas can follow it" if isinstance(workers, MakesEvaluator) else ""
        where = {"x0": x0, "sigma0": sigma0, "bounds": bounds, "scale": scale, "manifold": manifold}
        where["integers"] = integers
        objective = with_batches(with_arguments(fun, args), batches, workers)
        data = None
        # Data for training is for few runs, and its modules are imported for these.
        if batches is not None:
            from mmes.run.training.batches import WHY, Batches, options_for_batches

            data, elsewhere = Batches.checked(batches, objective, workers), elsewhere or WHY
            code = {"manifold": manifold, "constraints": constraints}
            options = options_for_batches(strategy, code, options)
        settings = RunSettings.checked(where, strategy, checkpoint, options, elsewhere)
        self._observers = Observers(callback, progress)
        apart = isinstance(workers, HoldsDevices) and workers.holds_devices
        check_workers(workers, apart or is_evaluator(workers), settings.options.get("device"))
        held = settings.constraints(constraints, workers)
        judge = None
        if validation is not None:
            from mmes.run.training.validation import Validation

            judge = Validation.checked(validation, settings.limits, held)
        settings.check_limits(data is not None, judge is not None)
        if held is not None and callable(objective):
            objective = held.objective(objective, settings.evaluation["vectorized"])
        self._evaluator = make_evaluator(
            objective, workers, catch, settings.evaluation, rows=held is not None
        )
        self._saver = Saver(checkpoint, settings.limits)
        if settings.limits["resume"] == "auto":
            state = self._saver.read() or state
        else:
            self._saver.refuse_existing()
        if state is not None:
            settings = continued(settings, state)
        self._settings, self._options = settings, settings.limits
        code = Code(held, data is not None, judge)
        self._state = (
            RunState.begun(settings, code)
            if state is None
            else restored_state(settings, state, code)
        )
        self._limits = Limits(self._options, self._state)
        self._interrupts = Interrupts()
        self._evaluation = evaluation = Evaluation(
            self._evaluator, self._interrupts, settings, self._state, data
        )
        self._growth = Growth(
            self._options, self._state, self._limits, evaluation.values_at, self._follow
        )
        self._ending = Ending(settings, self._state, self._limits, evaluation, self._save)
        self._stop_requested = threading.Event()
        self._rows: int | None = None  # of the generation that has begun

    @property
    def seed(self) -> int:
        """The seed."""
        return self._settings.seed

    @property
    def target(self) -> float | None:
        """The value at which the run ends, if one was given."""
        return self._options["target"]

    @property
    def notes(self) -> dict[str, Any]:
        """Notes of the caller, stored in the checkpoint; a copy.

        Setting them raises TypeError if JSON cannot represent them.
        """
        return checked_notes(self._state.notes)

    @notes.setter
    def notes(self, notes: dict[str, Any]) -> None:
        self._state.notes = checked_notes(notes)

    @property
    def evaluations(self) -> int:
        """Evaluations so far, over all starts."""
        return self._state.evaluations

    @property
    def generations(self) -> int:
        """Completed generations so far, over all starts."""
        return self._state.generations

    def request_stop(self) -> None:
        """Stop the run after the current generation; may be called from any thread."""
        self._stop_requested.set()

    def run(self) -> Result:
        """Run until the end and return the result.

        If an error, Ctrl-C or SIGTERM ends the run early, the state of the last completed
        generation is written to the checkpoint first. Call it again to continue a run that has
        ended; its time limit starts again.
        """
        self._limits.begin()
        self._saver.begin(self.generations)
        self._state.es.skip()  # what a run before this one left incomplete
        self._state.partial, self._rows = Spent(), None
        result = first = None
        try:
            with self._interrupts:
                try:
                    self._follow()
                    self._evaluate_x0()
                    reason = self._loop()
                    self._ending.make_exact(reason)
                    self._save()
                    self._interrupts.check()
                    self._ending.evaluate_again()
                    reason = self._ending.judge_average(self._ending.validate(reason))
                    result = self._ending.result(reason)
                    self._observe_end(result)
                    return result
                except BaseException as error:
                    first = error
                    self._ending.save_and_annotate(error, self._saver)
                    raise
        except (KeyboardInterrupt, SystemExit) as error:
            if error is not first:  # a signal after all was done
                attach(error, result)
            first = error
            raise
        finally:
            self._state.spent += Spent(seconds=self._limits.elapsed)
            self._limits.end()
            self._stop_requested.clear()
            close_all([self._evaluator, self._observers], first, result)

    def _loop(self) -> StopReason:
        # A resumed run may have been at its end, or the start point reaches the target.
        self._validate()
        begun = self.evaluations or self._state.validation is not None
        reason = self._limit_reached() if begun else None
        # Or an error came while it asked about noise, or nothing could be done about that then.
        reason = self._ending.look_at_mean(self._growth.resumed(reason))
        while True:
            if reason in RESTARTABLE and not self._limits.spent() and self._restart():
                reason = None
            reason = reason or self._limits.let_go_on()
            if reason is not None:
                return reason
            reason = self._growth.after(self._generation())
            reason = self._ending.look_at_mean(reason)
            if reason is None and not self._measures_centre:
                self._begin()  # so that work elsewhere goes on while the state is written
            self._saver.save_if_due(self.generations, self._state_to_save)

    def _evaluate_x0(self) -> None:
        """Evaluate the start point that was given, unless the strategy does."""
        state, wanted = self._state, self._options["evaluate_x0"]
        given = self._settings.space.x0 is not None
        if wanted and given and not (state.evaluations or state.es.evaluates_start):
            try:
                (x,), value = self._evaluation.values_at([state.es.best_x], 1)
            except EvaluationError as error:
                if error.x is not None:  # the objective raised, not a worker
                    error.add_note("mmes: this was the start point x0, which is evaluated first")
                raise
            with state.changing():
                if state.constraints is None:
                    state.take_start(x, value.item())
                else:
                    state.take_measured(x[None], value[0])
            state.warn_of_failures(value[..., 0], self._evaluator.caught)

    # One generation

    def _generation(self) -> StopReason | None:
        """Ask, evaluate, tell, observe; return why the run should end, if it should."""
        state, es = self._state, self._state.es
        centre = None
        if self._measures_centre:
            self._evaluation.see_batch(es.generation)
            centre = self._evaluation.values_at([es.mean], 1)[1][0]
        rows, self._rows = self._begin(int(centre is not None)), None
        sigma, few = es.sigma, es.rows_at_once
        whole = few == es.rows
        if not whole:
            es.ask(rows=())  # replicas make candidates by themselves, and nobody asks for them here
        points = es.ask()[:rows] if whole else RowsOnDemand(es.ask, (rows, es.dimension), few)
        values = self._evaluation.evaluate(points, es.generation, self._limits.time_is_left)
        complete = len(values) == es.rows
        with state.changing():
            if state.constraints is not None:
                values = state.constraints.take(points, values, es.kernel)
            del points  # so that its memory can be used again
            self._tell(values, sigma, centre)
        if complete:
            self._evaluation.told(values)
            self._validate()
        state.warn_of_failures(values, self._evaluator.caught)
        if self._limits.target_reached():
            reason = self._growth.confirmed(StopReason.TARGET_REACHED)
            if reason is StopReason.TARGET_REACHED:
                return reason
        if not complete:
            return (
                StopReason.TIME_LIMIT
                if not self._limits.time_is_left()
                else StopReason.MAX_EVALUATIONS
            )
        if self._observers:
            with self._interrupts.interruptible():
                if self._observers.ask_to_stop(self._progress()):
                    return StopReason.CALLBACK
        return self._growth.confirmed(self._limit_reached())

    def _tell(self, values: Vector, sigma: float, centre: Vector | None) -> None:
        """Tell the values of a generation that was drawn with `sigma`, and take note of it.

        `centre` is what was measured at its mean, if it was.
        """
        state, es = self._state, self._state.es
        handled, complete = state.constraints, len(values) == es.rows
        es.tell(values, None if complete else np.arange(values.size))
        beside = Spent()
        if centre is not None:
            beside = Spent(1, failed=int(np.isnan(centre).any()))
        state.partial = Spent()
        if not complete:
            state.end_within(values, beside)
            return
        state.spent += beside
        state.question = Verdict.ASKING  # until `Growth` has looked at it
        if es.grows:
            # What the multipliers do is no progress here.
            seen = values if handled is None else values + handled.offset
            state.noise.observe(seen, sigma, es.options.get("damping", 1.0))
        changed = None if handled is None else handled.adapt(centre, state.noise.noisy)
        if changed is not None:
            es.revalue(changed)
        state.see_level(values)
        state.record()

    def _begin(self, measured: int = 0) -> int:
        """Let the evaluator begin a generation, unless it has; return its number of rows.

        `measured` evaluations of it are made already.
        """
        if self._rows is None:
            es = self._state.es
            self._rows = int(min(es.rows, self._limits.evaluations_left() - measured))
            self._evaluation.begin(es.generation, self._rows)
        return self._rows

    @property
    def _measures_centre(self) -> bool:
        """Whether the mean is measured too: under noise the multipliers need what is true of it."""
        noisy = self._state.noise.noisy or self._options["noise"] == "yes"
        return self._state.constraints is not None and noisy and self._limits.evaluations_left() > 1

    def _validate(self) -> None:
        if self._state.validation is not None:
            with self._interrupts.interruptible():
                self._state.validate()

    def _follow(self) -> None:
        with self._evaluation.guard:
            es = self._state.es
            if not self.generations and not self._state.start:
                room = self._evaluator.memory_limit()
                if room is not None and room[0] < es.planned_bytes:
                    self._state.es = self._settings.smaller_optimizer(es, *room)
            self._evaluator.follow(self._state.es)

    def _restart(self) -> bool:
        """Begin another start, if one is allowed and fits into memory; return whether it did."""
        state, allowed = self._state, self._options["restarts"]
        if allowed != "unlimited" and state.start >= allowed:
            return False
        try:
            with state.changing(MemoryError):
                state.begin_start(self._settings)
        except MemoryError as error:
            warn_user(
                f"restart {state.start + 1} does not fit into memory ({error}); the run ends with "
                "what was found",
                RestartWarning,
            )
            return False
        self._follow()
        return True

    def _limit_reached(self) -> StopReason | None:
        limit = self._limits.reached()
        if self._stop_requested.is_set() and limit not in _FIRST:
            return StopReason.REQUESTED
        handled = self._state.constraints
        if limit is None and handled is not None and handled.hopeless:
            return StopReason.INFEASIBLE
        if limit is None and handled is not None and handled.ends.converged:
            return StopReason.CONVERGED_F
        judge = self._state.validation
        if limit is None and judge is not None and judge.exhausted:
            return StopReason.VALIDATION
        return limit or self._state.es.stop()

    # What is seen from outside

    def _progress(self) -> Progress:
        state = self._state
        return Progress(
            evaluations=state.evaluations,
            generation=state.generations,
            best_value=state.best_value,
            sigma=state.es.sigma,
            start=state.start,
            elapsed=self._limits.elapsed,
            strategy=self._settings.strategy_in_words,
            max_evaluations=self._options["max_evaluations"],
            time_limit=self._options["time_limit"],
            _best_x=lambda: state.best_x,
            _mean=lambda: state.es.mean,
            _request_stop=self.request_stop,
            evaluator=self._evaluator.words,
            validation=None if state.validation is None else state.validation.last,
        )

    def _observe_end(self, result: Result) -> None:
        if self._observers:
            end = {"evaluations": result.nfev, "final": True, "reason": result.reason}
            with self._interrupts.interruptible():
                self._observers.ask_to_stop(replace(self._progress(), **end))

    # State and checkpoints

    def state(self, copy: bool = True) -> dict[str, Any]:
        """Return the state after the last completed generation: JSON-able entries and "arrays".

        Without `copy` the arrays change as the run continues.
        """
        return saved_state(self._state, self._settings, self._ending.now(), copy)

    @classmethod
    def from_state(
        cls, state: dict[str, Any], fun: Callable[[Any], Any] | None, **changes: Any
    ) -> Run:
        """Return a run that goes on from a state; `changes` are those that `mmes.resume` takes."""
        return cls(fun, state=state, **resumed_arguments(state, changes))

    def write_to(
        self, path: str | os.PathLike[str], over: str | os.PathLike[str] | None = None
    ) -> None:
        """Write checkpoints to `path` from now on; one that is there is refused, unless `over`."""
        self._saver = Saver(path, self._options)
        self._saver.refuse_existing(over)

    def _save(self) -> bool:
        return self._saver.save(self.generations, self._state_to_save)

    def _state_to_save(self) -> dict[str, Any]:
        return self.state(copy=False)
