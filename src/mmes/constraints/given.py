"""The constraints of the user, checked and converted to the form lower <= h(x) <= upper.

Callables g(x) <= 0, `Equality`, and SciPy's constraint objects and dicts, which are recognized by
their attributes, so that SciPy need not be installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.arrays import Vector
from mmes.constraints.linear import check_feasible
from mmes.evaluate.adapter import is_evaluator
from mmes.evaluate.constrained import ConstrainedObjective, MatrixProduct, Part
from mmes.strategies import AskTell


@dataclass(frozen=True)
class Equality:
    """The constraint h(x) = 0, to be given to `mmes.minimize` among the `constraints`.

    Parameters
    ----------
    fun : callable
        One point in, one or several real numbers out; with ``vectorized=True`` a (k, n) array in,
        a (k, m) array out.
    tol : float, optional
        A point is feasible if every entry is within this of 0. By default `constraint_tolerance`.
    """

    fun: Callable[[Any], Any]
    tol: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.fun):
            raise TypeError(f"fun of Equality must be callable, not {self.fun!r}")
        tol = self.tol
        if tol is not None and not (isinstance(tol, int | float) and 0 < tol < np.inf):
            raise ValueError(f"tol of Equality must be a number > 0, not {tol!r}")


@dataclass(frozen=True)
class Constraints:
    """All constraints of a run."""

    parts: tuple[Part, ...]  # As they were given.
    returned: bool = False  # Whether the first of them comes with the value of the objective.

    @classmethod
    def checked(cls, given: Any, returned: bool = False) -> Constraints | None:
        """Return the given constraints in one form; None if there are none.

        Raises TypeError or ValueError if one of them is invalid.
        """
        parts: list[Part] = []
        if returned:
            parts.append(_limited("the objective, as its second value,", None, -np.inf, 0.0))
        if given is not None:
            several = isinstance(given, Sequence) and not isinstance(given, str)
            listed = list(given) if several else [given]
            for index, one in enumerate(listed):
                name = f"constraints[{index}]" if several else "constraints"
                part = _part(one, name)
                if part.limited:  # SciPy takes others, too
                    parts.append(part)
        return cls(tuple(parts), returned) if parts else None

    def objective(self, fun: Any, vectorized: bool) -> ConstrainedObjective:
        """Return the objective that evaluates values and constraints in one call."""
        return ConstrainedObjective(fun, self.parts, self.returned, vectorized)

    def split(self, table: Vector) -> tuple[Vector, Vector, list[int]]:
        """Return the values, the violations and the number of values of each part."""
        head = len(self.parts)
        counts = table[:, 1:head]
        counts = counts[~np.isnan(counts).any(axis=1)]  # a failed point has none
        if len(counts) and (counts != counts[0]).any():
            raise ValueError("the constraints must return the same number of values at every point")
        found = [int(count) for count in counts[0]] if len(counts) else []
        return table[:, 0], table[:, head:], found

    def equalities(self, entries: int, counts: list[int]) -> tuple[NDArray[np.bool_], Vector]:
        """Return which entries must be 0, and the tolerance of each (NaN where none was given).

        `entries` are all of them, `counts` the values of every part but the last.
        """
        masks = [part.equalities(n) for part, n in zip(self.parts, counts, strict=False)]
        rest = entries - sum(mask.size for mask in masks)
        last = self.parts[-1]
        masks.append(last.equalities(_values_behind(last, rest)))
        tols = [
            np.full(mask.size, np.nan if part.tol is None else part.tol)
            for part, mask in zip(self.parts, masks, strict=True)
        ]
        return np.concatenate(masks), np.concatenate(tols)


def check_usable(given: Constraints, settings: Any, workers: Any) -> None:
    """Refuse unsupported combinations, and linear constraints that contradict each other."""
    strategy, space = settings.strategy, settings.space
    if space.integers is not None and any(
        part.tol is None and (part.lower == part.upper).any() for part in given.parts
    ):
        raise ValueError(
            "with integer variables an equality needs a tolerance: mmes.Equality(h, tol)"
        )
    if not issubclass(strategy, AskTell):
        raise ValueError(
            f"constraints cannot be combined with the strategy {strategy.name!r}, which "
            "compares new candidates with the values of old ones: use 'auto' or an evolution "
            "strategy"
        )
    if is_evaluator(workers) and (not given.returned or len(given.parts) > 1):
        raise ValueError(
            "a custom evaluator must return the constraints itself, one row per point: set "
            "returns_constraints=True and omit constraints="
        )
    check_feasible(given.parts, space)


def _values_behind(part: Part, entries: int) -> int:
    """Return how many values of h give this number of entries."""
    if part.lower.size > 1 or part.upper.size > 1:
        return max(part.lower.size, part.upper.size)
    return entries // max(part.equalities(1).size, 1)


def _part(given: Any, name: str) -> Part:
    if isinstance(given, Equality):
        return _limited(name, given.fun, 0.0, 0.0, tol=given.tol)
    if isinstance(given, Mapping):
        return _from_dict(given, name)
    if hasattr(given, "A") and hasattr(given, "lb"):
        matrix = given.A if hasattr(given.A, "tocsr") else np.atleast_2d(np.asarray(given.A, float))
        entries = matrix if isinstance(matrix, np.ndarray) else matrix.tocsr().data
        if not np.isfinite(entries).all():
            raise ValueError(f"the matrix of {name} must be finite")
        product = MatrixProduct(matrix)
        return _limited(name, product, given.lb, given.ub, by_rows=True)
    if hasattr(given, "fun") and hasattr(given, "lb"):
        return _limited(name, given.fun, given.lb, given.ub, by_rows=True)
    if callable(given):
        return _limited(name, given, -np.inf, 0.0)
    raise TypeError(
        f"{name} must be a function g with g(x) <= 0, mmes.Equality, or one of SciPy's constraints "
        f"(NonlinearConstraint, LinearConstraint, a dict), not {given!r}"
    )


def _from_dict(given: Mapping[str, Any], name: str) -> Part:
    kinds = {"ineq": (0.0, np.inf), "eq": (0.0, 0.0)}
    kind = str(given.get("type")).lower()  # as SciPy does
    if kind not in kinds or not callable(given.get("fun")):
        raise ValueError(
            f"{name} must have the entries 'type' ('ineq' or 'eq') and 'fun' (a function), "
            f"not {dict(given)!r}"
        )
    args = given.get("args", ())
    args = tuple(args) if isinstance(args, tuple | list) else (args,)
    return _limited(name, given["fun"], *kinds[kind], args=args, by_rows=True)


def _limited(name: str, fun: Any, lower: Any, upper: Any, **more: Any) -> Part:
    lower, upper = (np.atleast_1d(np.asarray(side, dtype=np.float64)) for side in (lower, upper))
    if np.isnan(lower).any() or np.isnan(upper).any():
        raise ValueError(f"the limits of {name} must not be NaN")
    if (lower > upper).any():
        raise ValueError(f"{name} contradicts itself: a lower limit is above the upper one")
    if np.isposinf(lower).any() or np.isneginf(upper).any():
        raise ValueError(f"{name} cannot be satisfied: a lower limit is inf, or an upper one -inf")
    return Part(name, fun, lower, upper, **more)
