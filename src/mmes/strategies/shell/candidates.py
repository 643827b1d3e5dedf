"""The candidates of the current generation: all of them, or those requested."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmes.base.arrays import Indices
from mmes.errors import FailedEvaluationWarning, warn_user
from mmes.kernels import Handle, Kernel
from mmes.spaces.boxes import Box, Rounded
from mmes.strategies.shell.protocol import Search


class Candidates:
    """Generates candidates on demand.

    All of them are kept until the generation is told: `points` as the search generated them, and
    `evaluated`, their images if there is a box that the search does not see (`mapping`). A few
    candidates, requested to be evaluated a few at a time or elsewhere, are not kept: they can be
    generated again. `asked` says whether all or some of them were requested.
    """

    def __init__(self, kernel: Kernel, n: int, mapping: Box | None):
        self._kernel, self._n, self.mapping = kernel, n, mapping
        self.forget()

    def forget(self) -> None:
        """Delete the candidates."""
        self.points: Handle = None
        self.evaluated: Handle = None
        self.asked = False

    def make_all(self, search: Search, generation: int, first: Sequence[Handle]) -> None:
        """Generate all candidates; the points of `first`, if any, are rows before the others."""
        kernel, rows = self._kernel, search.population_size + len(first)
        points = drawn = kernel.population(rows, self._n)
        if first:
            for row, point in enumerate(first):
                kernel.assign(kernel.row(points, row), point)
            drawn = kernel.part(points, len(first))
        search.sample(drawn, generation)
        if isinstance(self.mapping, Rounded):
            self.mapping.widen(drawn, search.mean)
        self.asked = True
        self.points = self.evaluated = points
        if self.mapping is not None:
            self.evaluated = kernel.population(rows, self._n)
            kernel.confine(self.evaluated, points, self.mapping)
        if kernel.device is not None:
            self._first, self._writes = first, kernel.writes(self.evaluated)

    def renew_if_written(self, search: Search, generation: int) -> None:
        """Generate the candidates again if an objective has modified them, with a warning."""
        if self.evaluated is None or self._kernel.writes(self.evaluated) == self._writes:
            return
        warn_user(
            "the objective modified its candidates; they are generated again. Let it use a "
            "copy, X.clone()",
            FailedEvaluationWarning,
        )
        self.make_all(search, generation, self._first)

    def some(
        self, search: Search, generation: int, rows: Indices, first: Sequence[Handle]
    ) -> Handle:
        """Return these candidates as they are evaluated; generate them if necessary.

        They are not kept. The points of `first` are the rows up to -1.
        """
        self.asked = True
        kernel = self._kernel
        if self.evaluated is not None:
            extra = self.evaluated.shape[0] - search.population_size
            return _taken(kernel, self.evaluated, rows + extra)
        wanted, positions = rows, None
        if not (rows[1:] > rows[:-1]).all():
            wanted, positions = np.unique(rows, return_inverse=True)
        made = kernel.population(wanted.size, self._n)
        target, drawn = made, wanted
        if wanted.size and wanted.item(0) < 0:
            drawn = wanted[wanted >= 0]
            target = kernel.part(made, wanted.size - drawn.size)
            for place, row in enumerate(wanted[wanted < 0]):
                kernel.assign(kernel.row(made, place), first[row])
        if drawn.size:
            search.sample(target, generation, drawn)
        if self.mapping is not None and wanted.size:
            kernel.confine(made, made, self.mapping)
        if positions is None:
            return kernel.part(made, 0, wanted.size)
        return _taken(kernel, made, positions)


def _taken(kernel: Kernel, points: Handle, rows: Indices) -> Handle:
    """Return some rows; consecutive rows share memory."""
    first = int(rows[0]) if rows.size else 0
    if np.array_equal(rows, np.arange(first, first + rows.size)):
        return kernel.part(points, first, first + rows.size)
    return kernel.gathered(points, rows)


def as_candidate(kernel: Kernel, point: Handle, n: int, box: Box | None) -> Handle:
    """Return a point in the precision of candidates, treated as the box treats them."""
    rows = kernel.population(1, n)
    kernel.assign(kernel.row(rows, 0), point)
    if box is not None:
        kernel.confine(rows, rows, box)
    point = kernel.row(rows, 0)
    # On the host, memory of populations is used again, and may be longer than what was asked for.
    return kernel.copy(point) if kernel.device is None else point
