"""The candidates of the present generation: all of them, or those that were asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.errors import FailedEvaluationWarning, warn_user
from mmes.kernels import Handle, Kernel
from mmes.spaces.boxes import Box, Rounded
from mmes.strategies.shell.protocol import Search

Rows = NDArray[np.int64]


class Candidates:
    """Makes candidates when they are wanted, and keeps them until the generation is told.

    Parameters
    ----------
    kernel : Kernel
    n : int
        The number of variables.
    mapping : Box or None
        A box of which the search knows nothing: the images of its points are evaluated.

    Attributes
    ----------
    points : handle or None
        The candidates as the search made them; None before they are made.
    evaluated : handle or None
        The same as they are evaluated.
    """

    def __init__(self, kernel: Kernel, n: int, mapping: Box | None):
        self._kernel, self._n, self.mapping = kernel, n, mapping
        self.forget()

    def forget(self) -> None:
        """Give up what was made."""
        self.points: Handle = None
        self.evaluated: Handle = None
        self._some: _SomeRows | None = None

    @property
    def asked(self) -> bool:
        """Whether all or some of them were made."""
        return self.evaluated is not None or self._some is not None

    def make_all(self, search: Search, generation: int, first: Handle | None) -> None:
        """Make all candidates; `first`, where there is one, is one more row before the others."""
        kernel, rows = self._kernel, search.population_size
        if first is None:
            points = drawn = kernel.population(rows, self._n)
        else:
            rows += 1
            points = kernel.population(rows, self._n)
            kernel.assign(kernel.row(points, 0), first)
            drawn = kernel.part(points, 1)
        search.sample(drawn, generation)
        if isinstance(self.mapping, Rounded):
            self.mapping.widen(drawn, search.mean)
        self.points = self.evaluated = points
        if self.mapping is not None:
            self.evaluated = kernel.population(rows, self._n)
            kernel.confine(self.evaluated, points, self.mapping)
        self._first, self._writes = first, kernel.writes(self.evaluated)

    def renew_if_written(self, search: Search, generation: int) -> None:
        """Make the candidates again where an objective has written into them, and say so."""
        if self.evaluated is None or self._kernel.writes(self.evaluated) == self._writes:
            return
        warn_user(
            "the objective changed the candidates that it was given; they are made again. Let it "
            "work on a copy, X.clone()",
            FailedEvaluationWarning,
        )
        self.make_all(search, generation, self._first)

    def chosen(self, search: Search, generation: int, rows: Rows, whole: bool) -> Handle:
        """Make those of these candidates that are not there yet, and no others; return them.

        `whole` says whether memory for all of them should be taken at once.
        """
        some = self._made(search, generation, rows, whole)
        positions = some.positions[rows]
        first = int(positions[0]) if positions.size else 0
        if np.array_equal(positions, np.arange(first, first + positions.size)):
            return self._kernel.part(some.memory, first, first + positions.size)
        return self._kernel.gathered(some.memory, positions)

    def make_parents(self, search: Any, generation: int, ranking: Rows) -> Rows:
        """Make what the update needs besides what was asked for; return where each row lies."""
        some = self._made(search, generation, search.parents(ranking), whole=True)
        self.points = self.evaluated = some.memory
        return some.positions

    def _made(self, search: Search, generation: int, rows: Rows, whole: bool) -> _SomeRows:
        kernel, size = self._kernel, search.population_size
        some = self._some = self._some or _SomeRows(size)
        lacking = some.lacking(rows)
        end = some.held + lacking.size
        if some.memory is None or end > some.memory.shape[0]:
            # Room for all, where others may come: what is not used is not touched.
            former = some.memory
            some.memory = kernel.population(size if whole or former is not None else end, self._n)
            if former is not None:
                kernel.assign(
                    kernel.part(some.memory, 0, some.held), kernel.part(former, 0, some.held)
                )
        if lacking.size:
            search.sample(kernel.part(some.memory, some.held, end), generation, lacking)
            some.add(lacking)
        return some


class _SomeRows:
    """Candidates of a generation, in the order in which they were asked for.

    Parameters
    ----------
    count : int
        The candidates of the whole generation.
    """

    def __init__(self, count: int):
        self.memory: Handle = None
        self.positions: Rows = np.full(count, -1, dtype=np.int64)
        """Where the candidate of each row lies; -1 where it was not asked for."""
        self.held = 0

    def lacking(self, rows: Rows) -> Rows:
        """Return those rows, each once, that were not asked for yet."""
        return np.array(
            [row for row in dict.fromkeys(rows.tolist()) if self.positions[row] < 0], int
        )

    def add(self, rows: Rows) -> None:
        """Enter rows whose candidates now lie after the others."""
        self.positions[rows] = np.arange(self.held, self.held + rows.size)
        self.held += rows.size


def as_candidate(kernel: Kernel, point: Handle, n: int, box: Box | None) -> Handle:
    """Return a point in the precision of candidates, treated as the box treats them."""
    rows = kernel.population(1, n)
    kernel.assign(kernel.row(rows, 0), point)
    if box is not None:
        kernel.confine(rows, rows, box)
    return kernel.row(rows, 0)
