"""The augmented Lagrangian: what the search sees instead of f, and how its coefficients adapt.

With one multiplier l_i and one penalty factor w_i per constraint, candidates are ranked by

    L(x) = f(x) + sum_i l_i g_i + w_i g_i^2 / 2,   g_i not below -l_i / w_i for an inequality,

after Atamna, Auger and Hansen 2017 (FOGA; several constraints: Dufosse and Hansen 2020). After each
generation, with g and h = L at its weighted mean (the mean of the parents by their weights), g' and
h' of the generation before:

    l_i <- l_i + w_i g_i / d,              not below 0 for an inequality
    w_i <- w_i chi^(1/4)  where  w_i g_i^2 < k_1 |h - h'|  or  k_2 |g_i - g_i'| < |g_i'|
                          or g_i moves away from 0
           w_i / chi      otherwise

N.B. where this differs from the papers, whose constants were found for few variables (k_1 = 3 / n,
k_2 = 5, d = 5, chi = 2^(1/(5 n)); the mean is evaluated):

- g and h are averages of evaluated candidates, so that no further evaluations are needed;
- a strategy moves by about 1/T per generation, T = n / mu_eff, and the constants depend on T:
  k_1 = 1 / mu_eff, k_2 = 2.8 sqrt(T), chi = 2^(1/max(5, T)). For n = 10 they are about the same;
- a factor also grows while g_i moves away from 0 on the same side: else it
  falls where the curvature of g needs it (x^2 under x^3 >= 1), or nothing damps the multipliers (a
  linear f, the cube of Klee and Minty). Where all candidates violate an inequality, it grows by
  chi^2: else the search may converge where the gradient of g vanishes, before the factor has grown
  (the same example, from x = 3);
- below -l_i / w_i, g_i counts as -l_i / w_i in the first rule, so that the multiplier of an
  inequality that holds falls. The papers keep it, and a multiplier that became too large then falls
  only while the mean lies on the border of the two regions;
- d = 5 + a / mu_eff, with a constraints active: the multipliers of many constraints swing with the
  search, and with d = 5 a sphere under 100 of them never settles (n = 200);
- w_i begins at iqr(f) / (n iqr(g_i)^2) in the first generation that violates the constraint, and
  is 0 before; l_i begins at 0. So everything is invariant under f -> a f + b and g -> a g;
- an inequality is asked to hold by a margin, g_i + c s_i <= 0, where s_i is the standard deviation
  of g_i within a generation and shrinks with the steps. c grows while fewer than a tenth of the
  candidates satisfy all inequalities, and falls otherwise, between 0 and 2. Without it, of many
  active constraints a candidate always violates some, and a run that converges to the optimum has
  no feasible point (bbob-constrained with 36 active constraints, n = 10). Where the mean is
  measured under noise, the margin is at least 0.3 standard deviations of that: about the error of
  the average of ten values, by which the mean is judged at the end;
- a constant is subtracted from L so that a change of the coefficients leaves the mean value of the
  parents as it is: rules that compare values then see the progress of the search and not the
  multipliers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmes.base.arrays import Arrays, Vector
from mmes.base.saved_numbers import checked_scalar
from mmes.strategies.parts.recombination import effective_size, log_weights

_K2 = 2.8
_DAMPING = 5.0
# The share of candidates that should satisfy all inequalities, how fast the margins follow, and
# their largest size in standard deviations.
_WANTED, _RATE, _MOST = 0.1, 0.1, 2.0
# Standard deviations are smoothed over about ten generations; quartiles of a normal distribution
# are 1.349 of them apart.
_SMOOTHING, _APART = 0.1, 1.349
# The smallest margin under noise, in standard deviations.
_ERROR = 0.3
# The odds of growing to shrinking at which a penalty factor stays.
_ODDS = 0.25
# A factor grows by this power of chi where all candidates violate the constraint.
_STUCK = 2.0
# Of huge values a square may be no number; then nothing adapts.
_EXTREME = np.errstate(over="ignore", invalid="ignore")
# A margin is a number below this.
_ENDLESS = 1e90
# A constraint that is still violated when its factor has grown by this is never fulfilled.
_HOPELESS = 1e12


@dataclass
class Lagrangian:
    """The augmented Lagrangian of a start.

    Attributes
    ----------
    n : int
        The number of variables.
    equality : ndarray of bool
        Which of the constraints are equalities.
    multipliers, factors : ndarray
        l and w, one entry per constraint.
    offset : float
        What is subtracted.
    value : float
        f at the mean of the newest generation; NaN before the first generation.
    mean : ndarray
        g there.
    first : ndarray
        The factors with which the constraints began.
    negligible : ndarray or float
        A factor does not grow if g is no larger: it would grow forever once the search has stopped.
    caution : float
        c, the size of the margins in standard deviations.
    margins : ndarray
        The margins by which inequalities should hold; 0 for equalities.
    noise : ndarray
        The variance of g at a mean that was measured, from changes between generations.
    """

    n: int
    equality: NDArray[np.bool_]
    multipliers: Vector = field(default_factory=lambda: np.empty(0))
    factors: Vector = field(default_factory=lambda: np.empty(0))
    offset: float = 0.0
    value: float = math.nan
    mean: Vector = field(default_factory=lambda: np.empty(0))
    first: Vector = field(default_factory=lambda: np.empty(0))
    negligible: Vector | float = 0.0
    caution: float = 0.0
    margins: Vector = field(default_factory=lambda: np.empty(0))
    noise: Vector = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        count = self.equality.size
        if not self.multipliers.size:
            self.multipliers, self.factors = np.zeros(count), np.zeros(count)
            self.mean, self.first = np.zeros(count), np.zeros(count)
        if not self.margins.size:
            self.margins, self.noise = np.zeros(count), np.zeros(count)

    @_EXTREME
    def values(self, f: Vector, g: Vector) -> Vector:
        """Return L of points, one per row; NaN for one whose value or constraint is NaN.

        It is inf where a constraint is violated infinitely, also before that has any weight.
        """
        endless = np.isposinf(np.where(self.equality, np.abs(g), g)).any(axis=-1)
        return np.where(endless & ~np.isnan(f), np.inf, f + self._penalties(g) - self.offset)

    def _penalties(self, g: Vector) -> Vector:
        on, g = self.factors > 0, g + self.margins
        # Below this an inequality costs and gains nothing more.
        floor = np.zeros(on.size)
        np.divide(-self.multipliers, self.factors, out=floor, where=on)
        floor[self.equality] = -np.inf
        # NaN stays NaN, also where the constraint has no weight yet.
        held = np.where(on | np.isnan(g), np.maximum(g, floor), 0.0)
        # Not as matrix products, whose sums depend on the processor.
        terms = held * (self.multipliers + 0.5 * self.factors * held)
        return np.add.reduce(terms, axis=-1)

    @_EXTREME
    def update(
        self, f: Vector, g: Vector, centre: tuple[float, Vector] | None = None
    ) -> Vector | None:
        """Adapt the coefficients to a generation that was ranked by `values`.

        Parameters
        ----------
        f, g : ndarray
            What was measured.
        centre : tuple of float and ndarray, optional
            f and g at the mean that it was drawn from, to be taken instead of those of the parents:
            under noise, parents are those whose constraints were measured too small.

        Returns
        -------
        ndarray or None
            Its values with the new coefficients; None if too few are finite and nothing changed.
        """
        before = self.values(f, g)
        weights = log_weights(max(f.size // 2, 1))
        best = np.argsort(before, kind="stable")[: weights.size]
        if not (np.isfinite(before[best]).all() and np.isfinite(g[best]).all()):
            return None
        typical = _sum(weights, before[best])
        value, mean = _sum(weights, f[best]), _sum(weights, g[best])
        if centre is not None and math.isfinite(centre[0]) and np.isfinite(centre[1]).all():
            value, mean = centre
            apart = 0.0 if math.isnan(self.value) else mean - self.mean
            self.noise = self.noise + _SMOOTHING * (0.5 * apart * apart - self.noise)
        self._begin(f, g)
        if not math.isnan(self.value):
            # Those that every candidate violates.
            stuck = ~self.equality & (np.nanmin(g, axis=0) > self.negligible)
            self._adapt(value, mean, stuck, effective_size(weights))
        self.value, self.mean = value, mean
        self._keep_away(g)
        self.offset += _sum(weights, self.values(f[best], g[best])) - typical
        return self.values(f, g)

    def _begin(self, f: Vector, g: Vector) -> None:
        """Set the factors of constraints that are violated for the first time."""
        finite = np.isfinite(f) & np.isfinite(g).all(axis=1)
        f, g = f[finite], g[finite]
        new = (self.factors == 0) & ((g > 0).any(axis=0) | self.equality)
        if not new.any():
            return
        # A flat objective weighs nothing, and a constraint in steps has its size.
        spread, spreads = _quartiles_apart(f) or 1.0, _quartiles_apart(g[:, new])
        spreads = np.where(spreads > 0, spreads, np.abs(g[:, new]).max(axis=0))
        with np.errstate(divide="ignore"):
            factors = spread / (self.n * spreads**2)
        self.factors[new] = np.where(np.isfinite(factors), factors, 0.0)
        self.first[new] = self.factors[new]

    def _keep_away(self, g: Vector) -> None:
        """Adapt the margins to the share of candidates that satisfy all inequalities."""
        g, weighed = g[np.isfinite(g).all(axis=1)], ~self.equality & (self.factors > 0)
        if not weighed.any():
            return
        share = np.count_nonzero((g[:, weighed] <= 0).all(axis=1)) / len(g)
        self.caution = min(max(self.caution + _RATE * (_WANTED - share), 0.0), _MOST)
        wanted = np.maximum(
            self.caution * _quartiles_apart(g) / _APART, _ERROR * np.sqrt(self.noise)
        )
        wanted[~weighed] = 0.0
        margins = self.margins + _SMOOTHING * (wanted - self.margins)
        # No margin where a constraint has no scale.
        self.margins = np.where(margins < _ENDLESS, margins, 0.0)

    def _adapt(self, value: float, mean: Vector, stuck: NDArray[np.bool_], mu_eff: float) -> None:
        lam, w, slow = self.multipliers, self.factors, max(self.n / mu_eff, 1.0)
        change = abs(
            value + float(self._penalties(mean)) - (self.value + float(self._penalties(self.mean)))
        )
        mean, old = mean + self.margins, self.mean + self.margins
        active = (w > 0) & (self.equality | (w * mean >= -lam))
        damping = _DAMPING + int(active.sum()) / mu_eff
        moved = lam + np.where(self.equality, w * mean, np.maximum(w * mean, -lam)) / damping
        clamped = ~self.equality & (moved < 0)
        small = w * mean * mean * mu_eff < change
        still = _K2 * math.sqrt(slow) * np.abs(mean - old) < np.abs(old)
        leaving = (mean * old > 0) & (np.abs(mean) > np.abs(old))
        chi = 2.0 ** (1.0 / max(_DAMPING, slow))
        growth = np.where(stuck, chi**_STUCK, chi**_ODDS)
        factors = w * np.where(small | still | leaving, growth, 1.0 / chi)
        self.multipliers = np.where(clamped, 0.0, moved)
        self.factors = np.where(active & ~clamped & (np.abs(mean) > self.negligible), factors, w)

    @_EXTREME
    def hopeless(self, tolerances: Vector) -> bool:
        """Return whether a constraint stays violated although its factor became huge."""
        size = np.where(self.equality, np.abs(self.mean), self.mean)
        return bool(((self.factors > _HOPELESS * self.first) & (size > tolerances)).any())

    # State

    def entries(self) -> dict[str, Any]:
        """Return the numbers of the state."""
        value = None if math.isnan(self.value) else self.value
        return {"offset": self.offset, "value": value, "caution": self.caution}

    def arrays(self) -> Arrays:
        """Return its arrays."""
        return {
            "equality": self.equality.astype(np.float64),
            "multipliers": self.multipliers,
            "factors": self.factors,
            "mean": self.mean,
            "first": self.first,
            "margins": self.margins,
            "noise": self.noise,
        }

    @classmethod
    def restored(cls, n: int, entries: dict[str, Any], arrays: dict[str, Any]) -> Lagrangian:
        """Return the Lagrangian with this state; ValueError if it is not a valid state.

        `n` is the number of variables.
        """
        names = cls(n, np.empty(0, dtype=bool)).arrays()
        found = {name: np.array(arrays[name], np.float64) for name in names}
        shape = found["equality"].shape
        for name, array in found.items():
            if array.shape != shape or array.ndim != 1 or not np.isfinite(array).all():
                raise ValueError(f"{name} must be finite, with one entry per constraint")
        value = entries["value"]
        return cls(
            n,
            found.pop("equality") != 0,
            offset=checked_scalar("offset", entries["offset"], 0.0),
            value=math.nan if value is None else checked_scalar("value", value, 0.0),
            caution=checked_scalar("caution", entries["caution"], 0.0, 0.0, _MOST),
            **found,
        )


def _sum(weights: Vector, rows: Vector) -> Any:
    """Return the weighted sum of rows, in the same order on every processor."""
    return np.add.reduce((weights if rows.ndim == 1 else weights[:, None]) * rows, axis=0)


def _quartiles_apart(values: Vector) -> Any:
    ordered = np.sort(values, axis=0)
    size = len(ordered)
    return ordered[3 * size // 4] - ordered[size // 4]
