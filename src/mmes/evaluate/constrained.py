"""An objective with constraints: both are evaluated in one call, which gives a row of values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.arrays import Vector
from mmes.base.tensors import to_numpy
from mmes.evaluate.values import Measured, Refused, as_table, as_value, as_values, as_vector


@dataclass(frozen=True)
class MatrixProduct:
    """A x; the matrix may be a sparse SciPy matrix."""

    matrix: Any

    def __call__(self, points: Any) -> Any:
        """Return A x for one point, or for each row."""
        return np.asarray((self.matrix @ to_numpy(points).T).T)


@dataclass(frozen=True)
class Part:
    """One constraint as it was given: lower <= h(x) <= upper, entry by entry."""

    name: str  # Its name in error messages.
    fun: Callable[..., Any] | None  # h; None if the objective returns its values.
    # One entry per value, or one for all. An equality has equal limits.
    lower: Vector
    upper: Vector
    tol: float | None = None  # The tolerance of equalities; None means that of the run.
    args: tuple[Any, ...] = ()  # Further arguments of `fun`.
    by_rows: bool = False  # Whether it takes a single point even if the objective is vectorized.

    @property
    def matrix(self) -> Any:
        """The matrix of a linear constraint; None for others."""
        return self.fun.matrix if isinstance(self.fun, MatrixProduct) else None

    @property
    def limited(self) -> bool:
        """Whether there is a limit at all."""
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    def sides(self, count: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which of `count` values are equalities, have an upper and have a lower limit."""
        lower, upper = np.broadcast_to(self.lower, count), np.broadcast_to(self.upper, count)
        equal = lower == upper
        return equal, np.isfinite(upper) & ~equal, np.isfinite(lower) & ~equal

    def violations(self, values: Vector) -> Vector:
        """Return the entries that must be 0, then those that must not be positive.

        `values` are h of one point, or of several along the first axis.
        """
        count = values.shape[-1]
        for side in (self.lower, self.upper):
            if side.size not in (1, count):
                raise ValueError(
                    f"{self.name} has {side.size} limits, but its function returned {count} values"
                )
        lower, upper = np.broadcast_to(self.lower, count), np.broadcast_to(self.upper, count)
        equal, above, below = self.sides(count)
        # Not from infinite limits: inf - inf is nothing.
        parts = (
            values[..., equal] - lower[equal],
            values[..., above] - upper[above],
            lower[below] - values[..., below],
        )
        return np.concatenate(parts, axis=-1)

    def equalities(self, count: int) -> NDArray[np.bool_]:
        """Return which of the entries of `violations` must be 0, for `count` values of h."""
        equal, above, below = self.sides(count)
        entries = int(equal.sum() + above.sum() + below.sum())
        return np.arange(entries) < int(equal.sum())


@dataclass(frozen=True)
class ConstrainedObjective:
    """Evaluates objective and constraints in one call; unlike a closure, it can be pickled."""

    fun: Callable[[Any], Any]
    parts: tuple[Part, ...]
    returned: bool  # Whether the objective also returns the values of the first part.
    vectorized: bool  # Whether it is called with several points, one per row.

    def __call__(self, x: Any) -> Any:
        """Return the row of one point, or a list of rows."""
        try:
            return self._measured(x, len(x) if self.vectorized else None)
        except _NotAValue as error:
            return Refused(error.why)

    def _measured(self, x: Any, count: int | None) -> Any:
        answer, first = self.fun(x), None
        # Everything is copied at once: a simulation may use its arrays again.
        with _door():
            if self.returned:
                answer, first = _pair(answer)
            value = as_value(answer) if count is None else as_values(answer, count)
        found = []
        for part in self.parts:
            if part.fun is not None and count is not None and part.by_rows and part.matrix is None:
                table = [self._called(part, row, None) for row in x]
                with _door():
                    found.append(as_table(table, count, part.name))
            elif part.fun is not None:
                found.append(self._called(part, x, count))
            else:
                with _door():
                    found.append(_converted(first, count, part.name))
        heads = [np.broadcast_to(float(h.shape[-1]), h.shape[:-1]) for h in found[:-1]]
        with _door():
            violations = [part.violations(h) for part, h in zip(self.parts, found, strict=True)]
            if not any(table.shape[-1] for table in violations):
                names = ", ".join(part.name for part in self.parts)
                raise ValueError(f"{names} must return at least one value")
        if count is None:
            return Measured(np.concatenate(([value, *map(float, heads)], *violations)))
        table = np.column_stack((value, *heads, *violations))
        return [Measured(row) for row in table]

    @staticmethod
    def _called(part: Part, x: Any, count: int | None) -> Vector:
        """Return the values of a part: a vector for one point, a table for `count` of them."""
        assert part.fun is not None
        try:
            given = part.fun(x, *part.args)
        except Exception as error:
            with contextlib.suppress(Exception):  # its class may do anything
                error.add_note(f"mmes: this was raised by {part.name}")
            raise
        with _door():
            return _converted(given, count, part.name)


class _NotAValue(Exception):
    """What was returned is no value; `why` is the error that says so."""

    def __init__(self, why: Exception):
        super().__init__(str(why))
        self.why = why


@contextlib.contextmanager
def _door() -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError) as error:
        raise _NotAValue(error) from error


def _converted(given: Any, count: int | None, name: str) -> Vector:
    return as_vector(given, name) if count is None else as_table(given, count, name)


def _pair(answer: Any) -> tuple[Any, Any]:
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise TypeError(
            "with returns_constraints=True the objective must return (value, constraints), but it "
            f"returned {type(answer).__name__}"
        )
    return answer[0], answer[1]
