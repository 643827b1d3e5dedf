"""The loop: ask, evaluate, tell, observe, stop, restart. There is no other."""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmes.errors import FailedEvaluationWarning
from mmes.evaluate.protocol import Evaluator
from mmes.evaluate.serial import SerialEvaluator, VectorizedEvaluator
from mmes.manifolds import Manifold
from mmes.observe import History, Progress
from mmes.options import Option, validated
from mmes.randomness import fresh_seed
from mmes.restarts import RESTARTABLE, restart_options, start_point, start_seed
from mmes.result import Result
from mmes.start import (
    checked_bounds,
    checked_inside,
    checked_manifold,
    checked_point,
    checked_scale,
    checked_sigma,
)
from mmes.stopping import StopReason
from mmes.strategies import AskTell, get_strategy

RUN_OPTIONS = (
    Option("target", float, "Stop when a value at or below this is found.", default_text="none"),
    Option(
        "max_evaluations",
        int,
        "Budget: never one evaluation more.",
        default_text="unlimited",
        low=1,
    ),
    Option(
        "max_generations",
        int,
        "Stop after this many generations, over all starts.",
        default_text="unlimited",
        low=1,
    ),
    Option(
        "time_limit",
        float,
        "Seconds; asked after every evaluation.",
        default_text="unlimited",
        low=0,
        low_open=True,
    ),
    Option(
        "restarts",
        int,
        "Restarts after stagnation, each from a new point, population size and damping doubled.",
        default=0,
        low=0,
        choices=("unlimited",),
    ),
    Option(
        "vectorized",
        bool,
        "Whether the objective takes a (k, n) array and returns k values.",
        default=False,
    ),
)

# Where bounds are all there is to tell the size of a step: the share of the box that the paper's
# experiments use.
SIGMA_SHARE_OF_BOX = 0.3


def minimize(
    fun: Callable[[Any], Any],
    x0: ArrayLike | None = None,
    sigma0: float | None = None,
    *,
    bounds: Any = None,
    scale: ArrayLike | None = None,
    manifold: Manifold | None = None,
    strategy: str | type[AskTell] = "mmes",
    callback: Callable[[Progress], Any] | None = None,
    catch: tuple[type[BaseException], ...] = (),
    **options: Any,
) -> Result:
    """Minimise a function of many variables without gradients.

    Parameters
    ----------
    fun : callable
        The objective: one point in, one real number out; or, with ``vectorized=True``, a (k, n)
        array in, k numbers out. The arrays are read-only. NaN marks a failed evaluation: it ranks
        last.
    x0 : array_like, optional
        Start point. May be left out where `bounds` are finite: the start is then uniform in the
        box.
    sigma0 : float, optional
        Start mutation strength: about a third of the distance, along a typical variable, within
        which the optimum is expected. May be left out where `bounds` are finite: 0.3 of the width
        of the box.
    bounds : tuple, list or None
        (lower, upper), each a number or one entry a variable; or a list of one pair (low, high) a
        variable. The objective is never evaluated outside.
    scale : array_like, optional
        Typical size of each variable, where they have different units.
    manifold : Manifold, optional
        The space to search, one of `mmes.manifolds`. Points have its shape: x0, what the objective
        is given (k of them stacked with ``vectorized=True``), and the result. x0 may be left out:
        the start is then random.
    strategy : str or class
        The strategy that searches; see `mmes.strategies`.
    callback : callable, optional
        Called after every generation with a `Progress`; returning True or raising StopIteration
        ends the run.
    catch : tuple of exception types
        Exceptions of the objective that make a failed candidate instead of ending the run.
    **options
        `target`, `max_evaluations`, `max_generations`, `time_limit`, `restarts`, `vectorized`, and
        all options of the strategy (see ``mmes.MMES.option_table()``), among them `seed`.

    Returns
    -------
    Result
        The best point observed and how it was found.

    Examples
    --------
    >>> import mmes, numpy as np
    >>> result = mmes.minimize(lambda x: float(x @ x), np.ones(100), 1.0, target=1e-8, seed=1)
    >>> result.success
    True
    """
    return Run(
        fun,
        x0,
        sigma0,
        bounds=bounds,
        scale=scale,
        manifold=manifold,
        strategy=strategy,
        callback=callback,
        catch=catch,
        **options,
    ).run()


