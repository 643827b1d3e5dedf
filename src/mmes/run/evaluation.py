"""The evaluator of a run, guarded: signals are raised only at safe points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mmes.base.arrays import Vector
from mmes.base.interrupts import Interrupts
from mmes.evaluate.protocol import Evaluator, location_of, mark
from mmes.evaluate.rows import RowsOnDemand
from mmes.evaluate.values import joined
from mmes.spaces.boxes import Clip

if TYPE_CHECKING:
    from mmes.run.settings import RunSettings
    from mmes.run.state import RunState
    from mmes.run.training.batches import Batches


class Evaluation:
    """Evaluates generations, and single points several times.

    With constraints each point has a row of values. With batches the objective is given that of the
    generation first.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        interrupts: Interrupts,
        settings: RunSettings,
        state: RunState,
        batches: Batches | None = None,
    ):
        self.evaluator, self.interrupts, self.batches = evaluator, interrupts, batches
        self._vectorized, self._box = settings.evaluation["vectorized"], settings.space.box
        self._state, self._constraints = state, state.constraints
        # An evaluator with locks or processes must be interrupted only at safe points.
        self.guard = interrupts.guarded() if evaluator.polls else interrupts.interruptible()

    def begin(self, generation: int, rows: int) -> None:
        """See `Evaluator.begin`."""
        self.see_batch(generation)
        with self.guard:
            self.evaluator.begin(generation, rows)

    def see_batch(self, generation: int) -> None:
        """Give the batch of this generation to the objective, if there are batches."""
        if self.batches is not None:
            with self.interrupts.interruptible():  # data may be loaded, which takes time
                self.batches.see(generation)

    def told(self, values: Vector) -> None:
        """See `Evaluator.told` and `Evaluator.revalued`."""
        with self.guard:
            self.evaluator.told(values)
            if self._constraints is not None and self._constraints.changed is not None:
                self.evaluator.revalued(self._constraints.changed)

    def evaluate(self, points: Any, generation: int, keep_going: Callable[[], bool]) -> Vector:
        """See `Evaluator.evaluate`."""
        with self._located(generation):
            return self._table(self._values(points, generation, keep_going))

    def _values(self, points: Any, generation: int, keep_going: Callable[[], bool]) -> Vector:
        """Return what the evaluator returns."""

        def going() -> bool:
            self.interrupts.check()
            return keep_going()

        with self.guard:
            return self.evaluator.evaluate(points, generation, going)

    def _table(self, found: Vector) -> Vector:
        """With constraints, return a row of values per point; ValueError if their number changed.

        Checked here: nothing has changed yet, so the error can say what was found so far.
        """
        return found if self._constraints is None else self._constraints.table(found)

    @contextmanager
    def _located(self, generation: int) -> Iterator[None]:
        """Let an error about the number of constraints say where it was."""
        try:
            yield
        except ValueError as error:
            if self._constraints is not None and not location_of(error):
                mark(error, None, generation)
            raise

    def values_at(self, points: list[Any], count: int) -> tuple[Any, Vector]:
        """Return the points as they are evaluated, and `count` values of each, a column per point.

        A vectorized objective may draw its noise once per call (for example a minibatch), so it is
        called `count` times.
        """
        es, box = self._state.es, self._box
        generation = self._state.generations if self.batches is None else self.batches.seen
        kernel, calls = es.kernel, count if self._vectorized else 1
        total = len(points) * count // calls

        def made(rows: Any) -> Any:
            drawn = kernel.population(len(rows), es.dimension)
            for position, row in enumerate(rows):
                kernel.assign(kernel.row(drawn, position), points[row % len(points)].reshape(-1))
            if box is not None:
                kernel.confine(drawn, drawn, Clip(*box))
            return kernel.readonly_view(drawn, (len(rows), *points[0].shape))

        few = es.rows_at_once
        whole = few == es.rows
        every = made(range(total)) if whole else RowsOnDemand(made, (total, es.dimension), few)
        # Not as tables: a call that failed as a whole does not know how many constraints there are.
        with self._located(generation):
            values = [self._values(every, generation, lambda: True) for _ in range(calls)]
            found = self._table(joined(values))
        return every[: len(points)], found.reshape(count, len(points), *found.shape[1:])
