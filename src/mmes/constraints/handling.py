"""The constraints during a run: the Lagrangian and the best feasible point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.arrays import Arrays, Vector
from mmes.base.certainty import share_of_rounding, student
from mmes.base.saved_numbers import checked_value
from mmes.base.tensors import to_numpy
from mmes.constraints.ends import EndCounts
from mmes.constraints.given import Constraints
from mmes.constraints.lagrangian import Lagrangian
from mmes.constraints.linear import exact_point

# Violations of this share of the tolerance need no larger factors.
_NEGLIGIBLE = 0.1
# A mean that violates constraints by so many tolerances at most may be moved to satisfy them.
_NEAR = 100.0
# By this share of f an exact point may be worse besides.
_GRANTED = 1e-9
# An inequality that holds holds by no more than this.
_DEEPEST = -1e100
# The share of normal numbers above two standard deviations.
_SURE = 0.02275


@dataclass(frozen=True)
class Measurement:
    """A point with its value f, its constraints g and its violation."""

    x: Any
    value: float
    constraints: Vector
    prices: Vector  # The absolute values of the multipliers when it was found.
    violation: float  # The largest one; 0 if there is none.
    feasible: bool  # Whether no constraint is violated by more than its tolerance.


class Handling:
    """Ranks candidates with the constraints, and remembers the best point.

    A constraint counts as satisfied if it is violated by no more than `tolerance`; n is the number
    of variables, `integers` of those that are integers and can change, and `alone` says whether no
    others can.
    """

    def __init__(
        self, given: Constraints, tolerance: float, n: int, integers: int = 0, alone: bool = False
    ):
        self.given, self.tolerance, self.n = given, tolerance, n
        self.ends = EndCounts(n, integers, alone)
        self.lagrangian: Lagrangian | None = None  # until the first evaluation says how many
        self.best: Measurement | None = None
        # Whether the search has ended at a feasible point; None where nobody has looked yet.
        self.settled: bool | None = None
        # The values of the newest generation by the new multipliers, if these have changed.
        self.changed: Vector | None = None
        self._tolerances: Vector = np.empty(0)
        self._own_tolerances: Vector = np.empty(0)  # of single constraints; NaN: that of all
        self._newest: tuple[Vector, Vector] | None = None

    # What was measured

    def table(self, measured: Vector) -> Vector:
        """Return the evaluator's values with one row per point, even if all evaluations failed.

        Raises ValueError if the number of constraints has changed.
        """
        if measured.ndim == 2:
            self._split(measured)
            return measured
        known = 0 if self.lagrangian is None else self.lagrangian.equality.size
        width = len(self.given.parts) + known if known else 1
        return np.full((measured.size, width), np.nan)

    def take(self, points: Any, table: Vector, kernel: Any) -> Vector:
        """Process evaluated points and return the values by which they are ranked."""
        f, g = self._split(table)
        if self.lagrangian is None:
            return np.full(len(f), np.nan)
        self._remember(points, f, g, kernel)
        self._newest = f, g
        return self.values_of(f, g)

    def values(self, table: Vector) -> Vector:
        """Return the values by which points are ranked, without remembering them."""
        f, g = self._split(table)
        return np.full(len(f), np.nan) if self.lagrangian is None else self.values_of(f, g)

    def values_of(self, f: Vector, g: Vector) -> Vector:
        """Return L; a value of -inf that violates constraints is a failure."""
        assert self.lagrangian is not None
        values = self.lagrangian.values(f, g)
        return np.where(np.isneginf(values) & ~self._feasible(g), np.nan, values)

    def adapt(self, centre: Vector | None = None, noisy: bool = False) -> Vector | None:
        """Adapt the multipliers to the newest generation; return its values by the new ones.

        `centre` is what was measured at the mean of the generation, a table of one row, if it was.
        """
        self.changed = None
        if self.lagrangian is None or self._newest is None:
            return None
        self.settled, measured = None, None
        f, g = self._newest
        worth = float((np.abs(self.lagrangian.multipliers) * self._tolerances).max())
        self.ends.watch(self.values_of(f, g), f, worth)
        if noisy:  # the best feasible point is a lucky one
            self.ends.forget_best()
        elif (
            self.ends.by_best
            and self.feasible
            and self.ends.look_for_better(self.best_value, f, self._feasible(g))
        ):
            self.settled = True
        if centre is not None:
            f, g = self._split(centre)
            measured = float(f[0]), g[0]
        self.changed = self.lagrangian.update(*self._newest, measured)
        return self.changed

    @property
    def offset(self) -> float:
        """What is subtracted from the values by which candidates are ranked."""
        return 0.0 if self.lagrangian is None else self.lagrangian.offset

    @property
    def hopeless(self) -> bool:
        """Whether a constraint is violated by more than its tolerance."""
        return self.lagrangian is not None and self.lagrangian.hopeless(self._tolerances)

    def confirms(self, table: Vector) -> bool:
        """Return whether new values of the best point say of the constraints what they said."""
        _, g = self._split(table)
        if self.best is None or np.isnan(g).any():
            return False
        before = self.best.constraints
        rounding = share_of_rounding(*g[0].tolist(), *before.tolist()) * np.abs(before)
        same = np.abs(g[0] - before) <= np.maximum(self._tolerances, rounding)
        return bool(same.all()) and bool(self._feasible(g).all())

    def end_at(self, table: Vector) -> None:
        """Store the values at the mean at the end of the search."""
        _, g = self._split(table)
        self.settled = self.lagrangian is not None and bool(self._feasible(g).all())

    def averaged(self, tables: Vector) -> tuple[float, float, float]:
        """Return the violation of the averages of a point, what of it is significant, their error.

        Two standard errors are granted, besides the tolerance; more for one of many constraints,
        and for few values.
        """
        _, g = self._split(tables)
        g = g[np.isfinite(g).all(axis=1)]
        if self.lagrangian is None or not len(g):
            return math.inf, math.inf, 0.0
        mean = np.add.reduce(g, axis=0) / len(g)
        error = np.std(g, axis=0, ddof=1) / math.sqrt(len(g)) if len(g) > 1 else np.zeros(len(mean))
        size = self._sizes(mean)
        z = NormalDist().inv_cdf(1.0 - _SURE / size.size)
        granted = student(z, len(g) - 1)
        excess = size - self._tolerances - granted * error
        return max(float(size.max()), 0.0), max(float(excess.max()), 0.0), float(error.max())

    @property
    def has_linear(self) -> bool:
        """Whether some of the constraints are linear, with a matrix."""
        return any(part.matrix is not None for part in self.given.parts)

    def exact(self, space: Any) -> Vector | None:
        """Return a point near the best one that satisfies the linear constraints to rounding.

        None if the best point does, is not feasible, or there is no such point; `space` is where
        the search takes place.
        """
        if self.best is None or not self.best.feasible or not self.has_linear:
            return None
        return exact_point(to_numpy(self.best.x), self.given.parts, space.box, space.integers)

    def exact_mean(self, mean: Any, space: Any) -> Vector | None:
        """Return a point near the mean that satisfies the linear constraints to rounding.

        None as in `exact`, and if the mean violates constraints by much: the search is not there.
        """
        if self.lagrangian is None or not self.has_linear:
            return None
        if (self._sizes(self.lagrangian.mean) > _NEAR * self._tolerances).any():
            return None
        return exact_point(to_numpy(mean).reshape(-1), self.given.parts, space.box, space.integers)

    def take_exact(
        self, point: Any, table: Vector, kernel: Any, target: float | None = None
    ) -> None:
        """Keep an exact point instead of the best one, unless it costs more than it should.

        By the multipliers it costs as much as the violations of the best point have gained; twice
        that is granted, and rounding. A target that was reached stays so.
        """
        f, g = self._split(table)
        best = self.best
        if best is None or self.lagrangian is None or np.isnan(f[0]) or np.isnan(g[0]).any():
            return
        gained = float(np.add.reduce(best.prices * np.maximum(self._sizes(best.constraints), 0.0)))
        granted = 2.0 * gained + _GRANTED * max(abs(best.value), 1.0)
        missed = target is not None and best.value <= target < f[0]
        if self._feasible(g[0]) and f[0] <= best.value + granted and not missed:
            violation = float(np.maximum(self._sizes(g[0]), 0.0).max())
            x = kernel.copy(point.reshape(-1))
            self.best = Measurement(x, float(f[0]), g[0].copy(), best.prices, violation, True)

    def begin_again(self) -> None:
        """Begin another start, with new multipliers."""
        if self.lagrangian is not None:
            negligible = self.lagrangian.negligible
            self.lagrangian = Lagrangian(self.n, self.lagrangian.equality, negligible=negligible)
        self.settled, self._newest = None, None
        self.ends.anew()

    # What is known at the end

    @property
    def feasible(self) -> bool:
        """Whether a feasible point was found."""
        return self.best is not None and self.best.feasible

    @property
    def best_value(self) -> float:
        """The best value of a feasible point; inf if there is none."""
        return self.best.value if self.best is not None and self.best.feasible else math.inf

    @property
    def multipliers(self) -> Vector:
        """The multipliers, one per constraint."""
        return np.empty(0) if self.lagrangian is None else self.lagrangian.multipliers.copy()

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which constraints are active: equalities, and those with a multiplier > 0."""
        if self.lagrangian is None:
            return np.empty(0, dtype=bool)
        return self.lagrangian.equality | (self.lagrangian.multipliers > 0)

    # Inner works

    def _split(self, table: Vector) -> tuple[Vector, Vector]:
        if np.isnan(table[:, 0]).all() and table.shape[1] == 1:
            width = 0 if self.lagrangian is None else self.lagrangian.equality.size
            return table[:, 0], np.full((len(table), width), np.nan)
        f, g, counts = self.given.split(table)
        if self.lagrangian is None:
            if not g.shape[1]:
                raise ValueError("the constraints must return at least one value")
            if len(self.given.parts) > 1 and not counts:  # all failed
                return np.full(len(f), np.nan), g
            equality, tolerances = self.given.equalities(g.shape[1], counts)
            self._own_tolerances = tolerances
            self._tolerances = np.where(np.isnan(tolerances), self.tolerance, tolerances)
            negligible = _NEGLIGIBLE * self._tolerances
            self.lagrangian = Lagrangian(self.n, equality, negligible=negligible)
        if g.shape[1] != self.lagrangian.equality.size:
            raise ValueError(
                "the constraints must return the same number of values at every point: "
                f"{self.lagrangian.equality.size} before, {g.shape[1]} now"
            )
        # An inequality that holds by any margin is a number like others.
        return f, np.where(self.lagrangian.equality, g, np.maximum(g, _DEEPEST))

    def _sizes(self, g: Vector) -> Vector:
        assert self.lagrangian is not None
        return np.where(self.lagrangian.equality, np.abs(g), g)

    def _feasible(self, g: Vector) -> NDArray[np.bool_]:
        return np.asarray((self._sizes(g) <= self._tolerances).all(axis=-1))

    def _remember(self, points: Any, f: Vector, g: Vector, kernel: Any) -> None:
        """Keep the best of these points if it is better than the stored one.

        Feasible points come first, then smaller violations. Feasible points are compared by f,
        corrected by what a violation within the tolerance gains according to the multipliers.
        """
        assert self.lagrangian is not None
        good = np.flatnonzero(~np.isnan(f) & ~np.isnan(g).any(axis=1))
        if not good.size:
            return
        kept = self.best
        if kept is not None:
            f, g = np.append(f[good], kept.value), np.vstack((g[good], kept.constraints))
        else:
            f, g = f[good], g[good]
        size, feasible = np.maximum(self._sizes(g), 0.0), self._feasible(g)
        violation = size.max(axis=1)
        # Multipliers that run away later devalue nothing.
        prices = np.abs(self.lagrangian.multipliers)
        if kept is not None:
            prices = np.minimum(prices, kept.prices)
        with np.errstate(over="ignore"):
            paid = np.multiply(prices, size, out=np.zeros_like(size), where=prices > 0)
            honest = f + np.add.reduce(paid, axis=1)
        best = int(np.lexsort((honest, np.where(feasible, -1.0, violation)))[0])
        if best < good.size:
            x = kernel.copy(points[int(good[best])].reshape(-1))
            value, found = float(f[best]), bool(feasible[best])
            prices = np.abs(self.lagrangian.multipliers)
            worst = float(violation[best])
            self.best = Measurement(x, value, g[best].copy(), prices, worst, found)

    # State

    def entries(self) -> dict[str, Any]:
        """Return the numbers of the state."""
        best = self.best
        return {
            "lagrangian": None if self.lagrangian is None else self.lagrangian.entries(),
            "settled": self.settled,
            "tolerance": self.tolerance,
            **self.ends.entries(),
            "best": None if best is None else {"value": best.value, "violation": best.violation},
        }

    def arrays(self) -> Arrays:
        """Return its arrays."""
        found = {} if self.lagrangian is None else self.lagrangian.arrays()
        if self.lagrangian is not None:
            found["tolerances"] = self._tolerances
            found["own_tolerances"] = self._own_tolerances
        if self.best is not None:
            found |= {"best_x": to_numpy(self.best.x), "best_constraints": self.best.constraints}
            found["best_prices"] = self.best.prices
        return found

    def restore(self, entries: dict[str, Any], arrays: dict[str, Any], kernel: Any) -> None:
        """Take over what `entries` and `arrays` returned; ValueError if they are no such state."""
        if entries["settled"] not in (None, False, True):
            raise ValueError(f"settled must be true, false or null, not {entries['settled']!r}")
        self.settled = entries["settled"]
        self.ends.restore(entries)
        if entries["lagrangian"] is None:
            return
        self.lagrangian = Lagrangian.restored(self.n, entries["lagrangian"], arrays)
        self._tolerances = np.array(arrays["tolerances"], np.float64)
        # Who resumes may judge by another tolerance; older files do not say by which they did.
        before = checked_value("tolerance", entries.get("tolerance", self.tolerance))
        # Nor which were given to single constraints: all that differ from the one of all.
        guess = np.where(self._tolerances == before, np.nan, self._tolerances)
        self._own_tolerances = own = np.array(arrays.get("own_tolerances", guess), np.float64)
        if before != self.tolerance:
            self._tolerances = np.where(np.isnan(own), self.tolerance, own)
            self.settled = None
            self.ends.anew()
        if self._tolerances.shape != self.lagrangian.equality.shape:
            raise ValueError("there must be one tolerance per constraint")
        self.lagrangian.negligible = _NEGLIGIBLE * self._tolerances
        if entries["best"] is not None:
            x = np.array(arrays["best_x"], np.float64)
            if x.size != self.n or not np.isfinite(x).all():
                raise ValueError("best_x must be a point: finite, with one entry per variable")
            g = np.array(arrays["best_constraints"], np.float64)
            prices = np.array(arrays["best_prices"], np.float64)
            if g.shape != self._tolerances.shape or prices.shape != g.shape:
                raise ValueError(
                    "best_constraints and best_prices must have one entry per constraint"
                )
            value = checked_value("value", entries["best"]["value"])
            violation = checked_value("violation", entries["best"]["violation"])
            if violation < 0:
                raise ValueError(f"violation must not be negative, but is {violation}")
            feasible = bool(self._feasible(g))
            self.best = Measurement(kernel.from_host(x), value, g, prices, violation, feasible)
