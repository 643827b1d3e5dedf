"""The shell around a search: candidates, failures, the ranking, the update."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmes.base.arrays import Indices
from mmes.kernels import Handle
from mmes.strategies.parts.ranking import evenly, rank, sidelined
from mmes.strategies.shell.candidates import as_candidate
from mmes.strategies.shell.lifecycle import Lifecycle
from mmes.strategies.shell.protocol import GivesUp, Revalues, Vector
from mmes.strategies.shell.stopping import LOOK_EVERY

# On a plateau the mutation strength grows by this per generation.
PLATEAU_GROWTH = math.exp(0.2)
# Further points of a search that probes.
PROBES = 2


class AskTell(Lifecycle):
    """A search strategy with the ask-and-tell interface.

    Parameters
    ----------
    x0 : array_like
        Start point; copied.
    sigma0 : float
        Initial mutation strength: the typical distance, along one variable, at which improvements
        are expected.
    bounds : tuple, list or None
        (lower, upper), or one pair per variable. No candidate ever lies outside.
    scale : array_like or None
        Typical size of each variable, if they differ; multiplied by sigma0.
    manifold : Manifold or None
        The search space, for strategies that support manifolds. x0 and the candidates then have its
        shape; bounds and scales cannot be combined with it.
    integers : array_like, bool or None
        Which variables are integers: their indices, a mask, or True for all. Candidates have
        rounded values there, including both ends of the bounds.
    **options
        The options of all strategies and of this one; see `option_table`.

    Attributes
    ----------
    search : Search
        The algorithm. Its state is internal and may differ between versions.

    Notes
    -----
    Candidates are a pure function of the seed, the state and the generation: asking again returns
    the same array, and lost candidates can be computed again.
    """

    @property
    def rows(self) -> int:
        """Candidates of the present generation: the rows of what `ask` returns."""
        return self.search.population_size + self._extra_rows()

    @property
    def _asked(self) -> bool:
        return self._candidates.asked

    def _points(self) -> Vector:
        candidates = self._candidates
        if candidates.evaluated is None:
            self._draw()
        return self._readonly_view(candidates.evaluated)

    def _some_points(self, rows: NDArray[np.intp]) -> Vector:
        # Steps of integers are widened by what all candidates are.
        together = self.manifold is not None or self._rounded is not None
        if self._candidates.evaluated is None and together:
            self._draw()
        return self._readonly_view(self._some(rows))

    def _some(self, rows: NDArray[np.intp]) -> Handle:
        extra, first = self._extra_rows(), ()
        if extra:
            rows = rows - extra
            first = self._first() if (rows < 0).any() else ()
        return self._candidates.some(self.search, self.generation, rows, first)

    def _candidate(self, row: int) -> Handle:
        point = self.kernel.row(self._some(np.array([row])), 0)
        # On a device, a row that was made for this alone is used by nobody else.
        alone = self.kernel.device is not None and self._candidates.evaluated is None
        return point if alone else self.kernel.copy(point)

    def _draw(self) -> None:
        first = self._first() if self._extra_rows() else ()
        self._candidates.make_all(self.search, self.generation, first)

    def _first(self) -> tuple[Handle, ...]:
        """Return the points before those that are drawn: the start point, or probes."""
        if self._probes is not None and self._probes.probes_ready:
            box = self._setup.box
            points = self._probes.probes()
            return tuple(as_candidate(self.kernel, point, self._n, box) for point in points)
        # Points that the search keeps apart from the box need no walls.
        walls = self._walls() if self._candidates.mapping is None else None
        return (as_candidate(self.kernel, self.search.mean, self._n, walls),)

    def _fetched(self, values: Any, whole: bool) -> Any:
        """Return values of a device; the search begins its update while they are on their way."""
        self._candidates.renew_if_written(self.search, self.generation)
        points = self._candidates.points
        whole = whole and points is not None and self._pending is None and not self._extra_rows()
        if whole and self._ahead is not None:
            ranking = self.kernel.ranked(values, self.rows, self._n)
            if ranking is not None:
                self._ahead.begin(points, ranking, self.generation)
        return self.kernel.fetched(values)

    def revalue(self, values: ArrayLike) -> None:
        found = np.array(values, dtype=np.float64)[-self.population_size :]
        found, ranking = np.where(np.isnan(found), np.inf, found), rank(found)
        failures = int(np.count_nonzero(found == np.inf))
        if isinstance(self.search, Revalues) and failures < found.size:
            self.search.revalue(np.sort(evenly(found, ranking, failures)))
        # How values fall with sigma says nothing where the objective changes.
        self._rules.collapse = None

    def _forget(self) -> None:
        self._candidates.forget()
        self._pending = None

    def _extra_rows(self) -> int:
        if self._probes is not None and self._probes.probes_ready:
            return PROBES
        return int(self.generation == 0 and self.search.needs_start_value)

    def _apart(self, first: int, second: int, extra: int) -> float:
        """Return by how much two candidates differ in one variable; inf on a device."""
        if self.kernel.device is not None:
            return math.inf
        one, other = self._some_points(np.array([extra + first, extra + second]))
        return float(np.abs(one - other).max())

    def _complete(self, values: Vector) -> None:
        search = self.search
        extra = values.size - search.population_size
        ranked = values
        ranking = rank(values[extra:] if extra else values)
        if self._candidates.evaluated is None and self.needs_population:
            self._draw()
        # The ranking goes from -inf over the numbers and +inf to NaN: its ends tell what there is.
        best = ranking.item(0)
        lowest, highest = values.item(best), values.item(ranking.item(-1))
        special = bool(extra) or not (math.isfinite(lowest) and math.isfinite(highest))
        if special:
            # NaN counts as +inf everywhere but in the ranking, where it comes after +inf.
            missing = np.isnan(values)
            ranked = np.where(missing, np.inf, values)
            self.failed_evaluations += int(missing.sum())
            best = int(ranked.argmin())
            lowest = ranked.item(best)
            highest = float(ranked[ranked != np.inf].max(initial=-np.inf))
        if lowest < self._best_value:
            self._best_value = lowest
            self._best_x = self._candidate(best)
        points, probes = self._candidates.points, None
        if extra:
            if self._probes is not None and self._probes.probes_ready:
                probes = ranked[:extra]
            elif ranked.item(0) != math.inf:
                search.start(ranked.item(0))
            ranked = ranked[extra:]
            points = None if points is None else self.kernel.part(points, extra)
        failures = int(np.count_nonzero(ranked == np.inf)) if special else 0
        failed = failures == ranked.size
        rounded, short = self._rounded, math.inf
        if rounded is not None:  # some candidates always leave the integers that are the best
            highest = ranked.item(ranking.item((ranking.size - 1) // 2))
        # Without information the state stays: the next generation is another draw.
        if failed and isinstance(search, GivesUp):
            search.give_up()
        compared = ranked
        if failures and not failed:
            compared = evenly(ranked, ranking, failures)
            ranking, compared = sidelined(ranking, compared, failures)
        if not failed:
            sigma = search.sigma
            plateau = self._rules.may_be_plateau(sigma)
            tied = _tied(ranked, ranking, failures) if plateau else None
            # Before the update, after which points can no longer be drawn again.
            apart = math.inf if tied is None else self._apart(*tied, extra)
            if points is not None:
                search.update(points, ranking, compared, self.generation)
            elif self._alone is not None:
                self._alone.update_alone(ranking, compared, self.generation)
            if probes is not None and self._probes is not None:
                self._probes.take_probes(probes, ranked)
            if rounded is not None:
                smallest = self.options["xtol"] * self.sigma0
                least = rounded.least_sigma(search.population_size, smallest)
                if least == smallest:
                    short = search.sigma / least if least else math.inf
                search.sigma = max(search.sigma, least)
            if tied is not None:
                longest = self._rules.longest_on_plateau(sigma, apart, self._widest)
                # At a vertex of the box points of the search differ where its own do not any more.
                if apart > 0.0 or self._candidates.mapping is None:
                    search.sigma = max(sigma, min(sigma * PLATEAU_GROWTH, longest))
        self.generation += 1
        sigma = search.sigma
        if sigma <= self._rules.nothing_below:
            sigma = max(sigma, self._rules.least_sigma(search, self.kernel, self.generation))
            search.sigma = sigma
        self.evaluations += values.size
        self._doublings, self._mean_seen = 0, None
        self._forget()
        share = failures / ranked.size
        self._rules.observe(self.generation, self._best_value, (lowest, highest), share, short)
        if self._rules.collapse is not None and not failed:
            size, damping = ranked.size, self.options.get("damping", 1.0)
            median = compared.item(ranking.item(size // 2))
            step = sigma * self._mean_axis()
            second = compared.item(ranking.item(max(size // 4, 1)))
            difference = second - compared.item(ranking.item(0))
            self._rules.collapse.observe(
                self.generation, step, median, size, damping, self._best_value, difference
            )
            if self.generation % LOOK_EVERY == 0:
                self._rules.collapse.slope.note(sigma * search.spread(), median)


def _tied(values: Vector, ranking: Indices, failures: int) -> tuple[int, int] | None:
    """Return the best candidate and the last parent if their values are equal.

    The ranking tells nothing then.
    """
    last = min(max(ranking.size // 2, 2), ranking.size - failures) - 1
    pair = ranking.item(0), ranking.item(last)
    return pair if last > 0 and values.item(pair[0]) == values.item(pair[1]) else None
