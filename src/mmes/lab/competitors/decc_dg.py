"""DECC-DG: cooperative coevolution with differential grouping.

M. N. Omidvar, X. Li, Y. Mei, X. Yao, IEEE Transactions on Evolutionary Computation 18 (2014).
Sources, choices and deviations: docs/competitors.md.
"""

from __future__ import annotations

from itertools import count, cycle

from mmes.base.options import Option
from mmes.lab.competitors.parts.grouping import group_by_differences
from mmes.lab.competitors.parts.sansde import Part, sansde
from mmes.lab.competitors.parts.setting import Asking, Incumbent, Setting
from mmes.lab.competitors.shell import Competitor, population_option


class DECCDG(Competitor):
    """DECC-DG: groups found by differential grouping, searched in turn (Omidvar et al. 2014).

    See `Competitor` for the parameters.
    """

    name = "decc-dg"
    own_options = (
        population_option(50, low=4),
        Option(
            "epsilon",
            float,
            "Threshold of differential grouping, an absolute difference of values.",
            default=1e-3,
            low=0,
        ),
        Option(
            "rounding",
            float,
            "Fraction of the largest value that a difference must also exceed; 0 as published.",
            default=0.0,
            low=0,
        ),
        Option(
            "group_generations",
            int,
            "Generations of SaNSDE per group and visit.",
            default=1,  # N.B. so the published medians come out; with 100 most are far better
            low=1,
        ),
    )

    def algorithm(self, setting: Setting) -> Asking[None]:
        """See `Competitor.algorithm`."""
        options, steps = self.options, count()
        grouping = yield from group_by_differences(
            setting.lower, setting.upper, options["epsilon"], options["rounding"]
        )
        population = setting.first_population(options["population_size"])
        values = yield population
        best = Incumbent.of(population, values)
        population, rate = population.copy(), 0.5
        groups = grouping.parts
        for group in cycle(groups):
            # With all variables in one group the values of the last visit are still valid.
            known = values if len(groups) == 1 else None
            part, values, rate = yield from sansde(
                setting,
                best,
                Part(group, population[:, group], known),
                options["group_generations"],
                rate,
                steps,
            )
            population[:, group] = part
