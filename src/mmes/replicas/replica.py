"""A replica: an optimizer that is told the same values as the head and evaluates its share.

A replica does not depend on the engine that sends its messages. Messages and answers are tuples;
the first entry of a message is its kind:

=========================================================  ======================================
message                                                    answer
=========================================================  ======================================
hello                                                      ("here", fingerprint)
probe, strategy as bytes, what `digests.probe` needs       ("here", its digest)
prepare                                                    ("here",) once the objective is made
state, run, entries, {name: (type, shape)}                 ("here",)
block, run, name, first entry, entries                     ("here",)
adopt, run, the values told last                           ("here", generation)
told, run, first generation, values of each                ("here", generation)
work, run, generation, first, values, rows, check          ("done", values, seconds, repeated,
                                                           digest of numbers, of vectors, error)
points, generation, points                                 the same, without digests
close                                                      ("here",) once nothing is held
=========================================================  ======================================

The values of a generation are those that were told, one per candidate. With constraints, those that
`AskTell.revalue` takes in after that may follow. Values in an answer are one per row, or with
constraints as many for each: that of the objective, then those of the constraints.

A replica that lacks values before `first` answers ("behind", its generation). Any other error is
answered by ("failed", kind of error, text, traceback).
"""

from __future__ import annotations

import pickle
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.arrays import Arrays, Vector
from mmes.errors import EvaluationError
from mmes.evaluate.arguments import take_number
from mmes.evaluate.choose import make_evaluator
from mmes.evaluate.factory import made
from mmes.evaluate.protocol import Evaluator, mark
from mmes.evaluate.remote import Outcome, Task, sendable
from mmes.replicas import digests
from mmes.replicas.shares import packed
from mmes.strategies import AskTell

# Candidates as long as this are made only where they are needed: it saves 10 to 30 % of sampling.
# Shorter ones are made faster all together, while the directions are in the caches.
LONG = 300_000
# With a larger share than this, there is little left to save.
_FEW = 0.4

Rows = tuple[tuple[int, int], ...]
"""Rows of a generation as (first, end) pairs."""


