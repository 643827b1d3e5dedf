"""The ask/tell shell around a search: bookkeeping, failures, best point, stopping, state."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmes.base.options import Option, validated
from mmes.base.reasons import StopReason
from mmes.errors import TellError
from mmes.kernels import Handle
from mmes.kernels.devices import started_from
from mmes.spaces.boxes import Box, Clip, Rounded, with_integers
from mmes.spaces.manifolds import Manifold
from mmes.spaces.start import checked_sigma, claimed_size
from mmes.strategies.parts.growth import grown_options
from mmes.strategies.parts.recombination import rank
from mmes.strategies.shell.candidates import Candidates, as_candidate
from mmes.strategies.shell.options import COMMON_OPTIONS
from mmes.strategies.shell.pending import OneAtATime, Pending, checked_rows, rebuilt, told
from mmes.strategies.shell.protocol import Search, Vector
from mmes.strategies.shell.setup import Beginning, apart, patience, planned_search, widest_sigma
from mmes.strategies.shell.state import restored, state_of
from mmes.strategies.shell.stopping import Ends

# On a plateau the mutation strength grows by this per generation.
PLATEAU_GROWTH = math.exp(0.2)


class AskTell:
    """A strategy to be asked for candidates and told their values.

    Parameters
    ----------
    x0 : array_like
        Start point; copied.
    sigma0 : float
        Start mutation strength: the typical distance, along one variable, at which improvements are
        expected.
    bounds : tuple, list or None
        (lower, upper), or one pair per variable. No candidate ever lies outside.
    scale : array_like or None
        Typical size of each variable, where they differ; sigma0 multiplies it.
    manifold : Manifold or None
        The space to search, for strategies that know manifolds. Points then have its shape, x0 as
        well as the candidates; bounds and scales do not go with it.
    integers : array_like, bool or None
        Which variables are integers: their indices, a mask, or True for all. Candidates hold
        rounded values there, also those at both ends of the bounds.
    **options
        The options of all strategies and of this one; see `option_table`.

    Notes
    -----
    Candidates are a pure function of the seed, the state and the generation: asking again gives the
    same array, and what was lost can be rebuilt.
    """

    name: ClassVar[str]
    search_type: ClassVar[type[Search]]
    on_manifolds: ClassVar[bool] = False
    """Whether the strategy takes a manifold: all it does with vectors goes through the kernel."""
    needs_box: ClassVar[bool] = False
    """Whether the strategy searches a box only, as the competitors do."""

    def __init__(
        self,
        x0: ArrayLike,
        sigma0: float,
        *,
        bounds: Any = None,
        scale: ArrayLike | None = None,
        manifold: Manifold | None = None,
        integers: Any = None,
        **options: Any,
    ):
        x0, options = started_from(x0, options)
        bounds = with_integers(bounds, integers, claimed_size(x0))
        chosen = validated(self.option_table(), options, type(self).__name__)
        begun = Beginning.checked(self, x0, sigma0, (bounds, scale, manifold), chosen)
        self.options: dict[str, Any] = begun.options
        self.seed: int = begun.setup.seed
        self.sigma0 = begun.setup.sigma
        self.kernel, self.manifold = begun.setup.kernel, begun.setup.manifold
        self.box, self.planned_bytes = begun.box, begun.planned_bytes
        self._setup, self._shape, self._n = begun.setup, begun.shape, begun.setup.n
        self._search = self.search_type(begun.setup, begun.own_options)
        # Said outright: neither a smaller machine that resumes nor growth may change the archive.
        if "archive_size" in self.options:
            archive_size = self.options["archive_size"]
            self.options["archive_size"] = getattr(self._search, "archive_size", archive_size)
        self.generation = 0
        self.evaluations = 0
        self.failed_evaluations = 0
        self._best_x = as_candidate(self.kernel, begun.start, self._n, self._walls())
        self._best_value = math.inf
        self._ends = Ends(
            self.options,
            self.sigma0,
            window=patience(begun.setup.degrees_of_freedom, self.box),
            farthest=1e20 * float(np.max(np.abs(begun.start)) + np.max(begun.reach)),
            spread=self._search.spread(),
            integers=isinstance(self.box, Rounded),
        )
        self._candidates = Candidates(self.kernel, self._n, apart(self.box))
        self._pending: Pending | None = None  # while values come in parts
        self._alone = OneAtATime()

    # What a user reads

    @classmethod
    def option_table(cls) -> tuple[Option, ...]:
        """Return all options: those of every strategy, then the algorithm's own."""
        return COMMON_OPTIONS + cls.search_type.options

    @property
    def dimension(self) -> int:
        """Number of variables n."""
        return self._n

    @property
    def population_size(self) -> int:
        """Candidates per generation, lambda, besides the start point in the first one."""
        return self._search.population_size

    @property
    def evaluates_start(self) -> bool:
        """Whether the start point is the first candidate of the first generation."""
        return self._search.needs_start_value

    @property
    def rows(self) -> int:
        """Candidates of the present generation: the rows of what `ask` returns."""
        return self.population_size + self._extra_rows()

    @property
    def parents_suffice(self) -> bool:
        """Whether an update needs no candidates of this generation but those that it selects."""
        search = self._search
        return (
            getattr(search, "parents_suffice", False)
            and self.manifold is None
            and self._candidates.apart is None
            and not self._extra_rows()
        )

    @property
    def mean(self) -> Vector:
        """The centre of the search, read-only; in a box, its image there."""
        mean, mapped = self._search.mean, self._candidates.apart
        if mapped is not None:
            mean = as_candidate(self.kernel, mean, self._n, mapped)
        elif self.box is not None:  # with signed weights it may lie outside
            mean = self.kernel.copy(mean)
            self.kernel.confine(mean, mean, self.box)
        return self._shown(mean)

    @property
    def sigma(self) -> float:
        """The mutation strength."""
        return self._search.sigma

    @property
    def best_value(self) -> float:
        """The best value told so far; inf before the first finite one."""
        return self._with_pending()[0]

    @property
    def best_x(self) -> Vector:
        """The point of the best value told so far (the start point before the first), read-only."""
        return self._shown(self._with_pending()[1])

    # Ask and tell

    def ask(self, rows: ArrayLike | None = None) -> Vector:
        """Return the candidates of this generation, a read-only array with one candidate per row.

        There are `population_size` rows; in the very first generation of a strategy that needs the
        start point's value there is one more, the start point itself, before them. Asking again
        before telling gives the same array.

        Parameters
        ----------
        rows : array_like of int, optional
            Return these candidates alone. Where the generation has not been asked for yet, no
            others are computed: one machine of many can begin with its share. When all values are
            told, those of the others are computed that the update needs.

        Raises
        ------
        ValueError
            If `rows` are no rows of this generation.
        """
        with self._alone:
            if rows is not None:
                return self._chosen(checked_rows("rows", rows, self.rows))
            candidates = self._candidates
            if candidates.evaluated is None:
                self._draw()
            return self._shown(candidates.evaluated)

    def _chosen(self, rows: NDArray[np.intp]) -> Vector:
        candidates = self._candidates
        if candidates.evaluated is None and candidates.apart is None and not self._extra_rows():
            whole = self.parents_suffice
            return self._shown(candidates.chosen(self._search, self.generation, rows, whole))
        if candidates.evaluated is None:
            self._draw()
        return self._shown(candidates.evaluated)[rows]

    def _draw(self) -> None:
        first, search = None, self._search
        if self._extra_rows():
            # Points that the search keeps apart from the box need no walls.
            walls = self._walls() if self._candidates.apart is None else None
            first = as_candidate(self.kernel, search.mean, self._n, walls)
        self._candidates.make_all(search, self.generation, first)

    def tell(self, values: Any, index: ArrayLike | None = None) -> None:
        """Take in values of the asked candidates; the update happens when all have come.

        Parameters
        ----------
        values : array_like
            One value per candidate; NaN marks a failed evaluation and ranks last.
        index : array_like of int, optional
            The rows that the values belong to, if they come in parts; by default all rows in order.

        Raises
        ------
        TellError
            If nothing was asked, the number of values is wrong, or a row is unknown or was told
            before. The state is unchanged.
        """
        with self._alone:
            if not self._candidates.asked:
                raise TellError(
                    "there is nothing to tell: call ask() first, and tell each generation once"
                )
            if self.kernel.device is not None:
                if index is None:
                    self._begin(values)
                values = self.kernel.fetched(values)
            self._pending, complete = told(self._pending, values, index, self.rows)
            if complete is not None:
                self._complete(complete)

    def _begin(self, values: Any) -> None:
        """Let a search begin its update while the values are on their way, where both know how."""
        search, points = self._search, self._candidates.points
        whole = points is not None and self._pending is None and not self._extra_rows()
        if not whole or not hasattr(search, "begin"):
            return
        ranking = self.kernel.ranked(values, self.rows, self._n)
        if ranking is not None:
            search.begin(points, ranking, self.generation)  # type: ignore[attr-defined]

    def skip(self) -> None:
        """Give up the asked generation: the next `ask` gives the same candidates again."""
        with self._alone:
            self._forget()

    def stop(
        self, target: float | None = None, max_evaluations: int | None = None
    ) -> StopReason | None:
        """Return why the search should end, or None to go on.

        Parameters
        ----------
        target : float, optional
            Stop when a value at or below this was seen.
        max_evaluations : int, optional
            Stop when the next generation would exceed this many evaluations.
        """
        return next(self._reasons(target, max_evaluations), None)

    def reasons(
        self, target: float | None = None, max_evaluations: int | None = None
    ) -> tuple[StopReason, ...]:
        """Return all reasons to end that hold now, the most telling first; parameters as `stop`."""
        return tuple(self._reasons(target, max_evaluations))

    def _reasons(self, target: float | None, max_evaluations: int | None) -> Iterator[StopReason]:
        if target is not None and self.best_value <= target:
            yield StopReason.TARGET_REACHED
        yield from self._ends.reasons(self._search, self.kernel, self.generation)
        if max_evaluations is not None and self.evaluations + self.rows > max_evaluations:
            yield StopReason.MAX_EVALUATIONS

    def grow(self, sigma: float | None = None) -> None:
        """Double population size and damping, and go on from where the search stands.

        That is the remedy against noise: mean, path, directions and scales stay, and the next
        generation is compared with no earlier one. A strategy without an option `damping` doubles
        the population size alone.

        Parameters
        ----------
        sigma : float, optional
            The mutation strength to go on with; by default it stays.

        Raises
        ------
        TellError
            If a generation was asked and not told: `skip` it first.
        MemoryError
            If the larger population does not fit; the search stays as it is.
        """
        with self._alone:
            if self._candidates.asked:
                raise TellError("a generation was asked and not told yet: tell it, or skip it")
            options = grown_options(self.options, self.population_size, 1)
            boxed = None if self.box is None else options["bounds_handling"]
            planned, self.planned_bytes = planned_search(
                self.search_type, self.kernel, options, self._n, boxed, self.manifold
            )
            self.options = options | planned
            grown = self.search_type(self._setup, planned)
            grown.take_over(self._search)
            self._search = grown
        self.resume_at(self.sigma if sigma is None else sigma)

    def revalue(self, values: ArrayLike) -> None:
        """Take in other values of the generation told last: the objective itself has changed.

        With a penalty whose weight adapts, for example, the next generation is then compared with
        what this one would be worth by the new weight. Candidates, mean and directions stay.

        Parameters
        ----------
        values : array_like
            One value per candidate, in the order of their rows; NaN for a failed one.
        """
        search, found = self._search, np.array(values, dtype=np.float64)[-self.population_size :]
        if hasattr(search, "revalue"):
            search.revalue(np.sort(np.where(np.isnan(found), np.inf, found)))

    def resume_at(self, sigma: float) -> None:
        """Go on with this mutation strength; the tests on values begin anew."""
        self._search.sigma = checked_sigma(sigma)
        self._ends.begin_anew()

    # State

    def state(self, copy: bool = True) -> dict[str, Any]:
        """Return the state after the last completed generation: JSON-able entries, and arrays.

        Parameters
        ----------
        copy : bool
            Whether the arrays are copied; without, they change with the next `tell`.
        """
        return state_of(self, copy)

    @classmethod
    def from_state(
        cls,
        state: dict[str, Any],
        *,
        kernel: str = "auto",
        threads: int | None = None,
        device: str | None = None,
    ) -> Self:
        """Return an optimizer that goes on from a state, to the bit as if it had never stopped.

        Kernel, threads and device may differ from those of the run that the state was taken from;
        on another kind of device it goes on as there but for rounding.
        """
        return restored(cls, state, {"kernel": kernel, "threads": threads, "device": device})

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n={self.dimension}, generation={self.generation}, "
            f"evaluations={self.evaluations}, best_value={self.best_value:.6g}, "
            f"sigma={self.sigma:.3g}, seed={self.seed})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        pending = None if self._pending is None else self._pending.told()
        return rebuilt, (type(self), self.state(), self._candidates.asked, pending)

    # Inner works

    def _walls(self) -> Box | None:
        """Return the walls of the box, for points that lie outside by their rounding alone."""
        if self.box is None:
            return None
        return self.box.walls() or Clip(self.box.lower, self.box.upper)

    def in_shape(self, flat: Handle) -> Vector:
        """Return a point, entry by entry, in the shape of points, read-only."""
        return self._shown(flat)

    def _shown(self, flat: Handle) -> Vector:
        """Return points as users see them: read-only, and in the shape of the manifold."""
        shape = flat.shape
        return self.kernel.shown(
            flat, shape if self.manifold is None else (*shape[:-1], *self._shape)
        )

    def _forget(self) -> None:
        self._candidates.forget()
        self._pending = None

    def _extra_rows(self) -> int:
        return int(self.generation == 0 and self._search.needs_start_value)

    def _parents_alone(self, ranking: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Make what the update needs where some were asked for; return where it lies."""
        if self._candidates.evaluated is not None:
            return None
        if not self.parents_suffice:
            self._draw()
            return None
        return self._candidates.make_parents(self._search, self.generation, ranking)

    def _complete(self, values: Vector) -> None:
        kernel, search = self.kernel, self._search
        extra = values.size - search.population_size
        ranked = values
        ranking = rank(values[extra:] if extra else values)
        places = self._parents_alone(ranking)
        # The ranking goes from -inf over the numbers and +inf to NaN: its ends tell what there is.
        best = ranking.item(0)
        lowest, highest = values.item(best), values.item(ranking.item(-1))
        if extra or not (math.isfinite(lowest) and math.isfinite(highest)):
            # NaN counts as +inf everywhere but in the ranking, where it comes after +inf.
            missing = np.isnan(values)
            ranked = np.where(missing, np.inf, values)
            self.failed_evaluations += int(missing.sum())
            best, highest = int(ranked.argmin()), float(ranked.max())
            lowest = ranked.item(best)
        if lowest < self._best_value:
            self._best_value = lowest
            place = best if places is None else int(places[best])
            self._best_x = kernel.copy(kernel.row(self._candidates.evaluated, place))
        points = self._candidates.points
        if extra:
            search.start(ranked.item(0))
            ranked, points = ranked[extra:], kernel.part(points, extra)
        failed = ranked.item(ranking.item(0)) == math.inf
        rounded, short = self.box if isinstance(self.box, Rounded) else None, False
        if rounded is not None:  # some candidates always leave the integers that are the best
            highest = ranked.item(ranking.item((ranking.size - 1) // 2))
        # Without information the state stays: the next generation is another draw.
        if failed and hasattr(search, "give_up"):
            search.give_up()  # type: ignore[attr-defined]
        if not failed:
            sigma = search.sigma
            where: tuple[NDArray[np.int64], ...] = () if places is None else (places,)
            search.update(points, ranking, ranked, self.generation, *where)
            if rounded is not None:
                smallest = self.options["xtol"] * self.sigma0
                least = rounded.least_sigma(search.population_size, smallest)
                short = search.sigma <= least == smallest
                search.sigma = max(search.sigma, least)
            elif _ties_decide(ranked, ranking):
                widest = widest_sigma(self.box, self.sigma0)
                search.sigma = max(sigma, min(sigma * PLATEAU_GROWTH, widest))
        self.generation += 1
        self.evaluations += values.size
        self._forget()
        self._ends.observe(self.generation, self._best_value, (lowest, highest), failed, short)

    def _with_pending(self) -> tuple[float, Handle]:
        """Return the best value and point, those of a generation still being told included."""
        candidates = self._candidates.evaluated
        if self._pending is not None and candidates is not None:
            values = np.where(np.isnan(self._pending.values), np.inf, self._pending.values)
            best = int(values.argmin())
            if values[best] < self._best_value:
                kernel = self.kernel
                return float(values[best]), kernel.copy(kernel.row(candidates, best))
        return self._best_value, self._best_x


def _ties_decide(values: Vector, ranking: NDArray[np.int64]) -> bool:
    """Return whether the best value is also that of the last parent: the ranking tells nothing."""
    last = ranking.item(max(ranking.size // 2, 2) - 1)
    return values.item(ranking.item(0)) == values.item(last)
