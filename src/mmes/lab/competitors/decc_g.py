"""DECC-G: cooperative coevolution with random grouping and adaptive weighting.

Z. Yang, K. Tang, X. Yao, Information Sciences 178 (2008). Sources, choices and deviations:
docs/competitors.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np

from mmes.base.options import Option
from mmes.base.randomness import Stream
from mmes.lab.competitors.parts.differential_evolution import rand_1_bin
from mmes.lab.competitors.parts.draws import Indices, Vector
from mmes.lab.competitors.parts.grouping import random_groups
from mmes.lab.competitors.parts.sansde import Part, sansde
from mmes.lab.competitors.parts.setting import Asking, Incumbent, Setting
from mmes.lab.competitors.shell import Competitor, population_option


class DECCG(Competitor):
    """DECC-G: random groups, searched in turn (Yang, Tang, Yao 2008).

    See `Competitor` for the parameters.
    """

    name = "decc-g"
    evaluates_start = True
    own_options = (
        population_option(100, low=4),
        Option("group_size", int, "Variables per group.", default=100, low=1),
        Option("group_generations", int, "Generations of SaNSDE per group.", default=100, low=1),
        Option(
            "weighting_generations",
            int,
            "Generations of differential evolution per adaptive weighting.",
            default=100,
            low=1,
        ),
    )

    def algorithm(self, setting: Setting) -> Asking[None]:
        """See `Competitor.algorithm`."""
        options, steps = self.options, count()
        population = setting.first_population(options["population_size"])
        values = yield population
        best = Incumbent.of(population, values)
        rate = 0.5
        while True:
            groups = random_groups(setting.draws, setting.n, options["group_size"], next(steps))
            population = population.copy()
            for group in groups:
                members = Part(group, population[:, group])
                generations = options["group_generations"]
                part, _, rate = yield from sansde(setting, best, members, generations, rate, steps)
                population[:, group] = part
            values = yield population
            best.offer(population, values)
            population, values = population.copy(), values.copy()
            yield from self._weight(setting, groups, best, population, values, steps)

    def _weight(
        self,
        setting: Setting,
        groups: list[Indices],
        best: Incumbent,
        population: Vector,
        values: Vector,
        steps: Iterator[int],
    ) -> Asking[None]:
        """Weight the best point, the worst member and a random member, each in turn."""
        members, generations = len(values), self.options["weighting_generations"]
        yield from weighted(setting, groups, best, members, generations, steps)
        for choose_worst in (True, False):
            step = next(steps)
            member = (
                int(values.argmax())
                if choose_worst
                else int(setting.draws.integers(members, 1, Stream.CHOICE, step)[0])
            )
            point = Incumbent(population[member].copy(), float(values[member]))
            yield from weighted(setting, groups, point, members, generations, steps)
            population[member], values[member] = point.x, point.value
            best.offer(population[member : member + 1], values[member : member + 1])


def weighted(
    setting: Setting,
    groups: list[Indices],
    point: Incumbent,
    members: int,
    generations: int,
    steps: Iterator[int],
) -> Asking[None]:
    """Improve a point by one factor per group; groups that allow no factor are skipped."""
    low, high = weight_bounds(setting, groups, point.x)
    if (low > high).any():
        return
    of_variable = np.empty(setting.n, dtype=np.int64)
    for number, group in enumerate(groups):
        of_variable[group] = number
    centre = point.x.copy()
    asking = rand_1_bin(setting.draws, low, high, members, generations, steps)
    weights = next(asking)
    while True:
        points = setting.clip(centre * weights[:, of_variable])
        values = yield points
        point.offer(points, values)
        try:
            weights = asking.send(values)
        except StopIteration:
            return


def weight_bounds(setting: Setting, groups: list[Indices], x: Vector) -> tuple[Vector, Vector]:
    """Return the smallest and the largest factor of each group that keep it in the box.

    Coordinates that are zero, or so small that a quotient might overflow, count as 1.
    """
    divisor = np.where(np.abs(x) < 1e-150, 1.0, x)
    ends = np.clip([setting.lower / divisor, setting.upper / divisor], -1e150, 1e150)
    low, high = ends.min(axis=0), ends.max(axis=0)
    return (
        np.array([low[group].max() for group in groups]),
        np.array([high[group].min() for group in groups]),
    )
