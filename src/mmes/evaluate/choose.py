"""Which evaluator does the work: this process, worker processes, or an executor."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from mmes.evaluate.futures import FuturesEvaluator
from mmes.evaluate.processes import ProcessEvaluator
from mmes.evaluate.protocol import Evaluator
from mmes.evaluate.remote import Exceptions, Task
from mmes.evaluate.serial import SerialEvaluator, VectorizedEvaluator


def make_evaluator(
    fun: Callable[[Any], Any],
    *,
    workers: Any = None,
    catch: Exceptions = (),
    vectorized: bool = False,
    evaluation_timeout: float | None = None,
    retries: int = 3,
    lost: str = "raise",
    chunk_size: int | None = None,
) -> Evaluator:
    """Return the evaluator for what the user asked for; parameters as in `mmes.minimize`."""
    catch = _checked_catch(catch)
    if workers is None:
        if evaluation_timeout is not None:
            raise ValueError(
                f"evaluation_timeout={evaluation_timeout:g} needs workers: an evaluation in this "
                "process cannot be "
                "interrupted; workers=1 takes one worker process"
            )
        return VectorizedEvaluator(fun, catch) if vectorized else SerialEvaluator(fun, catch)
    task = Task(fun, catch, vectorized)
    number = isinstance(workers, numbers.Integral) and not isinstance(workers, bool | np.bool_)
    count = int(workers) if number else 0
    if count == -1:
        count = usable_cores()
    if count >= 1:
        return ProcessEvaluator(task, count, evaluation_timeout, retries, lost, chunk_size)
    if number or not (hasattr(workers, "submit") or callable(workers)):
        kind = ValueError if number else TypeError
        raise kind(
            "workers must be a number of processes >= 1, -1 for one a core, an executor, or a "
            "function that "
            f"makes one, not {workers!r}"
        )
    if evaluation_timeout is not None:
        raise ValueError(
            f"evaluation_timeout={evaluation_timeout:g} needs a number of workers: what an "
            "executor runs cannot be "
            "killed"
        )
    return FuturesEvaluator(task, workers, retries, lost, chunk_size)


def usable_cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def _checked_catch(catch: Any) -> Exceptions:
    kinds = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise TypeError(f"catch must be a tuple of exception types, not {catch!r}")
    return kinds