class Replica:
    """A participant: adopts a state, catches up by values, evaluates rows, returns digests.

    The task is pickled where it was sent. `each` is the number of worker processes for the
    evaluations, with `settings` for `make_evaluator`; None evaluates here. `threads` are those of
    the kernel.
    """

    def __init__(
        self,
        task: bytes | Task,
        each: int | None,
        settings: dict[str, Any],
        threads: int | None = None,
    ):
        self._given = task
        self._each = each
        self._settings = settings
        self._threads = threads
        self._task: Task | None = None
        self._evaluator: Evaluator | None = None
        self._kind: type[AskTell] | None = None
        self._kernel = "auto"
        self._place: dict[str, str] = {}
        self._run = -1
        self.es: AskTell | None = None
        self._last = b""
        self._sampling: threading.Thread | None = None
        self._sampled = -1
        self._apart = False
        self._sampling_seconds, self._evaluation_seconds = 0.0, 0.0
        self._coming: tuple[int, dict[str, Any], Arrays] | None = None

    def handle(self, message: tuple[Any, ...]) -> tuple[Any, ...]:
        """Answer a message; never raises."""
        try:
            return getattr(self, f"_on_{message[0]}")(*message[1:])
        except Exception as error:
            return "failed", type(error).__name__, str(error), traceback.format_exc()

    def _on_close(self) -> tuple[Any, ...]:
        if self._evaluator is not None:
            self._evaluator.close()
        return ("here",)

    # Before the run

    def _on_hello(self) -> tuple[Any, ...]:
        return "here", digests.machine()

    def _on_probe(self, kind: bytes, of: dict[str, Any]) -> tuple[Any, ...]:
        # From the head, through the engine, as the objective. Loading a manifold makes it known.
        strategy: type[AskTell] = pickle.loads(kind)[0]
        self._kind, self._kernel, self._place = strategy, of["kernel"], of["place"]
        return "here", digests.probe(strategy, of)

    def _on_prepare(self) -> tuple[Any, ...]:
        if self._task is None:
            # From the head, through the engine.
            task: Task = (
                pickle.loads(self._given) if isinstance(self._given, bytes) else self._given
            )
            if self._each is None:
                made(task.objective)
            else:
                options = self._settings | {"vectorized": task.vectorized}
                self._evaluator = make_evaluator(task.objective, self._each, task.catch, options)
            self._task = task
        return ("here",)

    # The state

    def _on_state(
        self, run: int, entries: dict[str, Any], arrays: dict[str, tuple[str, tuple[int, ...]]]
    ) -> tuple[Any, ...]:
        self._end_sampling()
        self.es = None  # two states may not fit
        fresh = {name: np.empty(shape, kind) for name, (kind, shape) in arrays.items()}
        self._coming = run, entries, fresh
        return ("here",)

    def _on_block(self, run: int, name: str, first: int, block: NDArray[Any]) -> tuple[Any, ...]:
        coming, _, arrays = self._coming or (None, None, {})
        if coming != run:
            raise RuntimeError(
                f"received a block of run {run} while waiting for the state of run {coming}"
            )
        arrays[name].reshape(-1)[first : first + block.size] = block
        return ("here",)

    def _on_adopt(self, run: int, last: bytes) -> tuple[Any, ...]:
        coming, entries, arrays = self._coming or (None, {}, {})
        if coming != run or self._kind is None:
            raise RuntimeError(f"run {run} cannot be adopted: its state has not arrived")
        # Never by the constructor: it would reduce the archive to the memory of this machine.
        self.es = self._kind.from_state(
            entries | {"arrays": arrays},
            kernel=self._kernel,
            threads=self._threads,
            **self._place,
        )
        self._coming, self._run, self._last, self._sampled = None, run, last, -1
        return "here", self.es.generation

    # The run

    def _on_told(self, run: int, first: int, told: Sequence[bytes]) -> tuple[Any, ...]:
        es = self._catch_up(run, first, told)
        return ("here", es.generation) if es is not None else self._behind()

    def _on_work(
        self, run: int, generation: int, first: int, told: Sequence[bytes], rows: Rows, check: bool
    ) -> tuple[Any, ...]:
        es = self._catch_up(run, first, told)
        if es is None or es.generation != generation:
            return self._behind()
        numbers = digests.scalar_digest(es, self._last)
        vectors = digests.vector_digest(es) if check else None
        done = self._evaluate(self._points(es, rows), generation)
        self._evaluation_seconds = done[1]
        return "done", *done[:3], numbers, vectors, done[3]

    def _points(self, es: AskTell, rows: Rows) -> list[Vector]:
        """Return the candidates to evaluate here, in parts that need no copying.

        If evaluations take longer than sampling, all candidates are sampled meanwhile, for the
        update. Otherwise a long candidate is generated only where it is evaluated, and again in the
        update if it becomes a parent.
        """
        own = [row for one, end in rows for row in range(one, end)]
        if self._sampled != es.generation:
            self._sampled = es.generation
            # A device is not shared between threads.
            meanwhile = not self._place and self._evaluation_seconds > self._sampling_seconds
            few = es.dimension >= LONG and len(own) <= _FEW * es.rows
            fits = es.rows_at_once == es.rows
            self._apart = not es.needs_population and not (fits and (meanwhile or not few))
            if self._apart:
                return [self._sample(es, own)]
            if meanwhile:
                points = es.ask(rows=own)
                self._sampling = threading.Thread(target=self._sample, args=(es,), daemon=True)
                self._sampling.start()
                return [points]
            self._sample(es)
        self._end_sampling()
        if self._apart:
            return [es.ask(rows=own)]
        points = es.ask()
        return [points[one:end] for one, end in rows]

    def _sample(self, es: AskTell, rows: list[int] | None = None) -> Vector:
        """Return candidates, and measure how long all of them take."""
        began = time.perf_counter()
        points = es.ask(rows=rows)
        share = len(points) / es.rows
        self._sampling_seconds = (time.perf_counter() - began) / max(share, 1 / es.rows)
        return points

    def _end_sampling(self) -> None:
        if self._sampling is not None:
            self._sampling.join()
            self._sampling = None

    def _on_points(self, generation: int, points: Vector) -> tuple[Any, ...]:
        done = self._evaluate([self._there(points)], generation)
        return "done", *done[:3], None, None, done[3]

    def _there(self, points: Vector) -> Any:
        """Return points that were sent where candidates are."""
        if self.es is None or not self._place:
            return np.array(points)
        kernel = self.es.kernel
        made = kernel.population(*points.shape)
        kernel.assign(made, points)
        return made

    def _behind(self) -> tuple[Any, ...]:
        return "behind", -1 if self.es is None else self.es.generation

    def _catch_up(self, run: int, first: int, told: Sequence[bytes]) -> AskTell | None:
        """Tell the optimizer the values it lacks; None if some before them are missing, too."""
        es = self.es
        if es is None or run != self._run or es.generation < first:
            return None
        if told[es.generation - first :]:
            self._end_sampling()
        for values in told[es.generation - first :]:
            found, rows = np.frombuffer(values), es.rows
            if found.size < rows:
                break  # the budget ended within the generation: the run is over
            es.ask(rows=[])  # parents are made when all values are told, if they are not here
            es.tell(found[:rows])
            if found.size > rows:
                es.revalue(found[rows:])
            self._last = values
        return es

    def _evaluate(
        self, parts: list[Vector], generation: int
    ) -> tuple[bytes, float, int, Outcome | None]:
        """Return values as bytes, seconds, repeated evaluations and what failed, if any did."""
        self._on_prepare()
        assert self._task is not None
        take_number(self._task.objective, generation)
        parts = [part for part in parts if len(part)]
        if self._evaluator is None and not (self._task.vectorized and len(parts) > 1):
            return self._evaluate_here(self._task, parts, generation)
        points = parts[0] if len(parts) == 1 else _joined(parts)
        if self._evaluator is None:
            return self._evaluate_here(self._task, [points], generation)
        began, before = time.perf_counter(), self._evaluator.retried
        try:
            values = self._evaluator.evaluate(points, generation, lambda: True).tobytes()
            failed = None
        except (EvaluationError, TypeError, ValueError) as error:
            values, failed = b"", _outcome(error)
        seconds = time.perf_counter() - began
        return values, seconds, self._evaluator.retried - before, failed

    @staticmethod
    def _evaluate_here(
        task: Task, parts: list[Vector], generation: int
    ) -> tuple[bytes, float, int, Outcome | None]:
        values: list[Any] = []
        seconds = 0.0
        for part in parts:
            outcome = task(part)
            values += outcome.values
            seconds += outcome.seconds
            if outcome.error is not None:
                return b"", seconds, 0, replace(outcome, values=values)
        try:
            return packed(values), seconds, 0, None
        except ValueError as error:  # points differ in the number of their constraints
            mark(error, None, generation)
            return b"", seconds, 0, _outcome(error)


def _joined(parts: list[Any]) -> Any:
    """Return the rows of several arrays, or of several tensors, as one."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import torch  # type: ignore[import-not-found]

    return torch.cat(parts)


def _outcome(error: Exception) -> Outcome:
    """Return what an evaluator raised as the outcome of a batch."""
    raised = error.__cause__ if isinstance(error, EvaluationError) else None
    row = getattr(error, "candidate", 0)
    before = [np.nan] * max(row or 0, 0)
    trace = traceback.format_exc()
    return Outcome(before, 0.0, sendable(raised or error), raised is None, trace, row is None)
