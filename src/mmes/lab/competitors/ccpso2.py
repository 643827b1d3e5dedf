"""CCPSO2: cooperatively coevolving particle swarms.

X. Li, X. Yao, IEEE Transactions on Evolutionary Computation 16 (2012). Sources, choices and
deviations: docs/competitors.md.
"""

from __future__ import annotations

from itertools import count

import numpy as np

from mmes.base.options import Option
from mmes.base.randomness import Stream
from mmes.lab.competitors.parts.draws import Indices, Vector
from mmes.lab.competitors.parts.grouping import random_groups
from mmes.lab.competitors.parts.sansde import in_context
from mmes.lab.competitors.parts.setting import Asking, Incumbent, Setting
from mmes.lab.competitors.shell import Competitor, population_option

GROUP_SIZES = (2, 5, 10, 50, 100, 250)


class CCPSO2(Competitor):
    """CCPSO2: particle swarms over random groups (Li, Yao 2012).

    See `Competitor` for the parameters.
    """

    name = "ccpso2"
    evaluates_start = True
    own_options = (
        population_option(30, low=2),
        Option(
            "cauchy_share",
            float,
            "Probability that a coordinate is sampled from a Cauchy distribution instead of a "
            "normal one.",
            default=0.5,
            symbol="p",
            low=0,
            high=1,
        ),
    )

    def algorithm(self, setting: Setting) -> Asking[None]:
        """See `Competitor.algorithm`."""
        n, steps = setting.n, count()
        positions = setting.first_population(self.options["population_size"])
        personal = positions
        values = yield positions
        best = Incumbent.of(positions, values)
        sizes = [size for size in GROUP_SIZES if size <= n] or [n]
        size, improved = 0, False
        for sweep in steps:
            if not improved:
                pick = setting.draws.integers(len(sizes), 1, Stream.CHOICE, sweep)
                size = sizes[int(pick[0])]
            before = best.value
            groups = random_groups(setting.draws, n, size, sweep)
            personal, neighbours = yield from self._sweep(
                setting, best, groups, positions, personal
            )
            improved = best.value < before
            positions = self._moved(setting, personal, neighbours, sweep)

    def _sweep(
        self,
        setting: Setting,
        best: Incumbent,
        groups: list[Indices],
        positions: Vector,
        personal: Vector,
    ) -> Asking[tuple[Vector, Vector]]:
        """Evaluate every swarm; return the personal bests, and those of the neighbourhoods."""
        personal = personal.copy()
        neighbours = np.empty_like(personal)
        for group in groups:
            here, own = positions[:, group], personal[:, group]
            if np.array_equal(here, own):  # as in the first sweep
                points = in_context(best.x, group, own)
                own_values = yield points
                best.offer(points, own_values)
            else:
                points = in_context(best.x, group, np.concatenate([here, own]))
                values, own_values = (yield points).reshape(2, -1)
                better = values < own_values
                own = np.where(better[:, None], here, own)
                own_values = np.where(better, values, own_values)
                best.offer(in_context(best.x, group, own), own_values)
            personal[:, group] = own
            neighbours[:, group] = own[best_neighbours(own_values)]
        return personal, neighbours

    def _moved(self, setting: Setting, personal: Vector, neighbours: Vector, sweep: int) -> Vector:
        """Return the new positions."""
        draws, count_ = setting.draws, personal.size
        apart = np.abs(personal - neighbours)
        wide = draws.uniforms(count_, Stream.CROSSOVER, sweep) < self.options["cauchy_share"]
        cauchy = draws.cauchys(count_, Stream.LOCAL_STEP, sweep)
        normal = draws.normals(count_, Stream.LOCAL_STEP, sweep, 1)
        wide, cauchy, normal = (each.reshape(personal.shape) for each in (wide, cauchy, normal))
        moved = np.where(wide, personal + cauchy * apart, neighbours + normal * apart)
        return setting.clip(moved)


def best_neighbours(values: Vector) -> Indices:
    """Return for each position on a ring which of it and its neighbours has the best value."""
    places = np.arange(values.size)
    around = np.stack([np.roll(places, 1), places, np.roll(places, -1)])
    return around[values[around].argmin(axis=0), places]
