"""The life cycle of a search: started in a space, grown, saved and restored."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from mmes.base.options import Option, validated
from mmes.base.reasons import StopReason
from mmes.base.saved_numbers import checked_scalar, checked_value
from mmes.errors import ReducedArchiveWarning, TellError
from mmes.kernels import Kernel
from mmes.kernels.devices import started_from
from mmes.spaces.boxes import Box, BoxCode, Clip, Rounded
from mmes.spaces.manifolds import Manifold, checked_manifold
from mmes.spaces.space import Extent, Space
from mmes.spaces.start import checked_sigma, claimed_size
from mmes.strategies.parts.population import grown_options
from mmes.strategies.shell.candidates import Candidates, as_candidate
from mmes.strategies.shell.collapse import Collapse
from mmes.strategies.shell.optimizer import Optimizer
from mmes.strategies.shell.options import COMMON_OPTIONS
from mmes.strategies.shell.protocol import (
    HasArchive,
    HasAxes,
    MakesParents,
    Probes,
    Search,
    UpdatesAhead,
    Vector,
)
from mmes.strategies.shell.setup import (
    mapping_of,
    opened_kernel,
    patience,
    planned_search,
    setup_in,
    widest_sigma,
)
from mmes.strategies.shell.state import COUNTS, arguments_of, check_sizes
from mmes.strategies.shell.stopping import StopRules

# After a kink, the best point must be where the search ends, up to this share of the first steps.
_APART = 1e-3


class Lifecycle(Optimizer):
    """The part of `AskTell` that creates, grows, saves and restores its search."""

    search_type: ClassVar[type[Search]]
    grows: ClassVar[bool] = True
    grows_at_kinks: ClassVar[bool] = False
    """Whether a larger population is the answer to a collapse; else only success is in doubt."""

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
        # A problem that is too large is refused before anything of its size is copied.
        boxed = bounds is not None or integers is not None
        extent = Extent(claimed_size(x0), boxed, manifold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReducedArchiveWarning)  # the final plan warns
            planned_search(self.search_type, kernel, chosen, extent)
        space = Space.checked(x0, sigma0, bounds, scale, manifold, integers)
        self._begin(space, chosen, kernel)

    @classmethod
    def within(cls, space: Space, options: dict[str, Any]) -> Self:
        if cls.__init__ is not Lifecycle.__init__:  # the author's constructor decides about options
            where = {"bounds": space.box, "scale": space.scale, "manifold": space.manifold}
            return cls(space.x0, space.sigma0, **where, **options)  # type: ignore[arg-type]
        chosen = validated(cls.option_table(), options, cls.__name__)
        made = cls.__new__(cls)
        made._begin(space, chosen, opened_kernel(cls, space.manifold, chosen))
        return made

    @classmethod
    def check_memory(cls, space: Space, options: dict[str, Any], held: int) -> None:
        chosen = validated(cls.option_table(), options, cls.__name__)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReducedArchiveWarning)
            kernel = opened_kernel(cls, space.manifold, chosen)
            planned_search(cls.search_type, kernel, chosen, space.extent, held)

    def _begin(self, space: Space, options: dict[str, Any], kernel: Kernel) -> None:
        plan = planned_search(self.search_type, kernel, options, space.extent)
        self._setup, box = setup_in(space, options, kernel)
        self.seed, self.sigma0, self._n = self._setup.seed, space.sigma0, self._setup.n
        self.options, self.kernel = options | plan.options | {"seed": self.seed}, kernel
        self.manifold, self._extent = space.manifold, space.extent
        self._candidates = Candidates(kernel, self._n, None)
        self._confine_to(box)
        self._widest = widest_sigma(box, space.sigma0)
        self.planned_bytes, self._rows_at_once = plan.bytes, plan.rows_at_once
        self._hold(self.search_type(self._setup, plan.options))
        # As a number: neither resuming on a smaller machine nor growth may change the archive.
        if "archive_size" in self.options and isinstance(self.search, HasArchive):
            self.options["archive_size"] = self.search.archive_size
        start: Vector = space.x0.ravel()  # type: ignore[union-attr]
        self._begin_counting(as_candidate(kernel, start, self._n, self._walls()))
        self._doublings = 0  # since the last generation that was told
        self._mean_seen: Vector | None = None
        watched = not self.probes and self._rounded is None
        learning = 0 if self._axes is None else math.ceil(self._axes.learning_time)
        self._rules = StopRules(
            self.options,
            self.sigma0,
            (patience(self._setup.degrees_of_freedom, self.box), learning),
            farthest=1e20 * float(np.max(np.abs(start)) + np.max(space.reach)),
            spread=self.search.spread(),
            collapse=self._watch() if watched else None,
            rounded=self._rounded,
        )

    def _confine_to(self, box: Box | None) -> None:
        """Set the box, and whether it has integers, which is not checked in each generation."""
        self.box, self._candidates.mapping = box, mapping_of(box)
        self._rounded = box if isinstance(box, Rounded) else None

    def _hold(self, search: Search) -> None:
        """Set the search and what it offers besides; to check it takes 20 us per generation."""
        self.search = search
        self._probes = search if isinstance(search, Probes) and search.probing else None
        self._ahead = search if isinstance(search, UpdatesAhead) else None
        self._alone = search if isinstance(search, MakesParents) else None
        self._axes = search if isinstance(search, HasAxes) else None

    def _watch(self) -> Collapse:
        return Collapse(self._n, self.sigma0 * self._mean_axis(), self._axes is not None)

    def _mean_axis(self) -> float:
        """Return the mean of the axes: with sigma it tells how short steps are, if it is known."""
        return 1.0 if self._axes is None else self._axes.mean_axis()

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
        return cls.search_type.replicable

    @property
    def dimension(self) -> int:
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
    def needs_population(self) -> bool:
        """Whether an update needs all candidates; otherwise it makes the parents again."""
        box = self._setup.box
        return (
            self._alone is None
            or self._alone.needs_population
            or self.manifold is not None
            or (box is not None and box.code is BoxCode.OWN)
            or self._rounded is not None
        )

    @property
    def rows_at_once(self) -> int:
        """See `Optimizer.rows_at_once`; fewer than `rows` where there is no population."""
        few = None if self._rounded is not None else self._rows_at_once
        return self.rows if few is None else min(few, self.rows)

    @property
    def mean(self) -> Vector:
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
        return self.search.sigma

    def _own_reasons(self) -> Iterator[StopReason]:
        return self._rules.reasons(self.search, self.kernel, self.generation, self._widest)

    # Growth

    def grow(self, sigma: float | None = None, doublings: int = 1, kinked: bool = False) -> None:
        """Double population size and damping, and continue from the current state.

        That is the remedy against noise and against a collapse of the steps: mean, path,
        directions and scales stay, and the next generation is compared with no earlier one. A
        strategy without an option `damping` doubles the population size alone.

        Parameters
        ----------
        sigma : float, optional
            The mutation strength to continue with; unchanged by default.
        doublings : int
            How often they are doubled.
        kinked : bool
            Whether values fall as at a kink. A strategy that learns the scales of the variables
            may then learn them faster: those that have reached their kink need shorter steps.

        Raises
        ------
        TellError
            If a generation was asked and not told: `skip` it first.
        MemoryError
            If the larger population does not fit; the search stays as it is.
        """
        with self._access:
            if self._asked:
                raise TellError("a generation was asked and not told yet: tell it, or skip it")
            options = grown_options(self.options, self.population_size, doublings)
            if kinked:
                options |= self._at_kink(doublings)
            self._go_on_with(options)
            self._doublings += doublings
        self.resume_at(self.sigma if sigma is None else sigma)

    def _at_kink(self, doublings: int) -> dict[str, Any]:
        """Return the options that change, besides lambda and damping, where values show a kink."""
        return {}

    def _go_on_with(self, options: dict[str, Any]) -> None:
        """Continue with other options, in a new search that takes over the state of this one."""
        # The memory of this search is handed over, so it does not count twice.
        plan = planned_search(
            self.search_type, self.kernel, options, self._extent, self.planned_bytes
        )
        other = self.search_type(self._setup, plan.options)
        other.take_over(self.search)
        self._hold(other)
        self.options = options | plan.options
        self.planned_bytes, self._rows_at_once = plan.bytes, plan.rows_at_once

    @property
    def probes(self) -> bool:
        return self._probes is not None

    @property
    def can_probe(self) -> bool:
        return self.options.get("step_size") == "auto"

    def probe(self, sigma: float, population_size: int) -> None:
        if not self.can_probe:
            super().probe(sigma, population_size)
        with self._access:
            changed = {"step_size": "probes", "population_size": population_size}
            self._go_on_with(self.options | changed)
            self._rules.collapse = None
        self.resume_at(sigma)

    def reduced_options(self, asked: Mapping[str, Any], usable: int) -> dict[str, Any]:
        own = {option.name: asked[option.name] for option in self.search_type.options}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReducedArchiveWarning)
            # Where the population does not fit, the search works without one if it can.
            few = {} if self.needs_population else {"rows_at_once": 1}
            try:
                planned, _ = self.search_type.planned(self._n, own, usable)
            except MemoryError:
                planned, _ = self.search_type.planned(self._n, own | few, usable)
        return {n: value for n, value in planned.items() if n not in few and value != own[n]}

    def resume_at(self, sigma: float) -> None:
        """Continue with this mutation strength; the tests on values start again."""
        self.search.sigma = checked_sigma(sigma)
        self._mean_seen = None
        self._rules.begin_anew(sigma * self._mean_axis())

    def answer_to_collapse(self) -> tuple[int, float] | None:
        collapse = self._rules.collapse
        if collapse is None or not self.grows_at_kinks:
            return None
        answer = collapse.answer(self.population_size)
        return None if answer is None else (answer[0], answer[1] / self._mean_axis())

    def look_again(self) -> bool:
        collapse = self._rules.collapse
        step = None if collapse is None else collapse.look_again()
        if collapse is not None and step is not None:
            sigma = max(step / self._mean_axis(), collapse.slope.wide / self.search.spread())
            if self._axes is not None:  # the longest axis may have grown while the mean fell
                sigma = min(sigma, self._rules.first_sigma(self.search))
            self.resume_at(sigma)
        return step is not None

    def strayed(self, best: Any) -> bool:
        collapse = self._rules.collapse
        # N.B. a search with axes is small and on the host.
        if self._axes is None or collapse is None or not collapse.kinked:
            return False
        apart = np.asarray(best, dtype=np.float64).ravel() - np.asarray(self.mean).ravel()
        longest = self._rules.first_sigma(self.search) * self.search.spread()
        return float(np.max(np.abs(apart))) > _APART * longest

    def _walls(self) -> Box | None:
        """Return the walls of the box, for points that are outside only by rounding."""
        if self.box is None:
            return None
        return self.box.walls() or Clip(self.box.lower, self.box.upper)

    # State

    def state(self, copy: bool = True) -> dict[str, Any]:
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
    def _from_state(cls, state: dict[str, Any], place: dict[str, Any]) -> Self:
        check_sizes(cls.search_type, state)
        made = cls(**arguments_of(state, place))
        made._restore(state)
        return made

    def _restore(self, state: dict[str, Any]) -> None:
        arrays = state["arrays"]
        if self.box is not None:
            self._confine_to(type(self.box).from_arrays(arrays))
        inner = {name[7:]: array for name, array in arrays.items() if name.startswith("search/")}
        told = any(a.size for name, a in inner.items() if name.endswith("previous"))
        if told and self.search.needs_start_value:
            self.search.start(0.0)  # makes room for the values that are restored
        self.search.restore(state["search"], inner)
        # Exactly as saved: the constructor would move a point of a manifold closer to it.
        self._best_x = as_candidate(self.kernel, arrays["best_x"].ravel(), self._n, None)
        for name in COUNTS:
            setattr(self, name, checked_scalar(name, state[name], 0))
        self._doublings = checked_scalar("doublings", state["doublings"], 0)
        self._best_value = checked_value("best_value", state["best_value"])
        self._rules.restore(self.generation, state)
