"""The progress of a run, for callbacks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mmes.base.arrays import Vector
from mmes.base.reasons import StopReason

SCALARS = ("evaluations", "generation", "best_value", "sigma", "start", "elapsed")


@dataclass(frozen=True, repr=False)
class Progress:
    """The state of a run that callbacks receive after each generation and at the end of the run.

    Attributes
    ----------
    evaluations : int
        Evaluations so far, over all starts.
    generation : int
        Generations so far, over all starts.
    best_value : float
        Best value so far; with `batches` the median value of the last generation.
    validation : float or None
        With `validation`: the last validation loss.
    sigma : float
        Mutation strength of the current start.
    start : int
        Number of the current start, 0 for the first.
    elapsed : float
        Seconds since the run was started or resumed.
    strategy : str
        The strategy's name, and why it was chosen if ``"auto"`` did.
    max_evaluations, time_limit : int, float or None
        The limits of the run, for displays.
    final : bool
        Whether this is the last call, at the end of the run.
    reason : StopReason or None
        In the last call: why the run ended.
    evaluator : str
        A remark of the evaluator, for displays: the fraction of time that replicas can be busy.
    """

    evaluations: int
    generation: int
    best_value: float
    sigma: float
    start: int
    elapsed: float
    strategy: str
    max_evaluations: int | None
    time_limit: float | None
    _best_x: Callable[[], Vector]
    _mean: Callable[[], Vector]
    _request_stop: Callable[[], None]
    final: bool = False
    reason: StopReason | None = None
    evaluator: str = ""
    validation: float | None = None

    def scalars(self) -> dict[str, Any]:
        """Return the numbers as a dictionary, for loggers."""
        further = () if self.validation is None else ("validation",)
        return {name: getattr(self, name) for name in (*SCALARS, *further)}

    def __repr__(self) -> str:
        end = "" if self.reason is None else f", reason={self.reason.name}"
        return (
            f"Progress(generation={self.generation}, evaluations={self.evaluations}, "
            f"best_value={self.best_value:.6g}, sigma={self.sigma:.3g}{end})"
        )

    @property
    def best_x(self) -> Vector:
        """The best point so far, read-only; with `batches` the mean, or the best validated one."""
        return self._best_x()

    @property
    def mean(self) -> Vector:
        """The mean of the search distribution of the current start, read-only."""
        return self._mean()

    def request_stop(self) -> None:
        """Stop the run after this generation; may be called from any thread."""
        self._request_stop()


class Observers:
    """The callbacks of a run, and the display of its progress if that is wanted."""

    def __init__(self, callback: Any, progress: Any = False):
        if not isinstance(progress, bool):
            raise TypeError(f"progress must be True or False, not {progress!r}")
        several = isinstance(callback, list | tuple)
        self._all = tuple(callback) if several else () if callback is None else (callback,)
        if progress:
            from mmes.run.observing.progress_line import Display

            self._all = (*self._all, Display())
        for one in self._all:
            if not callable(one):
                raise TypeError(
                    f"callback must be callable, or a list of callables, not {one!r} "
                    f"(a {type(one).__name__})"
                )

    def __bool__(self) -> bool:
        return bool(self._all)

    def ask_to_stop(self, progress: Progress) -> bool:
        """Call all of them; return whether any of them stops the run."""
        stop = False
        for observer in self._all:
            try:
                answer = observer(progress)
                stop |= answer is not None and bool(answer)
            except StopIteration:
                stop = True
        return stop

    def close(self) -> None:
        """Close all that have a method `close`, even if one raises."""
        with contextlib.ExitStack() as stack:
            for observer in reversed(self._all):
                close = getattr(observer, "close", None)
                if callable(close):
                    stack.callback(close)
