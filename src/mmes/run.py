"""The loop: ask, evaluate, tell, observe, save, stop, restart. There is no other."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmes import checkpoint as files
from mmes import run_state
from mmes.display import watchers
from mmes.errors import (
    CheckpointError,
    CheckpointExists,
    EvaluationError,
    FailedEvaluationWarning,
    warn_user,
)
from mmes.evaluate.choose import make_evaluator
from mmes.interrupts import Interrupts
from mmes.manifolds import Manifold
from mmes.observe import History, Observers, Progress
from mmes.options import validated
from mmes.randomness import fresh_seed
from mmes.restarts import RESTARTABLE, restart_options, start_point, start_seed
from mmes.result import Result
from mmes.run_options import EVALUATION, RUN_OPTIONS, check_together
from mmes.saving import Saver
from mmes.start import checked_manifold, checked_start
from mmes.stopping import StopReason
from mmes.strategies import AskTell, get_strategy


class Run:
    """One call of `minimize` as an object, for those who want to stop it from another thread.

    Parameters are those of `minimize`, and:

    Parameters
    ----------
    state : dict, optional
        A state of the same run, as `state` returned it, to go on from.
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
        strategy: str | type[AskTell] = "mmes",
        callback: Any = None,
        progress: bool = False,
        catch: tuple[type[BaseException], ...] = (),
        workers: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        state: dict[str, Any] | None = None,
        **options: Any,
    ):
        self._strategy_type = get_strategy(strategy)
        table = RUN_OPTIONS + self._strategy_type.option_table()
        chosen = validated(table, options, f"minimize with strategy {self._strategy_type.name!r}")
        self._limits = {option.name: chosen.pop(option.name) for option in RUN_OPTIONS}
        check_together(self._limits, checkpoint)
        self._seed_was_given = chosen["seed"] is not None
        if chosen["seed"] is None:
            chosen["seed"] = fresh_seed()
        self.seed: int = chosen["seed"]
        self.notes: dict[str, Any] = {}
        """Words and numbers of the caller's own, kept in the checkpoint."""
        self._options = chosen
        self._observers = Observers(watchers(callback, progress))
        kind = self._strategy_type
        self._manifold = checked_manifold(manifold, kind.name, kind.on_manifolds, bounds, scale)
        self._from = checked_start(x0, sigma0, bounds, scale, self._manifold)
        self._evaluator = make_evaluator(
            fun,
            workers,
            catch,
            {option.name: self._limits[option.name] for option in EVALUATION},
        )
        self._interrupts = Interrupts()
        self._stop_requested = threading.Event()
        self._history = History()
        # What finished starts, and processes before this one, have left behind.
        self._start = 0
        self._best: tuple[float, NDArray[np.float64]] | None = None
        self._spent: dict[str, Any] = {
            "evaluations": 0,
            "generations": 0,
            "failed": 0,
            "retried": 0,
            "seconds": 0.0,
        }
        self._warned = False
        state = self.keep_in(checkpoint) or state
        if state is None:
            self._es = self._begin(0)
            self._first_population_size = self._es.population_size
        else:
            run_state.adopt(self, state)

    def request_stop(self) -> None:
        """End the run at the end of the current generation; may be called from any thread."""
        self._stop_requested.set()

    def run(self) -> Result:
        """Run to the end and return the result.

        Whatever ends the run before its time (an error, Ctrl-C, SIGTERM), the state of the last
        completed generation is written to the checkpoint first.
        """
        self._began = time.monotonic()
        self._saver.begin(self.generations)
        result = None
        try:
            with self._interrupts:
                try:
                    self._follow()
                    reason = self._to_the_end()
                    self._saver.save(self.generations, self._state_to_save)
                    self._interrupts.check()
                    result = self._result(reason, self._reevaluated())
                    self._say_farewell(result)
                    return result
                except BaseException as error:
                    self._leave(error)
                    raise
        except (KeyboardInterrupt, SystemExit) as error:
            if getattr(error, "result", None) is None:  # a signal after all was done
                error.result = result  # type: ignore[union-attr]
            raise
        finally:
            self._evaluator.close()
            self._observers.close()

    def _to_the_end(self) -> StopReason:
        # A resumed run may have been at its end.
        reason = self._limit_reached() if self.generations else None
        while True:
            if reason in RESTARTABLE and self._may_restart():
                self._restart()
                reason = None
            if reason is not None:
                return reason
            reason = self._generation()
            self._saver.save_if_due(self.generations, self._state_to_save)

    # One generation

    def _generation(self) -> StopReason | None:
        """Ask, evaluate, tell, observe; return why the run should end, if it should."""
        es = self._es
        rows = int(min(es.rows, self._evaluations_left()))
        with self._evaluator_at_work():
            self._evaluator.begin(es.generation, rows)
        points = es.ask()
        values = self._evaluate(points[:rows], es.generation, self._time_is_left)
        complete = values.size == points.shape[0]
        del points  # so that its memory can be used again
        with self._unsettled():
            es.tell(values, None if complete else np.arange(values.size))
            self._partial = 0 if complete else values.size
            if complete:
                self._record()
        if complete:
            with self._evaluator_at_work():
                self._evaluator.told(values)
        self._warn_of_failures(values)
        if self._target_reached():
            return StopReason.TARGET_REACHED
        if not complete:
            return StopReason.TIME_LIMIT if not self._time_is_left() else StopReason.MAX_EVALUATIONS
        if self._observers:
            with self._interrupts.interruptible():
                if self._observers.ask_to_stop(self._progress()):
                    return StopReason.CALLBACK
        return self._limit_reached()

    def _evaluate(
        self, points: NDArray[np.float64], generation: int, keep_going: Callable[[], bool]
    ) -> NDArray[np.float64]:
        def going() -> bool:
            self._interrupts.check()
            return keep_going()

        with self._evaluator_at_work():
            return self._evaluator.evaluate(points, generation, going)

    def _evaluator_at_work(self) -> contextlib.AbstractContextManager[None]:
        # One that has locks or processes of its own must not be interrupted just anywhere.
        held = self._evaluator.polls
        return self._interrupts.guarded() if held else self._interrupts.interruptible()

    def _limit_reached(self) -> StopReason | None:
        limits = self._limits
        if self._target_reached():
            return StopReason.TARGET_REACHED
        if self._stop_requested.is_set():
            return StopReason.REQUESTED
        if self._evaluations_left() <= 0:
            return StopReason.MAX_EVALUATIONS
        if limits["max_generations"] is not None and self.generations >= limits["max_generations"]:
            return StopReason.MAX_GENERATIONS
        if not self._time_is_left():
            return StopReason.TIME_LIMIT
        return self._es.stop()

    def _progress(self) -> Progress:
        return Progress(
            evaluations=self.evaluations,
            generation=self.generations,
            best_value=self._best_so_far()[0],
            sigma=self._es.sigma,
            start=self._start,
            elapsed=self._elapsed(),
            max_evaluations=self._limits["max_evaluations"],
            time_limit=self._limits["time_limit"],
            _best_x=lambda: self._best_so_far()[1],
            _mean=lambda: self._es.mean,
            _request_stop=self.request_stop,
        )

    def _say_farewell(self, result: Result) -> None:
        if self._observers:
            with self._interrupts.interruptible():
                self._observers.ask_to_stop(
                    replace(
                        self._progress(),
                        evaluations=result.nfev,
                        final=True,
                        reason=result.reason,
                    )
                )

    def _warn_of_failures(self, values: NDArray[np.float64]) -> None:
        if not self._warned and np.isnan(values).any():
            self._warned = True
            warn_user(
                f"an evaluation gave NaN or failed (generation {self.generations}); failed "
                "candidates rank "
                "last. This is said once a run; Result.failed counts them",
                FailedEvaluationWarning,
            )

    # Starts and restarts

    def _begin(self, start: int) -> AskTell:
        options = self._options
        if start > 0:
            options = restart_options(options, self._first_population_size, start)
        place = self._from
        return self._strategy_type(
            start_point(place.x0, place.reach, place.box, self.seed, start, self._manifold),
            place.sigma0,
            bounds=place.box,
            scale=place.scale,
            manifold=self._manifold,
            **options | {"seed": start_seed(self.seed, start)},
        )

    def _may_restart(self) -> bool:
        allowed = self._limits["restarts"]
        return allowed == "unlimited" or self._start < allowed

    def _restart(self) -> None:
        es = self._es
        with self._unsettled():
            self._best = self._best_so_far()
            self._spent["evaluations"] += es.evaluations
            self._spent["generations"] += es.generation
            self._spent["failed"] += es.failed_evaluations
            self._start += 1
            self._es = self._begin(self._start)
        self._follow()

    def _follow(self) -> None:
        with self._evaluator_at_work():
            self._evaluator.follow(self._es)

    # Bookkeeping

    @property
    def evaluations(self) -> int:
        """Evaluations so far, over all starts."""
        return self._spent["evaluations"] + self._es.evaluations + self._partial

    @property
    def generations(self) -> int:
        """Completed generations so far, over all starts."""
        return self._spent["generations"] + self._es.generation

    _partial = 0  # evaluations of a last generation that was not completed
    _began = math.nan
    _settled = True

    @property
    def target(self) -> float | None:
        """The value at which the run ends, if one was given."""
        return self._limits["target"]

    def _target_reached(self) -> bool:
        return self.target is not None and self._best_so_far()[0] <= self.target

    def _best_so_far(self) -> tuple[float, NDArray[np.float64]]:
        here = self._es.best_value
        if self._best is not None and not here < self._best[0]:
            return self._best
        return here, self._es.best_x

    def _record(self) -> None:
        self._history.record(self.evaluations, self._best_so_far()[0], self._es.sigma, self._start)

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _time_is_left(self) -> bool:
        limit = self._limits["time_limit"]
        return limit is None or self._elapsed() < limit

    def _evaluations_left(self) -> float:
        budget = self._limits["max_evaluations"]
        if budget is None:
            return math.inf
        return budget - 2 * self._limits["reevaluations"] - self.evaluations

    # The end

    def _reevaluated(self) -> dict[str, NDArray[np.float64]] | None:
        count = self._limits["reevaluations"]
        if not count:
            return None
        centre = (
            self._es.mean if self._from.box is None else np.clip(self._es.mean, *self._from.box)
        )
        places = np.repeat([self._best_so_far()[1], centre], count, axis=0)
        places.flags.writeable = False
        values = self._evaluate(places, self.generations, lambda: True)
        return {"x": values[:count], "mean": values[count:]}

    def _leave(self, error: BaseException) -> None:
        """End early: cancel what runs, save the state, tell what was found and how to go on."""
        self._evaluator.close()
        saved = False
        if self._settled and not isinstance(error, CheckpointError):
            saved = self._saver.save(self.generations, self._state_to_save)
        if saved:
            error.add_note(
                f"mmes: the state after generation {self.generations} is saved; go on with "
                f"mmes.resume({str(self._saver.path)!r}, fun)"
            )
        if isinstance(error, KeyboardInterrupt | SystemExit | EvaluationError):
            error.result = self._result(StopReason.INTERRUPTED)  # type: ignore[union-attr]

    def _result(
        self, reason: StopReason, reevaluated: dict[str, NDArray[np.float64]] | None = None
    ) -> Result:
        best_value, best_x = self._best_so_far()
        reached = reason is StopReason.TARGET_REACHED
        if self._partial:
            self._record()
        again = 0 if reevaluated is None else sum(map(len, reevaluated.values()))
        return Result(
            x=np.array(best_x),
            fun=best_value,
            nfev=self.evaluations + again,
            nit=self.generations,
            success=reached or (self._limits["target"] is None and reason.converged),
            status=reason.status,
            message=reason.sentence,
            reason=reason,
            mean=np.array(self._es.mean),
            sigma=self._es.sigma,
            seed=self.seed,
            starts=self._start + 1,
            failed=self._spent["failed"] + self._es.failed_evaluations,
            time=self._spent["seconds"] + self._elapsed(),
            history=self._history.columns(),
            strategy=self._es.name,
            options=dict(self._es.options) | {"seed": self.seed},
            kernel=self._es.kernel.name,
            retried=self._spent["retried"] + self._evaluator.retried,
            reevaluated=reevaluated,
        )

    # State and checkpoints

    def state(self, copy: bool = True) -> dict[str, Any]:
        """Return the state after the last completed generation: JSON-able entries and "arrays".

        Parameters
        ----------
        copy : bool
            Whether the arrays are copied; without, they change as the run goes on.
        """
        return run_state.taken(self, copy)

    @classmethod
    def from_state(cls, state: dict[str, Any], fun: Callable[[Any], Any], **changes: Any) -> Run:
        """Return a run that goes on from a state; `changes` are those that `mmes.resume` takes."""
        return run_state.restored(cls, state, fun, changes)

    def _state_to_save(self) -> dict[str, Any]:
        return self.state(copy=False)

    def keep_in(
        self,
        path: str | os.PathLike[str] | None,
        over: str | os.PathLike[str] | None = None,
    ) -> dict[str, Any] | None:
        """Write checkpoints to `path` from now on.

        If there is one already, its state is returned (``resume="auto"``) or it is refused, unless
        it is the one `over`.
        """
        limits = self._limits
        self._saver = Saver(
            path,
            limits["checkpoint_seconds"],
            limits["checkpoint_generations"],
            limits["checkpoint_strict"],
        )
        found = self._saver.path
        if found is None or not files.exists(found) or (over and found == Path(over).absolute()):
            return None
        if limits["resume"] != "auto":
            raise CheckpointExists(
                f"there is a checkpoint at {found} already: go on from it with mmes.resume or "
                "resume='auto', "
                "choose another name, or delete it"
            )
        entries, arrays = files.read(found)
        return entries | {"arrays": arrays}

    @contextlib.contextmanager
    def _unsettled(self) -> Iterator[None]:
        # A signal handler of the user's own may raise anywhere; a state that is half changed must
        # not be saved.
        self._settled = False
        yield
        self._settled = True
