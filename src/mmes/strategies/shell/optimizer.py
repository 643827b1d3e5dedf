"""The base class of all optimizers: ask, tell, stop, copy, restore."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmes.base import memory
from mmes.base.options import Option
from mmes.base.reasons import StopReason
from mmes.errors import TellError
from mmes.kernels import Handle, Kernel
from mmes.spaces.manifolds import Manifold
from mmes.spaces.space import Space
from mmes.strategies.shell.pending import ExclusiveAccess, Pending, checked_rows, received
from mmes.strategies.shell.protocol import Vector
from mmes.strategies.shell.state import rebuilt
from mmes.strategies.shell.stopping import checked_target


class Optimizer(ABC):
    """The common base of all optimizers, which `minimize` uses.

    A subclass generates the points (`_points`) and processes their values (`_complete`). `AskTell`
    does so for a `Search`, `Competitor` for a generator of points.

    Attributes
    ----------
    options : dict
        All options, including defaults.
    seed : int
        The seed of all random numbers.
    sigma0 : float
        The initial mutation strength.
    kernel : Kernel
        The operations on vectors.
    generation, evaluations, failed_evaluations : int
        Counts of what was told so far; a failed evaluation is NaN.
    planned_bytes : int
        Its memory in bytes.
    """

    name: ClassVar[str]
    on_manifolds: ClassVar[bool] = False
    """Whether it takes a manifold: all it does with vectors goes through the kernel."""
    needs_box: ClassVar[bool] = False
    """Whether it searches a box only, as the competitors do."""
    grows: ClassVar[bool] = False
    """Whether `grow` doubles its population in place, the answer to noise."""

    options: dict[str, Any]
    seed: int
    sigma0: float
    kernel: Kernel
    manifold: Manifold | None = None
    planned_bytes: int = 0

    @abstractmethod
    def __init__(
        self,
        x0: ArrayLike,
        sigma0: float,
        *,
        bounds: Any = None,
        scale: ArrayLike | None = None,
        manifold: Manifold | None = None,
        **options: Any,
    ): ...

    @classmethod
    @abstractmethod
    def within(cls, space: Space, options: dict[str, Any]) -> Self:
        """Return an optimizer for a checked space."""

    @classmethod
    @abstractmethod
    def check_memory(cls, space: Space, options: dict[str, Any], held: int) -> None:
        """Raise MemoryError if an optimizer would not fit after `held` bytes are released."""

    def _begin_counting(self, start: Handle) -> None:
        """Reset everything that changes with the values told."""
        self.generation = self.evaluations = self.failed_evaluations = 0
        self._best_x, self._best_value = start, math.inf
        self._pending: Pending | None = None  # while values come in parts
        self._access = ExclusiveAccess()

    # What a user reads

    @classmethod
    @abstractmethod
    def option_table(cls) -> tuple[Option, ...]:
        """Return all options: the common ones, then those of the algorithm."""

    @classmethod
    def replicable(cls) -> bool:
        """Return whether the same values give the same bits on every processor."""
        return False

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of variables n."""

    @property
    @abstractmethod
    def population_size(self) -> int:
        """Candidates per generation, lambda."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of points that `ask` returns next."""

    @property
    def rows_at_once(self) -> int:
        """The number of rows to ask for at a time."""
        return self.rows

    @property
    @abstractmethod
    def evaluates_start(self) -> bool:
        """Whether the start point is the first point that is asked."""

    @property
    @abstractmethod
    def mean(self) -> Vector:
        """The centre of the search, read-only; in a box, its image there."""

    @property
    @abstractmethod
    def sigma(self) -> float:
        """The mutation strength."""

    @property
    def best_value(self) -> float:
        """The best value told so far; inf before the first finite one."""
        return self._with_pending()[0]

    @property
    def best_x(self) -> Vector:
        """The point of the best value told so far (the start point before the first), read-only."""
        return self._readonly_view(self._with_pending()[1])

    # Ask and tell

    def ask(self, rows: ArrayLike | None = None) -> Vector:
        """Return the points to be evaluated, a read-only array with one point per row.

        Asking again before telling returns the same array. A strategy returns `population_size`
        rows; if it needs the value of the start point, the first generation has one more row before
        them, the start point. For a competitor the number differs from call to call.

        Parameters
        ----------
        rows : array_like of int, optional
            Return only these candidates. If the whole generation has not been asked for, a strategy
            computes no others and does not keep these: so a few at a time fit into memory where a
            population does not, and one of many machines can start with its share. For the update,
            parents are computed again.

        Raises
        ------
        ValueError
            If `rows` are not rows of this generation.
        """
        with self._access:
            if rows is None:
                return self._points()
            return self._some_points(checked_rows("rows", rows, self.rows))

    def tell(self, values: Any, index: ArrayLike | None = None) -> None:
        """Tell the values of the asked points; the update happens when all are there.

        Parameters
        ----------
        values : array_like
            One value per point; NaN marks a failed evaluation and ranks last.
        index : array_like of int, optional
            The rows that the values belong to, if they are told in parts; by default all rows in
            order.

        Raises
        ------
        TellError
            If nothing was asked, the number of values is wrong, or a row is unknown or was told
            before. The state is unchanged.
        """
        with self._access:
            if not self._asked:
                raise TellError(
                    "there is nothing to tell: call ask() first, and tell each generation once"
                )
            if self.kernel.device is not None:
                values = self._fetched(values, index is None)
            self._pending, complete = received(self._pending, values, index, self.rows)
            if complete is not None:
                self._complete(complete)

    def revalue(self, values: ArrayLike) -> None:  # noqa: B027  # may be ignored
        """Take in other values of the generation told last: the objective itself has changed.

        With a penalty whose weight adapts, for example, the next generation is then compared with
        what this one would be worth by the new weight. Candidates, mean and directions stay.
        An optimizer that compares no generations ignores this.

        Parameters
        ----------
        values : array_like
            One value per candidate, in the order of their rows; NaN for a failed one.
        """

    def skip(self) -> None:
        """Discard the asked generation: the next `ask` returns the same points again."""
        with self._access:
            self._forget()

    def stop(
        self, target: SupportsFloat | None = None, max_evaluations: int | None = None
    ) -> StopReason | None:
        """Return why the search should end, or None to continue.

        Parameters
        ----------
        target : float, optional
            Stop when a value at or below this was seen; infinite values count as no target.
        max_evaluations : int, optional
            Stop when the next generation would exceed this many evaluations.
        """
        return next(self._reasons(target, max_evaluations), None)

    def reasons(
        self, target: SupportsFloat | None = None, max_evaluations: int | None = None
    ) -> tuple[StopReason, ...]:
        """Return all reasons to end, the most informative first; parameters as in `stop`."""
        return tuple(self._reasons(target, max_evaluations))

    def _reasons(
        self, target: SupportsFloat | None, max_evaluations: int | None
    ) -> Iterator[StopReason]:
        if target is not None and -math.inf < self.best_value <= checked_target(target):
            yield StopReason.TARGET_REACHED
        yield from self._own_reasons()
        if max_evaluations is not None and self.evaluations + self.rows > max_evaluations:
            yield StopReason.MAX_EVALUATIONS

    def answer_to_collapse(self) -> tuple[int, float] | None:
        """Return how often the population should be doubled, and sigma then, if steps collapse.

        None if they do not, and for strategies that do not check this. The answer is that of the
        last generation; `grow` takes both.
        """
        return None

    def look_again(self) -> bool:
        """Go back to longer steps if it is in doubt whether the search has converged.

        Return whether it did: the search should go on then. Strategies that do not check this
        return False.
        """
        return False

    def strayed(self, best: Any) -> bool:
        """Return whether it has seen a kink, and is not where the best point is.

        Steps that have become short say nothing about that point then. Strategies that do not
        check this return False.
        """
        return False

    def grow(self, sigma: float | None = None, doublings: int = 1, kinked: bool = False) -> None:
        """Double the population in place, if `grows` is true.

        Raises
        ------
        TypeError
            If it cannot.
        """
        raise TypeError(f"the strategy {self.name!r} cannot grow its population in place")

    @property
    def probes(self) -> bool:
        """Whether its rule for the mutation strength compares no generations."""
        return False

    @property
    def can_probe(self) -> bool:
        """Whether `probe` can be called: it has such a rule, and its choice was left to it."""
        return False

    def probe(self, sigma: float, population_size: int) -> None:
        """Go on from the mean with a rule for the mutation strength that compares no generations.

        Parameters
        ----------
        sigma : float
            The mutation strength to go on with.
        population_size : int
            Candidates per generation from now on.

        Raises
        ------
        TypeError
            If it has none.
        MemoryError
            If that does not fit; the search stays as it is.
        """
        raise TypeError(f"the strategy {self.name!r} always compares generations")

    def reduced_options(self, asked: Mapping[str, Any], usable: int) -> dict[str, Any]:
        """Return the options that must change so that it fits into `usable` bytes.

        `asked` are the options as the user gave them, before defaults were filled in.

        Raises
        ------
        MemoryError
            If it cannot be made to fit.
        """
        if usable < self.planned_bytes:
            raise MemoryError(
                f"{self.name} needs {memory.in_words(self.planned_bytes)}, but "
                f"{memory.in_words(usable)} are usable"
            )
        return {}

    def resume_at(self, sigma: float) -> None:
        """Continue with this mutation strength, if there is one to set."""
        raise TypeError(f"the strategy {self.name!r} has no mutation strength to set")

    # State

    @abstractmethod
    def state(self, copy: bool = True) -> dict[str, Any]:
        """Return the state after the last completed generation: JSON-able entries, and arrays.

        Parameters
        ----------
        copy : bool
            Whether the arrays are copied; without, they change with the next `tell`.
        """

    @classmethod
    def from_state(
        cls,
        state: dict[str, Any],
        *,
        kernel: str = "auto",
        threads: int | None = None,
        device: str | None = None,
    ) -> Self:
        """Return an optimizer that continues from a state, to the bit as if it had never stopped.

        Kernel, threads and device may differ from those of the run that the state was taken from;
        on another kind of device it continues up to rounding. A competitor replays the search with
        the values told, without evaluating.

        Raises
        ------
        ValueError
            If the state is of another strategy, or its parts do not fit together.
        """
        if state["strategy"] != cls.name:
            raise ValueError(
                f"this is a state of the strategy {state['strategy']!r}, not of {cls.name!r}"
            )
        return cls._from_state(state, {"kernel": kernel, "threads": threads, "device": device})

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n={self.dimension}, generation={self.generation}, "
            f"evaluations={self.evaluations}, best_value={self.best_value:.6g}, "
            f"sigma={self.sigma:.3g}, seed={self.seed})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        pending = None if self._pending is None else self._pending.told()
        return rebuilt, (type(self), self.state(), self._asked, pending)

    # What a subclass does

    @classmethod
    @abstractmethod
    def _from_state(cls, state: dict[str, Any], place: dict[str, Any]) -> Self:
        """Return an optimizer that goes on from a state of its own, at a place."""

    @property
    @abstractmethod
    def _asked(self) -> bool:
        """Whether points were asked and not told yet."""

    @abstractmethod
    def _points(self) -> Vector:
        """Return all points of this generation, as users see them."""

    @abstractmethod
    def _some_points(self, rows: NDArray[np.intp]) -> Vector:
        """Return some points of this generation, as users see them."""

    @abstractmethod
    def _candidate(self, row: int) -> Handle:
        """Return one point of this generation, a copy."""

    @abstractmethod
    def _complete(self, values: Vector) -> None:
        """Process the values of all points."""

    @abstractmethod
    def _own_reasons(self) -> Iterator[StopReason]:
        """Yield the reasons to end besides target and budget, the most informative first."""

    def _fetched(self, values: Any, whole: bool) -> Any:
        """Return values that are on a device; `whole` means that they are a whole generation."""
        return self.kernel.fetched(values)

    def _forget(self) -> None:
        """Discard the points that were asked, and their values."""
        self._pending = None

    def in_shape(self, flat: Handle) -> Vector:
        """Return a flat point in the shape of points, read-only."""
        return self._readonly_view(flat)

    def _readonly_view(self, flat: Handle) -> Vector:
        """Return points as users see them: read-only, and in the shape of the manifold."""
        shape = flat.shape
        if self.manifold is not None:
            shape = (*shape[:-1], *self.manifold.shape)
        return self.kernel.readonly_view(flat, shape)

    def _with_pending(self) -> tuple[float, Handle]:
        """Return the best value and point, including those of an incomplete generation."""
        if self._pending is not None:
            values = np.where(np.isnan(self._pending.values), np.inf, self._pending.values)
            best = int(values.argmin())
            if values[best] < self._best_value:
                return float(values[best]), self._candidate(best)
        return self._best_value, self._best_x
