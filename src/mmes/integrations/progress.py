"""Callbacks that show or log the progress of a run; each is an entry of ``callback=[...]``.

>>> import mmes
>>> from mmes.integrations.progress import every, log_to
>>> lines = []
>>> log = every(10, log_to(lambda name, value, step: lines.append(name)))
>>> _ = mmes.minimize(lambda x: x @ x, [1.0] * 5, 0.5, max_evaluations=100, callback=log)
>>> sorted(set(lines))
['mmes/best_value', 'mmes/elapsed', 'mmes/generation', 'mmes/sigma', 'mmes/start']
"""
# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

from mmes.base.extras import missing
from mmes.errors import MMESWarning, warn_user
from mmes.run.observing.progress import Progress

__all__ = ["LoggingWarning", "every", "log_to", "tqdm_bar"]

Callback = Callable[[Progress], Any]

_SHOWN_EVERY = 0.1  # seconds


class LoggingWarning(MMESWarning):
    """A logger failed, and the run continued without it."""


class _Every:
    def __init__(self, seconds: float, callback: Callback):
        self._seconds = seconds
        self._callback = callback
        self._due = 0.0

    def __call__(self, progress: Progress) -> Any:
        now = time.monotonic()
        if now < self._due and not progress.final:
            return None
        answer = self._callback(progress)
        self._due = time.monotonic() + self._seconds
        return answer

    def close(self) -> None:
        close = getattr(self._callback, "close", None)
        if callable(close):
            close()


def every(seconds: float, callback: Callback) -> Callback:
    """Return a callback that calls another one at most once per interval.

    The first and the last call of a run are always made. The interval is a time, not a number of
    generations, because a generation may take microseconds or hours.

    Parameters
    ----------
    seconds : float
        The time between two calls.
    callback : callable
        The callback to call; if it has a method `close`, this is called at the end of the run.

    Returns
    -------
    callable
        The callback.
    """
    if not seconds >= 0:
        raise ValueError(f"seconds must be a number >= 0, not {seconds!r}")
    if not callable(callback):
        raise TypeError(f"callback must be callable, not {callback!r}")
    return _Every(seconds, callback)


class _LogTo:
    # A class, not a function inside `log_to`: callbacks can be pickled.
    def __init__(self, add_scalar: Callable[[str, Any, int], Any], prefix: str, errors: str):
        self._add_scalar = add_scalar
        self._prefix = prefix
        self._errors = errors
        self._said = False

    def __call__(self, progress: Progress) -> None:
        scalars = progress.scalars()
        step = scalars.pop("evaluations")
        try:
            for name, value in scalars.items():
                self._add_scalar(self._prefix + name, value, step)
        except Exception as error:
            if self._errors == "raise":
                raise
            if not self._said:
                self._said = True
                warn_user(
                    "the logger failed, and the run continues without it: "
                    f"{type(error).__name__}: {error}. This warning is issued once",
                    LoggingWarning,
                )


def log_to(
    add_scalar: Callable[[str, Any, int], Any],
    prefix: str = "mmes/",
    errors: Literal["raise", "warn"] = "raise",
) -> Callback:
    """Return a callback that logs the numbers of a run, with the evaluations as step.

    Parameters
    ----------
    add_scalar : callable
        Called with a name, a value and a step: the method of that name of a TensorBoard writer, of
        `tensorboardX` or `torch.utils.tensorboard`.
    prefix : str
        Prefix of the names.
    errors : {"raise", "warn"}
        What happens if the logger raises, for example because a network is down: the run ends, or
        one warning is issued and the run continues.

    Returns
    -------
    callable
        The callback.
    """
    if errors not in ("raise", "warn"):
        raise ValueError(f"errors must be 'raise' or 'warn', not {errors!r}")
    if not callable(add_scalar):
        raise TypeError(
            f"add_scalar must be callable, such as writer.add_scalar, not {add_scalar!r}"
        )
    return _LogTo(add_scalar, prefix, errors)


class _TqdmBar:
    def __init__(self, make: Callable[..., Any], options: dict[str, Any]):
        self._make = make
        self._options = options
        self._bar: Any = None
        self._due = 0.0

    def __call__(self, progress: Progress) -> None:
        if self._bar is None:
            self._bar = self._make(
                **{"total": progress.max_evaluations, "unit": "eval"} | self._options
            )
        now = time.monotonic()
        if now < self._due and not progress.final:
            return  # a bar that is drawn after every generation costs more than the generation
        self._due = now + _SHOWN_EVERY
        self._bar.set_postfix(
            best=f"{progress.best_value:.4g}", sigma=f"{progress.sigma:.2g}", refresh=False
        )
        self._bar.update(progress.evaluations - self._bar.n)
        if progress.final:
            self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def tqdm_bar(**options: Any) -> Callback:
    """Return a callback that shows a progress bar, in a notebook as well as in a terminal.

    Parameters
    ----------
    **options
        Options of `tqdm.auto.tqdm`, for example `desc` or `leave`.

    Returns
    -------
    callable
        The callback; the bar is created with the first generation and closed with the run.
    """
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise missing("tqdm", "tqdm") from error
    return _TqdmBar(tqdm, options)
