"""The shell around a search: candidates, failures, the update, growth, stopping, state."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmes.base.options import Option, validated
from mmes.base.reasons import StopReason
from mmes.errors import ReducedArchiveWarning, TellError
from mmes.kernels import Handle, Kernel
from mmes.kernels.devices import started_from
from mmes.spaces.boxes import Box, Clip, Rounded
from mmes.spaces.manifolds import Manifold, checked_manifold
from mmes.spaces.space import Extent, Space
from mmes.spaces.start import checked_sigma, claimed_size
from mmes.strategies.parts.growth import grown_options
from mmes.strategies.parts.recombination import evenly, rank
from mmes.strategies.parts.record import checked_scalar, checked_value
from mmes.strategies.shell.candidates import Candidates, as_candidate
from mmes.strategies.shell.optimizer import Optimizer
from mmes.strategies.shell.options import COMMON_OPTIONS
from mmes.strategies.shell.protocol import (
    GivesUp,
    HasArchive,
    Revalues,
    Search,
    SelectsParents,
    UpdatesAhead,
    Vector,
)
from mmes.strategies.shell.setup import (
    StrategySetup,
    mapping_of,
    opened_kernel,
    patience,
    planned_search,
    widest_sigma,
)
from mmes.strategies.shell.state import COUNTS, arguments_of, check_state
from mmes.strategies.shell.stopping import StopRules

# On a plateau the mutation strength grows by this per generation.
PLATEAU_GROWTH = math.exp(0.2)


class AskTell(Optimizer):
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

    Attributes
    ----------
    search : Search
        The algorithm behind the shell. Its state is its own: it belongs to no promise.

    Notes
    -----
    Candidates are a pure function of the seed, the state and the generation: asking again gives the
    same array, and what was lost can be rebuilt.
    """

    search_type: ClassVar[type[Search]]
    grows: ClassVar[bool] = True

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
        chosen = validated(self.option_table(), options, type(self).__name__)
        checked_sigma(sigma0)
        checked_manifold(manifold, self.name, self.on_manifolds, bounds, scale)
        kernel = opened_kernel(self, manifold, chosen)
        # Refused by its size before anything of that size is copied.
        boxed = bounds is not None or integers is not None
        extent = Extent(claimed_size(x0), boxed, manifold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReducedArchiveWarning)  # comes with the plan that holds
            planned_search(self.search_type, kernel, chosen, extent)
        space = Space.checked(x0, sigma0, bounds, scale, manifold, integers)
        self._begin(space, chosen, kernel)

    @classmethod
    def within(cls, space: Space, options: dict[str, Any]) -> Self:
        """Return an optimizer in a space that was checked."""
        chosen = validated(cls.option_table(), options, cls.__name__)
        made = cls.__new__(cls)
        made._begin(space, chosen, opened_kernel(cls, space.manifold, chosen))
        return made

    @classmethod
    def check_memory(cls, space: Space, options: dict[str, Any], held: int) -> None:
        """See `Optimizer.check_memory`."""
        chosen = validated(cls.option_table(), options, cls.__name__)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReducedArchiveWarning)
            kernel = opened_kernel(cls, space.manifold, chosen)
            planned_search(cls.search_type, kernel, chosen, space.extent, held)

    def _begin(self, space: Space, options: dict[str, Any], kernel: Kernel) -> None:
        begun = StrategySetup.made(self, space, options, kernel)
        self.options, self.kernel = begun.options, kernel
        self.seed, self.sigma0 = begun.setup.seed, space.sigma0
        self.manifold, self._extent, self._n = space.manifold, space.extent, begun.setup.n
        self.box, self.planned_bytes, self._setup = begun.box, begun.planned_bytes, begun.setup
        self.search = self.search_type(begun.setup, begun.own_options)
        # Said outright: neither a smaller machine that resumes nor growth may change the archive.
        if "archive_size" in self.options and isinstance(self.search, HasArchive):
            self.options["archive_size"] = self.search.archive_size
        self._updates_ahead = isinstance(self.search, UpdatesAhead)
        start: Vector = space.x0.ravel()  # type: ignore[union-attr]
        self._begin_counting(as_candidate(kernel, start, self._n, self._walls()))
        self._doublings = 0  # since the last generation that was told
        self._mean_seen: Vector | None = None
        self._rules = StopRules(
            self.options,
            self.sigma0,
            window=patience(begun.setup.degrees_of_freedom, self.box),
            farthest=1e20 * float(np.max(np.abs(start)) + np.max(space.reach)),
            spread=self.search.spread(),
            integers=isinstance(self.box, Rounded),
        )
        self._candidates = Candidates(kernel, self._n, mapping_of(self.box))

    # What a user reads

    @classmethod
    def option_table(cls) -> tuple[Option, ...]:
        """Return all options: those of every strategy, then the algorithm's own."""
        return COMMON_OPTIONS + cls.search_type.options

    @classmethod
    def replicable(cls) -> bool:
        """See `Optimizer.replicable`."""
        return cls.search_type.replicable

    @property
    def dimension(self) -> int:
        """Number of variables n."""
        return self._n

    @property
    def population_size(self) -> int:
        """Candidates per generation, lambda, besides the start point in the first one."""
        return self.search.population_size

    @property
    def evaluates_start(self) -> bool:
        """Whether the start point is the first candidate of the first generation."""
        return self.search.needs_start_value

    @property
    def rows(self) -> int:
        """Candidates of the present generation: the rows of what `ask` returns."""
        return self.population_size + self._extra_rows()

    @property
    def parents_suffice(self) -> bool:
        """Whether an update needs no candidates of this generation but those that it selects."""
        return (
            isinstance(self.search, SelectsParents)
            and self.search.parents_suffice
            and self.manifold is None
            and self._candidates.mapping is None
            and not self._extra_rows()
        )

    @property
    def mean(self) -> Vector:
        """The centre of the search, read-only; in a box, its image there."""
        if self._mean_seen is not None:
            return self._mean_seen
        mean, mapped = self.search.mean, self._candidates.mapping
        if mapped is not None:
            mean = as_candidate(self.kernel, mean, self._n, mapped)
        elif self.box is not None:  # with signed weights it may lie outside
            mean = self.kernel.copy(mean)
            self.kernel.confine(mean, mean, self.box)
        if self.box is not None:
            self._mean_seen = self._readonly_view(mean)
            return self._mean_seen
        return self._readonly_view(mean)

    @property
    def sigma(self) -> float:
        """The mutation strength."""
        return self.search.sigma

    # Ask and tell

    @property
    def _asked(self) -> bool:
        return self._candidates.asked

    def _points(self) -> Vector:
        candidates = self._candidates
        if candidates.evaluated is None:
            self._draw()
        return self._readonly_view(candidates.evaluated)

    def _some_points(self, rows: NDArray[np.intp]) -> Vector:
        candidates = self._candidates
        if candidates.evaluated is None and candidates.mapping is None and not self._extra_rows():
            whole = self.parents_suffice
            return self._readonly_view(candidates.chosen(self.search, self.generation, rows, whole))
        if candidates.evaluated is None:
            self._draw()
        return self._readonly_view(self.kernel.gathered(candidates.evaluated, rows))

    def _evaluated(self) -> Handle | None:
        return self._candidates.evaluated

    def _draw(self) -> None:
        first, search = None, self.search
        if self._extra_rows():
            # Points that the search keeps apart from the box need no walls.
            walls = self._walls() if self._candidates.mapping is None else None
            first = as_candidate(self.kernel, search.mean, self._n, walls)
        self._candidates.make_all(search, self.generation, first)

    def _fetched(self, values: Any, whole: bool) -> Any:
        """Return values of a device; the search begins its update while they are on their way."""
        self._candidates.renew_if_written(self.search, self.generation)
        points = self._candidates.points
        whole = whole and points is not None and self._pending is None and not self._extra_rows()
        if whole and self._updates_ahead:
            ranking = self.kernel.ranked(values, self.rows, self._n)
            if ranking is not None:
                self.search.begin(points, ranking, self.generation)  # type: ignore[attr-defined]
        return self.kernel.fetched(values)

    def _own_reasons(self) -> Iterator[StopReason]:
        return self._rules.reasons(self.search, self.kernel, self.generation)

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
        with self._access:
            if self._candidates.asked:
                raise TellError("a generation was asked and not told yet: tell it, or skip it")
            options = grown_options(self.options, self.population_size, 1)
            # What the search holds already is handed over: it is not needed a second time.
            planned, needed = planned_search(
                self.search_type, self.kernel, options, self._extent, self.planned_bytes
            )
            grown = self.search_type(self._setup, planned)
            grown.take_over(self.search)
            self.search, self.options, self.planned_bytes = grown, options | planned, needed
            self._doublings += 1
        self.resume_at(self.sigma if sigma is None else sigma)

    def reduced_options(self, usable: int) -> dict[str, Any]:
        """See `Optimizer.reduced_options`."""
        own = {option.name: self.options[option.name] for option in self.search_type.options}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReducedArchiveWarning)
            planned, _ = self.search_type.planned(self._n, own, usable)
        return {name: value for name, value in planned.items() if value != own[name]}

    def revalue(self, values: ArrayLike) -> None:
        """Take in other values of the generation told last: the objective itself has changed.

        With a penalty whose weight adapts, for example, the next generation is then compared with
        what this one would be worth by the new weight. Candidates, mean and directions stay.

        Parameters
        ----------
        values : array_like
            One value per candidate, in the order of their rows; NaN for a failed one.
        """
        found = np.array(values, dtype=np.float64)[-self.population_size :]
        found, ranking = np.where(np.isnan(found), np.inf, found), rank(found)
        failures = int(np.count_nonzero(found == np.inf))
        if isinstance(self.search, Revalues) and failures < found.size:
            self.search.revalue(np.sort(evenly(found, ranking, failures)))

    def resume_at(self, sigma: float) -> None:
        """Go on with this mutation strength; the tests on values begin anew."""
        self.search.sigma = checked_sigma(sigma)
        self._mean_seen = None
        self._rules.begin_anew()

    # State

    def state(self, copy: bool = True) -> dict[str, Any]:
        """See `Optimizer.state`."""
        arrays = {f"search/{name}": array for name, array in self.search.arrays().items()}
        arrays["best_x"] = self.kernel.to_host(self._best_x)
        if self.box is not None:
            arrays |= self.box.arrays()
        arrays |= self._rules.arrays()
        return {
            "strategy": self.name,
            "manifold": None if self.manifold is None else self.manifold.description(),
            "options": dict(self.options),
            "sigma0": self.sigma0,
            "generation": self.generation,
            "evaluations": self.evaluations,
            "failed_evaluations": self.failed_evaluations,
            "doublings": self._doublings,
            **self._rules.entries(),
            "best_value": self._best_value,
            "search": self.search.scalars(),
            "arrays": {name: a.copy() if copy else a for name, a in arrays.items()},
        }

    @classmethod
    def from_state(
        cls,
        state: dict[str, Any],
        *,
        kernel: str = "auto",
        threads: int | None = None,
        device: str | None = None,
    ) -> Self:
        """See `Optimizer.from_state`."""
        check_state(cls, state)
        place = {"kernel": kernel, "threads": threads, "device": device}
        made = cls(**arguments_of(state, place))
        made._restore(state)
        return made

    def _restore(self, state: dict[str, Any]) -> None:
        arrays = state["arrays"]
        if self.box is not None:
            self.box = type(self.box).from_arrays(arrays)
            self._candidates.mapping = mapping_of(self.box)
        inner = {name[7:]: array for name, array in arrays.items() if name.startswith("search/")}
        told = any(a.size for name, a in inner.items() if name.endswith("previous"))
        if told and self.search.needs_start_value:
            self.search.start(0.0)  # makes room for the values that are restored
        self.search.restore(state["search"], inner)
        # As it was told: the constructor checks it, but brings a point of a manifold closer to it.
        self._best_x = as_candidate(self.kernel, arrays["best_x"].ravel(), self._n, None)
        for name in COUNTS:
            setattr(self, name, checked_scalar(name, state[name], 0))
        self._doublings = checked_scalar("doublings", state["doublings"], 0)
        self._best_value = checked_value("best_value", state["best_value"])
        self._rules.restore(self.generation, state)

    # Inner works

    def _walls(self) -> Box | None:
        """Return the walls of the box, for points that lie outside by their rounding alone."""
        if self.box is None:
            return None
        return self.box.walls() or Clip(self.box.lower, self.box.upper)

    def _forget(self) -> None:
        self._candidates.forget()
        self._pending = None

    def _extra_rows(self) -> int:
        return int(self.generation == 0 and self.search.needs_start_value)

    def _parents_alone(self, ranking: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Make what the update needs where some were asked for; return where it lies."""
        if self._candidates.evaluated is not None:
            return None
        if not self.parents_suffice:
            self._draw()
            return None
        return self._candidates.make_parents(self.search, self.generation, ranking)

    def _complete(self, values: Vector) -> None:
        kernel, search = self.kernel, self.search
        extra = values.size - search.population_size
        ranked = values
        ranking = rank(values[extra:] if extra else values)
        positions = self._parents_alone(ranking)
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
            place = best if positions is None else int(positions[best])
            self._best_x = kernel.copy(kernel.row(self._candidates.evaluated, place))
        points = self._candidates.points
        if extra:
            if ranked.item(0) != math.inf:
                search.start(ranked.item(0))
            ranked, points = ranked[extra:], kernel.part(points, extra)
        failures = int(np.count_nonzero(ranked == np.inf)) if special else 0
        failed = failures == ranked.size
        rounded, short = self.box if isinstance(self.box, Rounded) else None, False
        if rounded is not None:  # some candidates always leave the integers that are the best
            highest = ranked.item(ranking.item((ranking.size - 1) // 2))
        # Without information the state stays: the next generation is another draw.
        if failed and isinstance(search, GivesUp):
            search.give_up()
        if not failed:
            sigma = search.sigma
            where: tuple[NDArray[np.int64], ...] = () if positions is None else (positions,)
            compared = evenly(ranked, ranking, failures) if failures else ranked
            search.update(points, ranking, compared, self.generation, *where)
            if rounded is not None:
                smallest = self.options["xtol"] * self.sigma0
                least = rounded.least_sigma(search.population_size, smallest)
                short = search.sigma <= least == smallest
                search.sigma = max(search.sigma, least)
            elif _ties_decide(ranked, ranking, failures):
                widest = widest_sigma(self.box, self.sigma0)
                search.sigma = max(sigma, min(sigma * PLATEAU_GROWTH, widest))
        self.generation += 1
        self.evaluations += values.size
        self._doublings, self._mean_seen = 0, None
        self._forget()
        share = failures / ranked.size
        self._rules.observe(self.generation, self._best_value, (lowest, highest), share, short)


def _ties_decide(values: Vector, ranking: NDArray[np.int64], failures: int) -> bool:
    """Return whether the best value is also that of the last parent: the ranking tells nothing."""
    last = min(max(ranking.size // 2, 2), ranking.size - failures) - 1
    return last > 0 and values.item(ranking.item(0)) == values.item(ranking.item(last))
