"""MOS: multiple offspring sampling, in the configuration of the CEC 2013 competition.

A. LaTorre, S. Muelas, J.-M. Pena, IEEE Congress on Evolutionary Computation 2013. A genetic
algorithm, Solis-Wets and MTS-LS1-Reduced take turns on one population; their shares of the
evaluations follow the quality that each achieved. Sources, choices and deviations:
docs/competitors.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from mmes.base.options import Option
from mmes.base.randomness import Stream
from mmes.lab.competitors.parts.draws import Vector
from mmes.lab.competitors.parts.genetic import blend, mutate_gaussian
from mmes.lab.competitors.parts.mts import MtsRules, SearchRange, Usefulness, mts_ls1
from mmes.lab.competitors.parts.setting import Asking, Incumbent, Setting
from mmes.lab.competitors.parts.solis_wets import (
    Gains,
    SolisWetsRules,
    SolisWetsState,
    relative_gain,
    solis_wets,
)
from mmes.lab.competitors.shell import Competitor, population_option

SMALLEST_SHARE = 0.2
ADJUSTMENT = 0.05
STEPS_BEFORE_COUNTING = 10
"""After this many steps the numbers of improvements may overrule the qualities."""
COUNTED_PER_SHARE = 1500


@dataclass(frozen=True)
class Configuration:
    """The parameters of the local searches, on which the sources disagree."""

    solis_wets: SolisWetsRules
    first_step: float
    mts: MtsRules
    share_of_others: float


CONFIGURATIONS = {
    "tuned": Configuration(
        SolisWetsRules(5, 5, 4.0, 0.75), 2.4, MtsRules(0.25, 0.5, 0.5, 1e-14, 0.4), 0.025
    ),
    "code": Configuration(
        SolisWetsRules(5, 3, 2.0, 0.5), 1.2, MtsRules(1.0, 0.5, 0.5, 1e-14, 0.4), 0.05
    ),
}


class MOS(Competitor):
    """MOS: a genetic algorithm and two local searches share a run (LaTorre, Muelas, Pena 2013).

    See `Competitor` for the parameters.
    """

    name = "mos"
    evaluates_start = True
    own_options = (
        population_option(400, low=2),
        Option(
            "step_evaluations",
            int,
            "Evaluations per step, which the three techniques share.",
            default=36000,
            low=3,
        ),
        Option(
            "configuration",
            str,
            "Parameters of the local searches: 'tuned': those recorded as tuned for CEC 2013; "
            "'code': the defaults of the public code.",
            default="code",  # N.B. so the published medians come out
            choices=tuple(CONFIGURATIONS),
        ),
    )

    def algorithm(self, setting: Setting) -> Asking[None]:
        """See `Competitor.algorithm`."""
        points = setting.first_population(self.options["population_size"])
        values = yield points
        crowd = Crowd(points.copy(), values.copy())
        steps = count(1)
        configuration = CONFIGURATIONS[self.options["configuration"]]
        techniques = Techniques(setting, configuration, steps)
        shares = np.full(3, 1.0 / 3.0)
        for number in count(1):
            allotted = allotments(self.options["step_evaluations"], shares)
            gains = [
                (yield from genetic(setting, crowd, allotted[0], steps)),
                (yield from techniques.solis_wets(crowd, allotted[1])),
                (yield from techniques.mts(crowd, allotted[2])),
            ]
            shares = updated_shares(shares, gains, number)


@dataclass
class Crowd:
    """The population, and the search range of its best member."""

    points: Vector
    values: Vector
    reach: SearchRange | None = None
    """None stands for a fresh one: the best member comes from the genetic algorithm."""

    def best(self) -> Incumbent:
        """Return the best member."""
        return Incumbent.of(self.points, self.values)

    def replace_best(self, point: Incumbent) -> None:
        """Replace the best member by a point."""
        best = int(self.values.argmin())
        self.points[best], self.values[best] = point.x, point.value


def allotments(evaluations: int, shares: Vector) -> list[int]:
    """Divide evaluations by the shares, rounding down; the smallest get one of the rest each."""
    allotted = [int(evaluations * share) for share in shares]
    for _ in range(evaluations - sum(allotted)):
        allotted[allotted.index(min(allotted))] += 1
    return allotted


def updated_shares(shares: Vector, gains: list[Gains], steps: int) -> Vector:
    """Return the shares after a step: the best techniques gain a little from the others.

    The quality of a technique is its mean relative gain per evaluation; `steps` is the number of
    steps so far.
    """
    merit = np.array([each.relative / max(each.evaluations, 1) for each in gains])
    best = merit == merit.max()
    if steps > STEPS_BEFORE_COUNTING:
        counted = np.array([each.improvements for each in gains]) / (COUNTED_PER_SHARE * shares)
        if not np.array_equal(counted == counted.max(), best):
            merit, best = counted, counted == counted.max()
    if best.all():
        return shares
    top = merit.max()
    loss = ADJUSTMENT * shares * (top - merit) / top
    loss = np.where(best, 0.0, np.minimum(loss, np.maximum(shares - SMALLEST_SHARE, 0.0)))
    return np.where(best, shares + loss.sum() / best.sum(), shares - loss)


def genetic(
    setting: Setting, crowd: Crowd, evaluations: int, steps: Iterator[int]
) -> Asking[Gains]:
    """Run generations of the genetic algorithm until the evaluations are used up.

    Improvements are not counted: the technique never wins by their number.
    """
    gains = Gains()
    members = crowd.values.size
    before = float(crowd.values.min())
    while gains.evaluations < evaluations:
        wanted = min(members, evaluations - gains.evaluations)
        children, parents = offspring(setting, crowd, wanted, next(steps))
        values = yield children
        gains.evaluations += wanted
        gains.relative += sum(map(relative_gain, parents.tolist(), values.tolist()))
        all_values = np.concatenate([crowd.values, values])
        kept = np.argsort(all_values, kind="stable")[:members]
        old, points = kept < members, np.empty_like(crowd.points)
        points[old] = crowd.points[kept[old]]
        points[~old] = children[kept[~old] - members]
        crowd.points, crowd.values = points, all_values[kept]
    if crowd.values.min() < before:
        crowd.reach = None
    return gains


def offspring(setting: Setting, crowd: Crowd, wanted: int, step: int) -> tuple[Vector, Vector]:
    """Return children, and for each the value of its better parent."""
    draws, members = setting.draws, crowd.values.size
    pairs = -(-wanted // 2)
    drawn = draws.integers(members, 4 * pairs, Stream.PARTNERS, step).reshape(2, 2, pairs)
    # Binary tournaments: rivals along the second axis.
    wins = crowd.values[drawn[:, 0]] <= crowd.values[drawn[:, 1]]
    mothers, fathers = np.where(wins, drawn[:, 0], drawn[:, 1])
    crossed = draws.uniforms(pairs, Stream.CHOICE, step) < 0.9
    shares = draws.uniforms(2 * pairs * setting.n, Stream.CROSSOVER, step)
    both = crowd.points[mothers], crowd.points[fathers]
    children = np.empty((pairs, 2, setting.n))
    for child, parent in enumerate(both):
        children[:, child] = blend(setting, *both, shares.reshape(2, pairs, -1)[child])
        children[~crossed, child] = parent[~crossed]
    children = children.reshape(2 * pairs, setting.n)[:wanted]
    mutate_gaussian(setting, children, int(0.01 * setting.n) or 1, step)
    parents = np.minimum(crowd.values[mothers], crowd.values[fathers])
    return children, np.repeat(parents, 2)[:wanted]


class Techniques:
    """The two local searches, with what they keep for the whole run.

    Each remembers its point and continues from the better of this point and the population's best;
    the result replaces the population's best.
    """

    def __init__(self, setting: Setting, configuration: Configuration, steps: Iterator[int]):
        self._setting = setting
        self._configuration = configuration
        self._steps = steps
        self._state = SolisWetsState(configuration.first_step, np.zeros(setting.n))
        self._usefulness = Usefulness(
            setting.n,
            configuration.share_of_others,
            lambda: setting.draws.uniforms(setting.n, Stream.CHOICE, next(steps)),
        )
        self._own: dict[str, tuple[Incumbent, SearchRange | None]] = {}

    def solis_wets(self, crowd: Crowd, evaluations: int) -> Asking[Gains]:
        """Improve the best point by the method of Solis and Wets."""
        point = self._chosen("solis-wets", crowd)
        rules = self._configuration.solis_wets
        gains = yield from solis_wets(
            self._setting, point, self._state, rules, evaluations, self._steps
        )
        self._keep("solis-wets", crowd, point)
        return gains

    def mts(self, crowd: Crowd, evaluations: int) -> Asking[Gains]:
        """Improve the best point by MTS-LS1-Reduced."""
        point = self._chosen("mts", crowd)
        crowd.reach = crowd.reach or SearchRange(0.5)
        gains = yield from mts_ls1(
            self._setting,
            point,
            self._configuration.mts,
            crowd.reach,
            evaluations,
            self._usefulness,
        )
        self._keep("mts", crowd, point)
        return gains

    def _chosen(self, technique: str, crowd: Crowd) -> Incumbent:
        best = crowd.best()
        own, reach = self._own.get(technique, (None, None))
        if own is None or not own.value < best.value:
            return best
        crowd.reach = reach
        return Incumbent(own.x, own.value)

    def _keep(self, technique: str, crowd: Crowd, point: Incumbent) -> None:
        crowd.replace_best(point)
        self._own[technique] = Incumbent(point.x, point.value), crowd.reach
