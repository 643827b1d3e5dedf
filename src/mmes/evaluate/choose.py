"""The choice of the evaluator: this process, workers, an executor, or a custom one."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from mmes.base.cores import usable_cores
from mmes.evaluate.adapter import EvaluatorAdapter, is_evaluator
from mmes.evaluate.factory import made
from mmes.evaluate.options import EVALUATION
from mmes.evaluate.protocol import Evaluator, Exceptions, MakesEvaluator, Submits
from mmes.evaluate.serial import SerialEvaluator, VectorizedEvaluator

_DEFAULTS = {option.name: option.default for option in EVALUATION}


def make_evaluator(
    fun: Callable[[Any], Any] | None,
    workers: Any,
    catch: Any,
    options: Mapping[str, Any],
    rows: bool = False,
) -> Evaluator:
    """Return the evaluator for the arguments of `minimize`.

    None as objective is allowed with a custom evaluator. `options` are those of `EVALUATION`,
    checked; `rows` says whether a point has several values, including its constraints.
    """
    catch = _checked_catch(catch)
    if is_evaluator(workers):
        for name, value in {"catch": catch, **options}.items():
            if value != _DEFAULTS.get(name, ()):
                raise ValueError(
                    f"{name}={value!r} cannot be combined with a custom evaluator, which "
                    "decides this itself"
                )
        return EvaluatorAdapter(workers, rows)
    if fun is None or not callable(fun):
        raise TypeError(f"fun must be callable, not {fun!r} (a {type(fun).__name__})")
    timeout, retries, lost = (
        options[name] for name in ("evaluation_timeout", "retries", "on_lost")
    )
    if workers is None:
        if timeout is not None:
            raise ValueError(
                f"evaluation_timeout={timeout:g} needs workers: an evaluation in this process "
                "cannot be interrupted; workers=1 uses one worker process"
            )
        kind = VectorizedEvaluator if options["vectorized"] else SerialEvaluator
        return kind(made(fun), catch)
    from mmes.evaluate.remote import Task

    task = Task(fun, catch, options["vectorized"])
    number = isinstance(workers, numbers.Integral) and not isinstance(workers, bool | np.bool_)
    count = int(workers) if number else 0
    if count == -1:
        count = usable_cores()
    # Imported where they are needed: multiprocessing alone takes a tenth of `import mmes`.
    if count >= 1:
        from mmes.evaluate.workers.pool import ProcessEvaluator

        return ProcessEvaluator(task, count, timeout, retries, lost, options["chunk_size"])
    if isinstance(workers, MakesEvaluator):
        make = workers.evaluator
        chunk = {} if options["chunk_size"] is None else {"chunk_size": options["chunk_size"]}
        if chunk and "chunk_size" not in inspect.signature(make).parameters:
            raise ValueError(
                f"chunk_size={options['chunk_size']} cannot be combined with {workers!r}, which "
                "distributes the candidates itself"
            )
        found = make(task, retries, lost, timeout, **chunk)
        if not is_evaluator(found):
            raise TypeError(
                f"workers.evaluator() must return an object with evaluate and close, not {found!r}"
            )
        return EvaluatorAdapter(found, rows)
    if isinstance(workers, type) and issubclass(workers, Submits):
        workers = partial(workers)  # the class of executors is a function that creates one
    if not (isinstance(workers, Submits) or _makes_something(workers)):
        raise (ValueError if number else TypeError)(
            "workers must be a number of processes >= 1, -1 for one per core, an executor, a "
            "function that creates one, or an object with the methods evaluate and close, not "
            f"{workers!r}"
        )
    if timeout is not None:
        raise ValueError(
            f"evaluation_timeout={timeout:g} needs a number as workers: tasks of an executor "
            "cannot be killed"
        )
    from mmes.evaluate.futures import FuturesEvaluator

    return FuturesEvaluator(task, workers, retries, lost, options["chunk_size"])


def _makes_something(thing: Any) -> bool:
    """Return whether this can be called without arguments, unlike `map`, which SciPy takes."""
    if not callable(thing) or thing is map:
        return False
    try:
        inspect.signature(thing).bind()
    except TypeError:
        return False
    except ValueError:  # what is written in C may have no signature
        pass
    return True


def _checked_catch(catch: Any) -> Exceptions:
    kinds = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise TypeError(f"catch must be a tuple of exception types, not {catch!r}")
    return kinds
