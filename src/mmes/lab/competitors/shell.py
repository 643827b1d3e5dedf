"""The ask/tell shell around a generator that yields points and is sent their values."""

from __future__ import annotations

import math
from array import array
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from mmes.base import memory
from mmes.base.options import Option, validated
from mmes.base.randomness import fresh_seed
from mmes.base.reasons import StopReason
from mmes.kernels import choose_kernel
from mmes.lab.competitors.parts.draws import Draws, Vector
from mmes.lab.competitors.parts.setting import WORST, Asking, Setting
from mmes.spaces.bounds import checked_box, checked_inside
from mmes.spaces.manifolds import checked_manifold
from mmes.spaces.start import checked_point, claimed_size
from mmes.strategies.shell.options import COMMON_OPTIONS
from mmes.strategies.shell.pending import OneAtATime, Pending, checked_rows, told

_COMMON = {option.name: option for option in COMMON_OPTIONS}
SHARED_OPTIONS = (
    _COMMON["seed"],
    # Their populations lie in the host's memory.
    replace(_COMMON["kernel"], choices=("auto", "native", "reference")),
    _COMMON["threads"],
    Option(
        "stagnation_window",
        int,
        "Evaluations over which the best value must improve; 'off' never stops for stagnation.",
        default_text="1000 n, at least 200000",
        low=1,
        choices=("off",),
    ),
)


def population_option(default: int, low: int) -> Option:
    """Return the option of the population size."""
    return Option(
        "population_size", int, "Members of the population.", default=default, symbol="NP", low=low
    )