class Run:
    """One call of `minimize` as an object, for those who want to stop it from another thread.

    Parameters are those of `minimize`.
    """

    def __init__(
        self,
        fun: Callable[[Any], Any],
        x0: ArrayLike | None = None,
        sigma0: float | None = None,
        *,
        bounds: Any = None,
        scale: ArrayLike | None = None,
        manifold: Manifold | None = None,
        strategy: str | type[AskTell] = "mmes",
        callback: Callable[[Progress], Any] | None = None,
        catch: tuple[type[BaseException], ...] = (),
        **options: Any,
    ):
        if not callable(fun):
            raise TypeError(f"fun must be callable, not {fun!r} (a {type(fun).__name__})")
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable, not {callback!r}")
        self._strategy_type = get_strategy(strategy)
        table = RUN_OPTIONS + self._strategy_type.option_table()
        chosen = validated(table, options, f"minimize with strategy {self._strategy_type.name!r}")
        self._limits = {option.name: chosen.pop(option.name) for option in RUN_OPTIONS}
        endless = all(
            self._limits[name] is None for name in ("target", "max_evaluations", "time_limit")
        )
        if self._limits["restarts"] == "unlimited" and endless:
            raise ValueError("restarts='unlimited' needs a target, max_evaluations or time_limit")
        if chosen["seed"] is None:
            chosen["seed"] = fresh_seed()
        self.seed: int = chosen["seed"]
        self._options = chosen
        self._callback = callback
        strategy_type = self._strategy_type
        self._manifold = checked_manifold(
            manifold, strategy_type.name, strategy_type.on_manifolds, bounds, scale
        )
        self._place_start(x0, sigma0, bounds, scale)
        self._evaluator = self._make_evaluator(fun, catch)
        self._stop_requested = threading.Event()
        self._history = History()
        # What finished starts have left behind.
        self._start = 0
        self._best: tuple[float, NDArray[np.float64]] | None = None
        self._spent = {"evaluations": 0, "generations": 0, "failed": 0}
        self._warned = False
        self._es = self._begin(0)
        self._first_population_size = self._es.population_size

    def request_stop(self) -> None:
        """End the run at the end of the current generation; may be called from any thread."""
        self._stop_requested.set()

    def run(self) -> Result:
        """Run to the end and return the result."""
        self._began = time.monotonic()
        try:
            reason = None
            while reason is None:
                reason = self._generation()
                if reason in RESTARTABLE and self._may_restart():
                    self._restart()
                    reason = None
            return self._result(reason)
        finally:
            self._evaluator.close()

    # One generation

    def _generation(self) -> StopReason | None:
        """Ask, evaluate, tell, observe; return why the run should end, if it should."""
        es, limits = self._es, self._limits
        points = es.ask()
        left = math.inf
        if limits["max_evaluations"] is not None:
            left = limits["max_evaluations"] - self.evaluations
        rows = int(min(points.shape[0], left))
        values = self._evaluator.evaluate(points[:rows], es.generation, self._time_is_left)
        complete = values.size == points.shape[0]
        del points  # so that its memory can be used again
        es.tell(values, None if complete else np.arange(values.size))
        self._partial = 0 if complete else values.size
        self._warn_of_failures(values)
        self._history.record(self.evaluations, self._best_so_far()[0], es.sigma, self._start)
        return self._ended(complete, rows)

    def _ended(self, complete: bool, rows: int) -> StopReason | None:
        limits = self._limits
        if limits["target"] is not None and self._best_so_far()[0] <= limits["target"]:
            return StopReason.TARGET_REACHED
        if not complete:
            return StopReason.TIME_LIMIT if not self._time_is_left() else StopReason.MAX_EVALUATIONS
        if self._callback is not None and self._callback_says_stop():
            return StopReason.CALLBACK
        if self._stop_requested.is_set():
            return StopReason.REQUESTED
        if limits["max_evaluations"] is not None and self.evaluations >= limits["max_evaluations"]:
            return StopReason.MAX_EVALUATIONS
        if limits["max_generations"] is not None and self.generations >= limits["max_generations"]:
            return StopReason.MAX_GENERATIONS
        if not self._time_is_left():
            return StopReason.TIME_LIMIT
        return self._es.stop()

    def _callback_says_stop(self) -> bool:
        progress = Progress(
            evaluations=self.evaluations,
            generation=self.generations,
            best_value=self._best_so_far()[0],
            sigma=self._es.sigma,
            start=self._start,
            elapsed=self._elapsed(),
            max_evaluations=self._limits["max_evaluations"],
            _best_x=lambda: self._best_so_far()[1],
            _mean=lambda: self._es.mean,
            _request_stop=self.request_stop,
        )
        assert self._callback is not None
        try:
            return self._callback(progress) is True
        except StopIteration:
            return True

    def _warn_of_failures(self, values: NDArray[np.float64]) -> None:
        if not self._warned and np.isnan(values).any():
            self._warned = True
            warnings.warn(
                f"an evaluation gave NaN or failed (generation {self.generations}); failed "
                "candidates rank last. This is said once a run; Result.failed counts them",
                FailedEvaluationWarning,
                stacklevel=5,
            )

    # Starts and restarts

    def _begin(self, start: int) -> AskTell:
        options = self._options
        if start > 0:
            options = restart_options(options, self._first_population_size, start)
        reach = self._sigma0 if self._scale is None else self._sigma0 * self._scale
        return self._strategy_type(
            start_point(self._x0, reach, self._box, self.seed, start, self._manifold),
            self._sigma0,
            bounds=self._box,
            scale=self._scale,
            manifold=self._manifold,
            **options | {"seed": start_seed(self.seed, start)},
        )

    def _may_restart(self) -> bool:
        allowed = self._limits["restarts"]
        return allowed == "unlimited" or self._start < allowed

    def _restart(self) -> None:
        es = self._es
        self._best = self._best_so_far()
        self._spent["evaluations"] += es.evaluations
        self._spent["generations"] += es.generation
        self._spent["failed"] += es.failed_evaluations
        self._start += 1
        self._es = self._begin(self._start)

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

    def _best_so_far(self) -> tuple[float, NDArray[np.float64]]:
        here = self._es.best_value
        if self._best is not None and not here < self._best[0]:
            return self._best
        return here, self._es.best_x

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _time_is_left(self) -> bool:
        limit = self._limits["time_limit"]
        return limit is None or self._elapsed() < limit

    def _result(self, reason: StopReason) -> Result:
        best_value, best_x = self._best_so_far()
        reached = reason is StopReason.TARGET_REACHED
        return Result(
            x=np.array(best_x),
            fun=best_value,
            nfev=self.evaluations,
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
            time=self._elapsed(),
            history=self._history.columns(),
            strategy=self._es.name,
            options=dict(self._es.options) | {"seed": self.seed},
            kernel=self._es.kernel.name,
        )

    # What the user gave

    def _place_start(self, x0: Any, sigma0: Any, bounds: Any, scale: Any) -> None:
        if self._manifold is not None:
            self._place_on_manifold(self._manifold, x0, sigma0)
            return
        point = None if x0 is None else checked_point(x0)
        box = checked_bounds(bounds, None if point is None else point.size)
        finite = box is not None and all(np.isfinite(side).all() for side in box)
        if point is not None and box is not None:
            checked_inside(point, *box)
        if point is None and not finite:
            raise ValueError(
                "x0 is needed, unless bounds that are finite on all sides tell where to start"
            )
        n = point.size if point is not None else box[0].size  # type: ignore[index]
        self._x0, self._box = point, box
        self._scale = checked_scale(scale, n)
        if sigma0 is not None:
            self._sigma0 = checked_sigma(sigma0)
        elif box is not None and finite and self._scale is None:
            width = box[1] - box[0]
            if not (width > 0).any():
                raise ValueError("sigma0 is needed: the box has no width to take it from")
            typical = float(np.exp(np.log(width[width > 0]).mean()))
            self._sigma0 = SIGMA_SHARE_OF_BOX * typical
            if not np.all(width == width[0]):
                self._scale = np.where(width > 0, width / typical, 1.0)
        else:
            raise ValueError("sigma0 is needed, unless finite bounds tell the size of the box")

    def _place_on_manifold(self, manifold: Manifold, x0: Any, sigma0: Any) -> None:
        if sigma0 is None:
            raise ValueError("sigma0 is needed; 1 suits a random start on most manifolds")
        self._x0 = None if x0 is None else manifold.point(x0, "x0")
        self._box = self._scale = None
        self._sigma0 = checked_sigma(sigma0)

    def _make_evaluator(
        self, fun: Callable[[Any], Any], catch: tuple[type[BaseException], ...]
    ) -> Evaluator:
        if self._limits["vectorized"]:
            return VectorizedEvaluator(fun, catch)
        return SerialEvaluator(fun, catch)
