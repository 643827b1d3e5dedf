"""MTS-LS1, the first local search of multiple trajectory search (Tseng, Chen 2008).

Each coordinate in turn is first decreased, then increased. The search range shrinks after a sweep
without any improvement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mmes.lab.competitors.parts.draws import Indices, Vector
from mmes.lab.competitors.parts.setting import Asking, Incumbent, Setting
from mmes.lab.competitors.parts.solis_wets import Gains


@dataclass(frozen=True)
class MtsRules:
    """How far a coordinate is moved, in search ranges, and how the range changes."""

    # down, up: the first trial is `down` ranges below, the second `up` ranges above.
    down: float = 1.0
    up: float = 0.5
    shrinkage: float = 0.5  # The range is multiplied by this after a failed sweep.
    smallest: float = 1e-15  # A range below this is reset.
    reset: float = 0.4  # What it is reset to, as a share of the box.


@dataclass
class SearchRange:
    """The search range that belongs to a point, as a share of the box."""

    share: float
    improved: bool = True

    def begin_sweep(self, rules: MtsRules, widest: float) -> None:
        """Shrink the range if the last sweep found nothing, and begin another."""
        if not self.improved:
            self.share *= rules.shrinkage
            if self.share * widest < rules.smallest:
                self.share = rules.reset
        self.improved = False


def mts_ls1(
    setting: Setting,
    point: Incumbent,
    rules: MtsRules,
    reach: SearchRange,
    evaluations: int,
    usefulness: Usefulness | None = None,
) -> Asking[Gains]:
    """Improve a point in place with this many evaluations; its range changes in place too.

    A sweep visits all coordinates in their order, or those that `usefulness` chooses.
    """
    gains = Gains()
    width = setting.width
    widest = float(width.max())
    while gains.evaluations < evaluations:
        reach.begin_sweep(rules, widest)
        for i in range(setting.n) if usefulness is None else usefulness.choose():
            left = evaluations - gains.evaluations
            if left == 0:
                break
            before = point.value
            span = reach.share * float(width[i])
            yield from _try_coordinate(setting, point, int(i), span, rules, min(left, 2), gains)
            reach.improved = reach.improved or point.value < before
            if usefulness is not None:
                usefulness.learn(int(i), before - point.value)
    return gains


def _try_coordinate(
    setting: Setting,
    point: Incumbent,
    i: int,
    span: float,
    rules: MtsRules,
    evaluations: int,
    gains: Gains,
) -> Asking[None]:
    here = float(point.x[i])
    low, high = float(setting.lower[i]), float(setting.upper[i])
    trials = [min(here + rules.up * span, high)]
    if here > low:
        trials.insert(0, max(here - rules.down * span, low))
    for place in trials[:evaluations]:
        trial = point.x.copy()
        trial[i] = place
        value = float((yield trial[None, :])[0])
        gains.note(point.value, value)
        if value < point.value:
            point.x, point.value = trial, value
            return
        if value == point.value:
            return


class Usefulness:
    """MTS-LS1-Reduced: prefers the coordinates that were worth trying (LaTorre, Muelas, Pena 2013).

    `share_of_others` is the share of all coordinates that is sampled from those not preferred;
    `sample` returns n random numbers for each sweep.
    """

    COVERED = 0.9
    """The preferred coordinates make up this share of the usefulness."""
    MEMORY = 0.7

    def __init__(self, n: int, share_of_others: float, sample: Callable[[], Vector]):
        self.worth = np.full(n, np.nan)
        self._others = int(share_of_others * n)
        self._sample = sample

    def choose(self) -> Indices:
        """Return the coordinates of the next sweep in increasing order."""
        untried = np.isnan(self.worth)
        most = 0.0 if untried.all() else float(np.nanmax(self.worth))
        worth = np.where(untried, most + 1.0, self.worth)
        order = np.argsort(-worth, kind="stable")
        covered = np.cumsum(worth[order]) > self.COVERED * float(worth.sum())
        preferred = int(covered.argmax()) + 1 if covered.any() else worth.size
        others = order[preferred:]
        lots = self._sample()[: others.size]
        others = others[np.argsort(lots, kind="stable")[: self._others]]
        return np.sort(np.concatenate([order[:preferred], others]))

    def learn(self, coordinate: int, gain: float) -> None:
        """Record the gain of a coordinate, 0 if there was none."""
        old = self.worth[coordinate]
        self.worth[coordinate] = (
            gain if np.isnan(old) else self.MEMORY * old + (1.0 - self.MEMORY) * gain
        )
