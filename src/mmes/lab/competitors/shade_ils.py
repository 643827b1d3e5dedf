"""SHADE-ILS: SHADE with iterated local search.

D. Molina, A. LaTorre, F. Herrera, IEEE Congress on Evolutionary Computation 2018. Written from the
article's description. Sources, choices and deviations: docs/competitors.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count

from mmes.base.options import Option
from mmes.base.randomness import Stream
from mmes.lab.competitors.parts.draws import Vector
from mmes.lab.competitors.parts.lbfgs import lbfgs
from mmes.lab.competitors.parts.mts import MtsRules, SearchRange, mts_ls1
from mmes.lab.competitors.parts.setting import Asking, Incumbent, Setting
from mmes.lab.competitors.parts.shade import Shade
from mmes.lab.competitors.parts.solis_wets import relative_gain
from mmes.lab.competitors.shell import Competitor, population_option

FIRST_RANGE = 0.1
"""The first search range of MTS-LS1, as a share of the box."""
PERTURBATION = 0.1
"""How far a restart may move the member it begins from, as a share of the box."""


class SHADEILS(Competitor):
    """SHADE-ILS: SHADE and two local searches in turn (Molina, LaTorre, Herrera 2018).

    See `Competitor` for the parameters.
    """

    name = "shade-ils"
    evaluates_start = True
    own_options = (
        population_option(100, low=4),
        Option("shade_evaluations", int, "Evaluations of SHADE per round.", default=25000, low=1),
        Option(
            "local_evaluations", int, "Evaluations of local search per round.", default=25000, low=1
        ),
        Option(
            "restart_threshold",
            float,
            "A round whose relative improvement is smaller than this is stagnant.",
            default=0.01,
            low=0,
        ),
        Option(
            "restart_rounds",
            int,
            "Number of consecutive stagnant rounds before a restart.",
            default=3,
            low=1,
        ),
    )

    def algorithm(self, setting: Setting) -> Asking[None]:
        """See `Competitor.algorithm`."""
        options, steps = self.options, count(1)
        centre = setting.clip(0.5 * setting.lower + 0.5 * setting.upper)
        first = setting.first_population(options["population_size"])
        first[-1] = centre
        values = yield first
        shade = Shade(setting, first.copy(), values.copy(), steps)
        current = Incumbent(centre, float(values[-1]))
        local = LocalSearches(setting, options["local_evaluations"])
        yield from local.improve(current)
        shade.points[-1], shade.values[-1] = current.x, current.value
        stagnant = 0
        while True:
            before = current.value
            yield from shade.run(options["shade_evaluations"])
            best = int(shade.values.argmin())
            current = Incumbent(shade.points[best].copy(), float(shade.values[best]))
            yield from local.improve(current)
            shade.points[best], shade.values[best] = current.x, current.value
            gained = relative_gain(before, current.value)
            stagnant = 0 if gained >= options["restart_threshold"] else stagnant + 1
            if stagnant == options["restart_rounds"]:
                shade, current = yield from restarted(setting, shade, steps)
                local = LocalSearches(setting, options["local_evaluations"])
                stagnant = 0


class LocalSearches:
    """MTS-LS1 and L-BFGS: the one with the larger last improvement is applied.

    One that was not applied yet comes first.
    """

    def __init__(self, setting: Setting, evaluations: int):
        self.last_gains = {"mts-ls1": math.inf, "l-bfgs": math.inf}
        self._setting = setting
        self._evaluations = evaluations
        self._reach = SearchRange(FIRST_RANGE)

    def improve(self, point: Incumbent) -> Asking[None]:
        """Improve a point in place."""
        chosen = max(self.last_gains, key=lambda name: self.last_gains[name])
        before = point.value
        if chosen == "mts-ls1":
            yield from mts_ls1(self._setting, point, MtsRules(), self._reach, self._evaluations)
        else:
            yield from lbfgs(self._setting, point, self._evaluations)
        self.last_gains[chosen] = relative_gain(before, point.value)


def restarted(
    setting: Setting, shade: Shade, steps: Iterator[int]
) -> Asking[tuple[Shade, Incumbent]]:
    """Return a new population, and a random member of the old one, moved a little, within it."""
    step = next(steps)
    members = shade.values.size
    chosen = int(setting.draws.integers(members, 1, Stream.CHOICE, step)[0])
    points: Vector = setting.uniform_points(members, step)
    push = setting.draws.uniforms(setting.n, Stream.MUTATION, step)
    points[0] = setting.clip(shade.points[chosen] + PERTURBATION * push * setting.width)
    values = yield points
    made = Shade(setting, points.copy(), values.copy(), steps)
    return made, Incumbent(points[0].copy(), float(values[0]))
