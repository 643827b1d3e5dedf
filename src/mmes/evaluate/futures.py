"""Evaluation by any executor like those of `concurrent.futures`: Dask, MPI, loky, threads."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from pickle import PicklingError
from typing import Any

import numpy as np

from mmes.base.arrays import Vector
from mmes.base.cores import usable_cores
from mmes.errors import EvaluationError, LostWorkerWarning, in_number, in_words, warn_user
from mmes.evaluate.protocol import Evaluator, Submits
from mmes.evaluate.remote import Task
from mmes.evaluate.workers.lost import Round

# No wait is longer, so that a signal or the end of the time is seen soon.
_LOOK_SECONDS = 0.05


class FuturesEvaluator(Evaluator):
    """Submits the candidates to an executor.

    A given executor stays open at the end, because its owner may need it. One that a given function
    created is shut down at the end, and replaced if it breaks: then only an evaluation that was
    alone in it counts as lost; the others are submitted again one by one. `retries`, `lost` and
    `chunk_size` as in `ProcessEvaluator`; the default of the last is one candidate, or, for a
    vectorized objective, an equal share for each core of this machine.
    """

    polls = True

    def __init__(
        self,
        task: Task,
        workers: Any,
        retries: int = 3,
        lost: str = "raise",
        chunk_size: int | None = None,
    ):
        self.retried = 0
        self._task = task
        self._make = None if isinstance(workers, Submits) else workers
        self._executor = None if self._make else as_executor(workers)
        self._retries = retries
        self._lost = lost
        self._chunk_size = chunk_size

    def evaluate(self, points: Vector, generation: int, keep_going: Callable[[], bool]) -> Vector:
        rows = points.shape[0]
        current, size = Round(generation, rows, "the executor"), self._batch_size(rows)
        waiting = current.waiting
        waiting.extend(range(first, min(first + size, rows)) for first in range(0, rows, size))
        # What was under way when the executor broke, of which one candidate may be the cause: each
        # is submitted alone, so that no other is charged with it.
        suspects: deque[range] = deque()
        running: dict[Future[Any], range] = {}
        alone: Future[Any] | None = None
        try:
            while waiting or suspects or running:
                if not keep_going():
                    waiting.clear()
                    suspects.clear()
                    running = {f: batch for f, batch in running.items() if not f.cancel()}
                if suspects and not running:
                    batch = suspects.popleft()
                    alone = self._submit(points[batch.start : batch.stop])
                    running[alone] = batch
                told = False  # one executor that broke loses all that it held
                while waiting and not suspects and not alone:
                    batch = waiting.popleft()
                    running[self._submit(points[batch.start : batch.stop])] = batch
                for future in wait(running, _LOOK_SECONDS, FIRST_COMPLETED).done:
                    batch = running.pop(future)
                    was_alone, alone = future is alone, None
                    try:
                        outcome = future.result()
                    # Whatever the objective raised is inside the outcome: this comes from the
                    # executor.
                    except Exception as error:
                        self._check(error)
                        broken = isinstance(error, BrokenExecutor)
                        if not broken or not told:
                            told = broken
                            _tell_loss(error, generation, batch)
                        guilty = was_alone or not broken
                        again = current.lose(
                            batch, self._retries, self._lost, points, guilty, error
                        )
                        self.retried += len(again)
                        later = suspects if broken else waiting
                        later.extend(range(row, row + 1) for row in again)
                        continue
                    outcome.raise_error(points[batch.start : batch.stop], batch, generation)
                    current.take(batch, outcome.values)
                    self.caught = self.caught or outcome.caught
        finally:
            for future in running:
                future.cancel()
        return current.first_part()

    def close(self) -> None:
        if self._make is not None and self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None

    def _submit(self, points: Vector) -> Future[Any]:
        if self._executor is None:
            assert self._make is not None
            self._executor = as_executor(self._make())
        try:
            return self._executor.submit(self._task, np.array(points))
        except BrokenExecutor as error:
            if self._make is None:
                raise _broken(error) from error
            self._executor.shutdown(wait=False)
            self._executor = as_executor(self._make())
            return self._executor.submit(self._task, np.array(points))

    def _check(self, error: Exception) -> None:
        """Raise if submitting again cannot help."""
        if isinstance(error, PicklingError) or "pickle" in in_words(error):
            raise TypeError(
                f"the executor cannot send the objective to its workers ({in_words(error)}); "
                "define it at the top of a module, or use an executor that pickles with cloudpickle"
            ) from error
        if isinstance(error, BrokenExecutor) and self._make is None:
            raise _broken(error) from error

    def _batch_size(self, rows: int) -> int:
        if self._chunk_size is not None:
            return self._chunk_size
        return max(math.ceil(rows / usable_cores()), 1) if self._task.vectorized else 1


def _tell_loss(error: Exception, generation: int, batch: range) -> None:
    warn_user(
        f"the executor lost {in_number(len(batch), 'candidate')} of generation {generation}: "
        f"{type(error).__name__}: {in_words(error)}",
        LostWorkerWarning,
    )


def as_executor(thing: Any) -> Any:
    """Return an executor; for a Dask client, the executor that it provides."""
    if hasattr(thing, "get_executor"):
        return thing.get_executor()
    if not isinstance(thing, Submits):
        raise TypeError(
            f"workers must create an executor, an object with a method submit, not {thing!r}"
        )
    return thing


def _broken(error: BaseException) -> EvaluationError:
    return EvaluationError(
        f"the executor is broken ({error}). Set workers to a function that creates the "
        "executor, such as workers=lambda: ProcessPoolExecutor(4), and a broken executor is "
        "replaced; or to a number, and each lost worker process is replaced"
    )
