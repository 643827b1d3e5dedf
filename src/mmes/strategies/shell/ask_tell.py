"""The shell around a search: candidates, failures, the update, growth, stopping, state."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmes.base.options import Option, validated
from mmes.base.reasons import StopReason
from mmes.errors import ReducedArchiveWarning, TellError
from mmes.kernels import Handle, Kernel
from mmes.kernels.devices import started_from
from mmes.spaces.boxes import Box, BoxCode, Clip, Rounded
from mmes.spaces.manifolds import Manifold, checked_manifold
from mmes.spaces.space import Extent, Space
from mmes.spaces.start import checked_sigma, claimed_size
from mmes.strategies.parts.growth import grown_options
from mmes.strategies.parts.recombination import evenly, rank, sidelined
from mmes.strategies.parts.record import checked_scalar, checked_value
from mmes.strategies.shell.candidates import Candidates, as_candidate
from mmes.strategies.shell.collapse import Collapse
from mmes.strategies.shell.optimizer import Optimizer
from mmes.strategies.shell.options import COMMON_OPTIONS
from mmes.strategies.shell.protocol import (
    GivesUp,
    HasArchive,
    MakesParents,
    Probes,
    Revalues,
    Search,
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
# Further points of a search that probes.
PROBES = 2


class AskTell(Optimizer):
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

    search_type: ClassVar[type[Search]]
    grows: ClassVar[bool] = True
    watches_collapse: ClassVar[bool] = False
    """Whether the shell watches how values fall with sigma, and knows a collapse from an end."""

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
        if cls.__init__ is not AskTell.__init__:  # the author's own has the last word on options
            where = {"bounds": space.box, "scale": space.scale, "manifold": space.manifold}
            return cls(space.x0, space.sigma0, **where, **options)  # type: ignore[arg-type]
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
        self.box, self._setup = begun.box, begun.setup
        self._widest = widest_sigma(begun.box, space.sigma0)
        self.planned_bytes, self._rows_at_once = begun.plan.bytes, begun.plan.rows_at_once
        self.search = self.search_type(begun.setup, begun.plan.options)
        # Said outright: neither a smaller machine that resumes nor growth may change the archive.
        if "archive_size" in self.options and isinstance(self.search, HasArchive):
            self.options["archive_size"] = self.search.archive_size
        self._updates_ahead = isinstance(self.search, UpdatesAhead)
        start: Vector = space.x0.ravel()  # type: ignore[union-attr]
        self._begin_counting(as_candidate(kernel, start, self._n, self._walls()))
        self._doublings = 0  # since the last generation that was told
        self._mean_seen: Vector | None = None
        watched = self.watches_collapse and not (self.probes or isinstance(self.box, Rounded))
        self._rules = StopRules(
            self.options,
            self.sigma0,
            window=patience(begun.setup.degrees_of_freedom, self.box),
            farthest=1e20 * float(np.max(np.abs(start)) + np.max(space.reach)),
            spread=self.search.spread(),
            collapse=Collapse(self._n, self.sigma0) if watched else None,
            rounded=self.box if isinstance(self.box, Rounded) else None,
        )
        self._candidates = Candidates(kernel, self._n, mapping_of(self.box))

    # What a user reads

    @classmethod
    def option_table(cls) -> tuple[Option, ...]:
        """Return all options: those of every strategy, then the algorithm's own, for experts."""
        own = cls.search_type.options
        return COMMON_OPTIONS + tuple(
            option if option.name == "population_size" else replace(option, expert=True)
            for option in own
        )

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
        """Candidates per generation, lambda, besides the start point or probes."""
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
    def needs_population(self) -> bool:
        """Whether an update needs all candidates; otherwise it makes the parents again."""
        box = self._setup.box
        return (
            not isinstance(self.search, MakesParents)
            or self.search.needs_population
            or self.manifold is not None
            or (box is not None and box.code is BoxCode.OWN)
            or isinstance(self.box, Rounded)
        )

    @property
    def rows_at_once(self) -> int:
        """See `Optimizer.rows_at_once`; fewer than `rows` where there is no population."""
        few = None if isinstance(self.box, Rounded) else self._rows_at_once
        return self.rows if few is None else min(few, self.rows)

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
        if self._candidates.evaluated is None and self.manifold is not None:
            self._draw()
        return self._readonly_view(self._some(rows))

    def _some(self, rows: NDArray[np.intp]) -> Handle:
        rows = rows - self._extra_rows()
        first = self._first() if (rows < 0).any() else ()
        return self._candidates.some(self.search, self.generation, rows, first)

    def _candidate(self, row: int) -> Handle:
        return self.kernel.copy(self.kernel.row(self._some(np.array([row])), 0))

    def _draw(self) -> None:
        first = self._first() if self._extra_rows() else ()
        self._candidates.make_all(self.search, self.generation, first)

    def _first(self) -> tuple[Handle, ...]:
        """Return the points before those that are drawn: the start point, or probes."""
        if isinstance(self.search, Probes) and self.search.probes_ready:
            box = self._setup.box
            points = self.search.probes()
            return tuple(as_candidate(self.kernel, point, self._n, box) for point in points)
        # Points that the search keeps apart from the box need no walls.
        walls = self._walls() if self._candidates.mapping is None else None
        return (as_candidate(self.kernel, self.search.mean, self._n, walls),)

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
        return self._rules.reasons(self.search, self.kernel, self.generation, self._widest)

    def grow(self, sigma: float | None = None, doublings: int = 1) -> None:
        """Double population size and damping, and go on from where the search stands.

        That is the remedy against noise and against a collapse of the steps: mean, path,
        directions and scales stay, and the next generation is compared with no earlier one. A
        strategy without an option `damping` doubles the population size alone.

        Parameters
        ----------
        sigma : float, optional
            The mutation strength to go on with; by default it stays.
        doublings : int
            How often they are doubled.

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
            self._go_on_with(grown_options(self.options, self.population_size, doublings))
            self._doublings += doublings
        self.resume_at(self.sigma if sigma is None else sigma)

    def _go_on_with(self, options: dict[str, Any]) -> None:
        """Go on with other options, in a search that takes over what this one has learnt."""
        # What the search holds already is handed over: it is not needed a second time.
        plan = planned_search(
            self.search_type, self.kernel, options, self._extent, self.planned_bytes
        )
        other = self.search_type(self._setup, plan.options)
        other.take_over(self.search)
        self.search, self.options = other, options | plan.options
        self.planned_bytes, self._rows_at_once = plan.bytes, plan.rows_at_once

    @property
    def probes(self) -> bool:
        """See `Optimizer.probes`."""
        return isinstance(self.search, Probes) and self.search.probing

    @property
    def can_probe(self) -> bool:
        """See `Optimizer.can_probe`."""
        return self.options.get("step_size") == "auto"

    def probe(self, sigma: float, population_size: int) -> None:
        """See `Optimizer.probe`."""
        if not self.can_probe:
            super().probe(sigma, population_size)
        with self._access:
            changed = {"step_size": "probes", "population_size": population_size}
            self._go_on_with(self.options | changed)
            self._rules.collapse = None
        self.resume_at(sigma)

    def reduced_options(self, asked: Mapping[str, Any], usable: int) -> dict[str, Any]:
        """See `Optimizer.reduced_options`."""
        own = {option.name: asked[option.name] for option in self.search_type.options}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReducedArchiveWarning)
            # Who has no memory for a population elsewhere does without, where that is possible.
            few = {} if self.needs_population else {"rows_at_once": 1}
            try:
                planned, _ = self.search_type.planned(self._n, own, usable)
            except MemoryError:
                planned, _ = self.search_type.planned(self._n, own | few, usable)
        return {n: value for n, value in planned.items() if n not in few and value != own[n]}

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
        # How values fall with sigma says nothing where the objective changes.
        self._rules.collapse = None

    def resume_at(self, sigma: float) -> None:
        """Go on with this mutation strength; the tests on values begin anew."""
        self.search.sigma = checked_sigma(sigma)
        self._mean_seen = None
        self._rules.begin_anew(sigma)

    def answer_to_collapse(self) -> tuple[int, float] | None:
        """See `Optimizer.answer_to_collapse`."""
        collapse = self._rules.collapse
        return None if collapse is None else collapse.answer(self.population_size)

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
        if isinstance(self.search, Probes) and self.search.probes_ready:
            return PROBES
        return int(self.generation == 0 and self.search.needs_start_value)

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
        points = self._candidates.points
        probes = ranked[:0]
        if extra:
            if isinstance(search, Probes) and search.probes_ready:
                probes = ranked[:extra]
            elif ranked.item(0) != math.inf:
                search.start(ranked.item(0))
            ranked = ranked[extra:]
            points = None if points is None else self.kernel.part(points, extra)
        failures = int(np.count_nonzero(ranked == np.inf)) if special else 0
        failed = failures == ranked.size
        rounded, short = self.box if isinstance(self.box, Rounded) else None, False
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
            if points is not None:
                search.update(points, ranking, compared, self.generation)
            elif isinstance(search, MakesParents):
                search.update_alone(ranking, compared, self.generation)
            if probes.size and isinstance(search, Probes):
                search.take_probes(probes, ranked)
            if rounded is not None:
                smallest = self.options["xtol"] * self.sigma0
                least = rounded.least_sigma(search.population_size, smallest)
                short = search.sigma <= least == smallest
                search.sigma = max(search.sigma, least)
            if self._rules.may_be_plateau(sigma) and _ties_decide(ranked, ranking, failures):
                search.sigma = max(sigma, min(sigma * PLATEAU_GROWTH, self._widest))
        self.generation += 1
        least = self._rules.least_sigma(search, self.kernel, self.generation)
        if search.sigma < least:
            search.sigma = least
        self.evaluations += values.size
        self._doublings, self._mean_seen = 0, None
        self._forget()
        share = failures / ranked.size
        self._rules.observe(self.generation, self._best_value, (lowest, highest), share, short)
        if self._rules.collapse is not None and not failed:
            size, damping = ranked.size, self.options["damping"]
            median = compared.item(ranking.item(size // 2))
            self._rules.collapse.observe(self.generation, search.sigma, median, size, damping)


def _ties_decide(values: Vector, ranking: NDArray[np.int64], failures: int) -> bool:
    """Return whether the best value is also that of the last parent: the ranking tells nothing."""
    last = min(max(ranking.size // 2, 2), ranking.size - failures) - 1
    return last > 0 and values.item(ranking.item(0)) == values.item(ranking.item(last))