class Competitor:
    """A bounded algorithm to be asked for points and told their values.

    Parameters
    ----------
    x0 : array_like
        A point in the box: one member of the first population.
    sigma0 : float, optional
        Not used: the box tells the size of all steps. It is taken, as `scale` is, so that these
        algorithms can stand wherever a strategy stands.
    bounds : tuple, list
        (lower, upper), or one pair per variable, finite. No point ever lies outside.
    scale, manifold : None
        Not used; a manifold is refused.
    **options
        See `option_table`.

    Notes
    -----
    How many points `ask` returns differs from call to call: a whole population, or a single step
    of a local search. The search is a pure function of the seed and of the values told; a state is
    the list of these values, and `from_state` walks through them again without evaluating.
    """

    name: ClassVar[str]
    own_options: ClassVar[tuple[Option, ...]] = ()
    on_manifolds: ClassVar[bool] = False
    needs_box: ClassVar[bool] = True
    """Whether the algorithm searches a box only."""
    evaluates_start: ClassVar[bool] = False
    """Whether the start point is among the first points that are asked."""

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
        self.options: dict[str, Any] = validated(self.option_table(), options, type(self).__name__)
        checked_manifold(manifold, self.name, self.on_manifolds, bounds, scale)
        self._check_memory(claimed_size(x0))
        start = checked_point(x0)
        lower, upper = checked_box(bounds, start.size, f"the strategy {self.name!r}")
        checked_inside(start, lower, upper)
        if self.options["seed"] is None:
            self.options["seed"] = fresh_seed()
        self.seed: int = self.options["seed"]
        self.sigma0 = 1.0 if sigma0 is None else float(sigma0)
        self.kernel = choose_kernel(self.options["kernel"], self.options["threads"])
        draws = Draws(self.seed, getattr(self.kernel, "simd", None))
        self._setting = Setting(lower, upper, start, draws)
        self.generation = 0
        self.evaluations = 0
        self.failed_evaluations = 0
        self._failed_in_a_row = 0
        self._unbounded = False
        self._best_x = start
        self._best_value = math.inf
        self._improved_at = 0
        window = self.options["stagnation_window"] or max(1000 * start.size, 200_000)
        self._window = math.inf if window == "off" else window
        self._told = array("d")
        self._alone = OneAtATime()
        self._pending: Pending | None = None
        self._asking = self.search(self._setting)
        self._points: Vector = self._shown(next(self._asking))

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
        return self._points.shape[0]

    @property
    def mean(self) -> Vector:
        """The centre of the search: the best point so far, read-only."""
        return self.best_x

    @property
    def sigma(self) -> float:
        """As it was given: these algorithms have no mutation strength."""
        return self.sigma0

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
        """Return the points to be evaluated next, a read-only array with one point per row.

        Asking again before telling gives the same array.

        Parameters
        ----------
        rows : array_like of int, optional
            Return these rows alone.

        Raises
        ------
        ValueError
            If `rows` are no rows of what is asked.
        """
        with self._alone:
            if rows is None:
                return self._points
            return self._points[checked_rows("rows", rows, self.rows)]

    def tell(self, values: Any, index: ArrayLike | None = None) -> None:
        """Take in values of the asked points; the search goes on when all have come.

        Parameters
        ----------
        values : array_like
            One value per point; NaN marks a failed evaluation and ranks last.
        index : array_like of int, optional
            The rows that the values belong to, if they come in parts; by default all rows in order.

        Raises
        ------
        TellError
            If the number of values is wrong, or a row is unknown or was told before. The state is
            unchanged.
        """
        with self._alone:
            self._pending, complete = told(self._pending, values, index, self.rows)
            if complete is not None:
                self._complete(complete)

    def skip(self) -> None:
        """Give up the values told for the points asked; the next `ask` gives the same points."""
        with self._alone:
            self._pending = None

    def stop(
        self, target: float | None = None, max_evaluations: int | None = None
    ) -> StopReason | None:
        """Return why the search should end, or None to go on.

        Parameters
        ----------
        target : float, optional
            Stop when a value at or below this was seen.
        max_evaluations : int, optional
            Stop when the points asked next would exceed this many evaluations.
        """
        if target is not None and -math.inf < self.best_value <= target:
            return StopReason.TARGET_REACHED
        if self._unbounded:
            return StopReason.UNBOUNDED
        if self._failed_in_a_row >= 10 * self.population_size:
            return StopReason.ALL_FAILED
        if self.evaluations - self._improved_at >= self._window:
            return StopReason.STAGNATED
        if max_evaluations is not None and self.evaluations + self.rows > max_evaluations:
            return StopReason.MAX_EVALUATIONS
        return None

    # State

    def state(self, copy: bool = True) -> dict[str, Any]:
        """Return the state after the last completed tell: JSON-able entries, and arrays.

        Parameters
        ----------
        copy : bool
            Whether the arrays are copied; without, they must not be used after the next `tell`.
        """
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
        cls, state: dict[str, Any], *, kernel: str = "auto", threads: int | None = None
    ) -> Self:
        """Return an optimizer that goes on from a state, to the bit as if it had never stopped.

        It walks through the values told once more, without evaluating: that takes the time that
        the search itself took, objective not counted.

        Raises
        ------
        ValueError
            If the state is another strategy's, or walking through its values does not lead to the
            best point that it names.
        """
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
            rows = made._points.shape[0]
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

    def _check_memory(self, n: int) -> None:
        """Refuse what does not fit, before anything is allocated."""
        size = self.options["population_size"]
        # The population, one of trials, and what is computed on the way.
        needed = 8 * n * (6 * size + 20)
        usable = int(memory.available_bytes() * memory.USABLE_SHARE)
        if needed > usable:
            raise MemoryError(
                f"{self.name} needs {memory.in_words(needed)} for n = {n} and a population of "
                f"{size}; but {memory.in_words(usable)} are usable"
            )

    def _shown(self, points: Vector) -> Vector:
        """Return points as users see them: they cannot be made writable."""
        return self.kernel.shown(points, points.shape)

    def _complete(self, values: Vector) -> None:
        if values.size == 1:
            values = self._complete_one(float(values[0]))
        else:
            values = self._complete_many(values)
        self.generation += 1
        self._pending = None
        self._points = self._shown(self._asking.send(values))

    def _complete_many(self, values: Vector) -> Vector:
        """Take note of the values; return them as the search sees them, all finite."""
        finite = np.isfinite(values)
        seen = values
        if not finite.all():
            self.failed_evaluations += int(np.isnan(values).sum())
            self._unbounded = self._unbounded or bool((values == -math.inf).any())
            seen = np.where(np.isnan(values), WORST, values)
        best = int(seen.argmin())
        self.evaluations += values.size
        self._told.frombytes(values.tobytes())
        if seen[best] < self._best_value and seen[best] < WORST:
            self._best_value = float(seen[best])
            self._best_x = self._points[best].copy()
            self._improved_at = self.evaluations
        self._failed_in_a_row = 0 if finite.any() else self._failed_in_a_row + values.size
        return np.clip(seen, -WORST, WORST)

    def _complete_one(self, value: float) -> Vector:
        """Do what `_complete_many` does for a single value, in a fraction of the time."""
        self.evaluations += 1
        self._told.append(value)
        if value < self._best_value and value < WORST:
            self._best_value = value
            self._best_x = self._points[0].copy()
            self._improved_at = self.evaluations
            self._unbounded = self._unbounded or value == -math.inf
        if math.isfinite(value):
            self._failed_in_a_row = 0
        else:
            self._failed_in_a_row += 1
            self.failed_evaluations += math.isnan(value)
        return np.array([min(max(value, -WORST), WORST) if value == value else WORST])

    def _with_pending(self) -> tuple[float, Vector]:
        """Return the best value and point, those of a batch still being told included."""
        if self._pending is not None:
            values = np.where(np.isnan(self._pending.values), np.inf, self._pending.values)
            best = int(values.argmin())
            if values[best] < self._best_value:
                return float(values[best]), self._points[best].copy()
        return self._best_value, self._best_x
