"""The ask/tell shell around a generator that yields points and is sent their values."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmes.base import memory
from mmes.base.options import Option, validated
from mmes.base.randomness import fresh_seed
from mmes.base.reasons import StopReason
from mmes.kernels import choose_kernel
from mmes.lab.competitors.parts.draws import Draws, Vector
from mmes.lab.competitors.parts.setting import WORST, Asking, Setting
from mmes.spaces.bounds import checked_box, checked_inside
from mmes.spaces.manifolds import checked_manifold
from mmes.spaces.space import Space
from mmes.spaces.start import checked_point, claimed_size
from mmes.strategies.shell.optimizer import Optimizer
from mmes.strategies.shell.options import COMMON_OPTIONS

_COMMON = {option.name: option for option in COMMON_OPTIONS}
SHARED_OPTIONS = (
    _COMMON["seed"],
    # Their populations lie in the host's memory.
    replace(_COMMON["kernel"], choices=("auto", "native", "reference")),
    _COMMON["threads"],
    Option(
        "stagnation_window",
        int,
        "Number of evaluations within which the best value must improve; 'off' disables this test.",
        default_text="1000 n, at least 200000",
        low=1,
        choices=("off",),
    ),
)


@runtime_checkable
class HasSimd(Protocol):
    """A kernel that was compiled for several SIMD levels."""

    simd: str


def population_option(default: int, low: int) -> Option:
    """Return the option of the population size."""
    return Option("population_size", int, "Population size.", default=default, symbol="NP", low=low)


class Competitor(Optimizer):
    """A bounded algorithm to be asked for points and told their values.

    Parameters
    ----------
    x0 : array_like
        A point in the box: one member of the first population.
    sigma0 : float, optional
        Not used: the box determines the size of all steps. It is accepted, like `scale`, so that
        these algorithms can be used like strategies.
    bounds : tuple, list
        (lower, upper), or one pair per variable, finite. No point ever lies outside.
    scale, manifold : None
        Not used; a manifold is refused.
    **options
        See `option_table`.

    Notes
    -----
    The number of points that `ask` returns differs from call to call: a whole population, or a
    single step of a local search. The search is a pure function of the seed and of the values told;
    a state is the list of these values, and `from_state` replays the search with them, without
    evaluating.
    """

    own_options: ClassVar[tuple[Option, ...]] = ()
    needs_box: ClassVar[bool] = True
    evaluates_start: ClassVar[bool] = False  # type: ignore[assignment]

    def __init__(
        self,
        x0: ArrayLike,
        sigma0: float | None = None,
        *,
        bounds: Any = None,
        scale: ArrayLike | None = None,
        manifold: Any = None,
        **options: Any,
    ):
        chosen = validated(self.option_table(), options, type(self).__name__)
        checked_manifold(manifold, self.name, self.on_manifolds, bounds, scale)
        self._planned(claimed_size(x0), chosen)  # before anything of that size is copied
        start = checked_point(x0)
        box = checked_box(bounds, start.size, f"the strategy {self.name!r}")
        checked_inside(start, *box)
        self._begin(Space(start, 1.0 if sigma0 is None else float(sigma0), box), chosen)

    @classmethod
    def within(cls, space: Space, options: dict[str, Any]) -> Self:
        """See `Optimizer.within`."""
        made = cls.__new__(cls)
        box = checked_box(space.box, space.n, f"the strategy {cls.name!r}")
        chosen = validated(cls.option_table(), options, cls.__name__)
        made._begin(replace(space, box=box), chosen)
        return made

    @classmethod
    def check_memory(cls, space: Space, options: dict[str, Any], held: int) -> None:
        """See `Optimizer.check_memory`."""
        cls._planned(space.n, validated(cls.option_table(), options, cls.__name__), held)

    def _begin(self, space: Space, options: dict[str, Any]) -> None:
        if space.x0 is None or space.box is None:
            raise ValueError("x0 is needed: an optimizer starts at a point")
        self.planned_bytes = self._planned(space.n, options)
        self.options = options
        if options["seed"] is None:
            options["seed"] = fresh_seed()
        self.seed, self.sigma0 = options["seed"], space.sigma0
        self.kernel = choose_kernel(options["kernel"], options["threads"])
        draws = Draws(self.seed, self.kernel.simd if isinstance(self.kernel, HasSimd) else None)
        self._setting = Setting(*space.box, space.x0, draws)
        self._begin_counting(space.x0)
        self._failed_in_a_row, self._unbounded, self._improved_at = 0, False, 0
        window = options["stagnation_window"] or max(1000 * space.n, 200_000)
        self._window = math.inf if window == "off" else window
        self._told = array("d")
        self._asking = self.search(self._setting)
        self._batch: Vector = self._readonly_view(next(self._asking))
        self._shown = False  # whether the batch was asked for

    def search(self, setting: Setting) -> Asking[None]:
        """Return the algorithm: a generator that yields points and is sent their values."""
        raise NotImplementedError(f"{type(self).__name__} must define search")

    # What a user reads

    @classmethod
    def option_table(cls) -> tuple[Option, ...]:
        """Return all options: those of every competitor, then the algorithm's own."""
        return SHARED_OPTIONS + cls.own_options

    @property
    def dimension(self) -> int:
        """Number of variables n."""
        return self._setting.n

    @property
    def population_size(self) -> int:
        """Members of the population; `ask` may give more or fewer points."""
        return self.options["population_size"]

    @property
    def rows(self) -> int:
        """How many points `ask` returns next."""
        return self._batch.shape[0]

    @property
    def mean(self) -> Vector:
        """The centre of the search: the best point so far, read-only."""
        return self.best_x

    @property
    def sigma(self) -> float:
        """The given value: these algorithms have no mutation strength."""
        return self.sigma0

    # Ask and tell

    @property
    def _asked(self) -> bool:
        return self._shown

    def _points(self) -> Vector:
        self._shown = True
        return self._batch

    def _some_points(self, rows: NDArray[np.intp]) -> Vector:
        self._shown = True
        return self._readonly_view(self._batch[rows])

    def _candidate(self, row: int) -> Vector:
        return self._batch[row].copy()

    def _forget(self) -> None:
        self._pending, self._shown = None, False

    def _own_reasons(self) -> Iterator[StopReason]:
        if self._unbounded:
            yield StopReason.UNBOUNDED
        if self._failed_in_a_row >= 10 * self.population_size:
            yield StopReason.ALL_FAILED
        if self.evaluations - self._improved_at >= self._window:
            yield StopReason.STAGNATED

    # State

    def state(self, copy: bool = True) -> dict[str, Any]:
        """See `Optimizer.state`: the values told, with which the search is replayed."""
        setting = self._setting
        arrays = {
            "start": setting.start,
            "lower": setting.lower,
            "upper": setting.upper,
            "best_x": self._best_x,
        }
        return {
            "strategy": self.name,
            "manifold": None,
            "options": dict(self.options),
            "sigma0": self.sigma0,
            "generation": self.generation,
            "evaluations": self.evaluations,
            "arrays": {name: a.copy() if copy else a for name, a in arrays.items()}
            | {"told": np.array(self._told, dtype=np.float64)},
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
        """See `Optimizer.from_state`.

        It replays the search with the values told, without evaluating. This takes as long as the
        search itself took, without the objective.

        Raises
        ------
        ValueError
            If the state is of another strategy, or replaying its values does not lead to its best
            point.
        """
        if device is not None:
            raise ValueError(f"the strategy {cls.name!r} works on numpy arrays, not on {device!r}")
        if state["strategy"] != cls.name:
            raise ValueError(
                f"this is a state of the strategy {state['strategy']!r}, not of {cls.name!r}"
            )
        arrays = state["arrays"]
        made = cls(
            arrays["start"],
            state["sigma0"],
            bounds=(arrays["lower"], arrays["upper"]),
            **state["options"] | {"kernel": kernel, "threads": threads},
        )
        told = np.asarray(arrays["told"], dtype=np.float64)
        if told.shape != (state["evaluations"],):
            raise ValueError(
                f"{state['evaluations']} evaluations need as many values, not {told.shape}"
            )
        while made.evaluations < told.size:
            rows = made._batch.shape[0]
            values = told[made.evaluations : made.evaluations + rows]
            if values.size < rows:
                raise ValueError(f"the values end within a step of {rows} evaluations")
            made._complete(values)
        if made.generation != state["generation"] or not np.array_equal(
            made._best_x, arrays["best_x"]
        ):
            raise ValueError("the values of the state do not lead to its best point")
        return made

    # Inner works

    @classmethod
    def _planned(cls, n: int, options: dict[str, Any], held: int = 0) -> int:
        """Return the memory in bytes; refuse what does not fit before it is allocated."""
        size = options["population_size"]
        # The population, one of trials, and what is computed on the way.
        needed = 8 * n * (6 * size + 20)
        usable = int((memory.available_bytes() + held) * memory.USABLE_SHARE)
        if needed > usable:
            raise MemoryError(
                f"{cls.name} needs {memory.in_words(needed)} for n = {n} and a population of "
                f"{size}; but {memory.in_words(usable)} are usable"
            )
        return needed

    def _complete(self, values: Vector) -> None:
        if values.size == 1:
            values = self._complete_one(float(values[0]))
        else:
            values = self._complete_many(values)
        self.generation += 1
        self._forget()
        self._batch = self._readonly_view(self._asking.send(values))

    def _complete_many(self, values: Vector) -> Vector:
        """Record the values; return them as the search sees them, all finite."""
        finite = np.isfinite(values)
        seen = values
        if not finite.all():
            self.failed_evaluations += int(np.isnan(values).sum())
            self._unbounded = self._unbounded or bool((values == -math.inf).any())
            seen = np.where(np.isnan(values), math.inf, values)
        best = int(seen.argmin())
        self.evaluations += values.size
        self._told.frombytes(values.tobytes())
        if seen[best] < self._best_value:
            self._best_value = float(seen[best])
            self._best_x = self._batch[best].copy()
            self._improved_at = self.evaluations
        self._failed_in_a_row = 0 if finite.any() else self._failed_in_a_row + values.size
        return np.clip(seen, -WORST, WORST)

    def _complete_one(self, value: float) -> Vector:
        """Do what `_complete_many` does for a single value, in a fraction of the time."""
        self.evaluations += 1
        self._told.append(value)
        if value < self._best_value:
            self._best_value = value
            self._best_x = self._batch[0].copy()
            self._improved_at = self.evaluations
            self._unbounded = self._unbounded or value == -math.inf
        if math.isfinite(value):
            self._failed_in_a_row = 0
        else:
            self._failed_in_a_row += 1
            self.failed_evaluations += math.isnan(value)
        return np.array([min(max(value, -WORST), WORST) if value == value else WORST])
