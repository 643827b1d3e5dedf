"""MA-SW-Chains: a memetic algorithm with chains of Solis-Wets searches.

D. Molina, M. Lozano, F. Herrera, IEEE Congress on Evolutionary Computation 2010. Sources, choices
and deviations: docs/competitors.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from mmes.base.options import Option
from mmes.base.randomness import Stream
from mmes.lab.competitors.parts.draws import Draws, Indices, Vector
from mmes.lab.competitors.parts.genetic import blend, mutate_breeder
from mmes.lab.competitors.parts.setting import Asking, Incumbent, Setting
from mmes.lab.competitors.parts.solis_wets import SolisWetsRules, SolisWetsState, solis_wets
from mmes.lab.competitors.shell import Competitor, population_option

FATHERS = 3
"""Members among which the farthest from the mother becomes the father."""
MUTATION_RATE = 0.125


class MASWChains(Competitor):
    """MA-SW-Chains: a genetic algorithm with chains of local search (Molina et al. 2010).

    See `Competitor` for the parameters.
    """

    name = "ma-sw-chains"
    evaluates_start = True
    own_options = (
        population_option(100, low=2),
        Option(
            "local_evaluations",
            int,
            "Evaluations per local search.",
            default=500,
            symbol="I",
            low=1,
        ),
        Option(
            "local_share",
            float,
            "Fraction of the evaluations used by local search.",
            default=0.5,
            low=0,
            high=1,
            low_open=True,
            high_open=True,
        ),
        Option(
            "improvement_threshold",
            float,
            "A local search that improves its member by less than this ends its chain.",
            default=0.0,
            low=0,
        ),
    )

    def algorithm(self, setting: Setting) -> Asking[None]:
        """See `Competitor.algorithm`."""
        options, steps = self.options, count()
        points = setting.first_population(options["population_size"])
        values = yield points
        herd = Herd(points.copy(), values.copy())
        local = options["local_evaluations"]
        spent_locally, spent = 0, len(values)
        while True:
            # The local search that follows brings its share to `local_share`.
            bred = max(
                math.ceil((spent_locally + local) / options["local_share"]) - spent - local, 1
            )
            yield from breed(setting, herd, bred, steps)
            member = herd.next_for_local_search(setting.draws, next(steps))
            chain = herd.chains.pop(member, None) or SolisWetsState(
                herd.first_step(member), np.zeros(setting.n)
            )
            point = Incumbent(herd.points[member].copy(), float(herd.values[member]))
            yield from solis_wets(setting, point, chain, SolisWetsRules(), local, steps)
            gain = herd.values[member] - point.value
            if gain > 0.0 and gain >= options["improvement_threshold"]:
                herd.points[member], herd.values[member] = point.x, point.value
                herd.chains[member] = chain
            else:
                herd.exhausted.add(member)
            spent, spent_locally = spent + bred + local, spent_locally + local


@dataclass
class Herd:
    """The population, and the state of the local search for each member."""

    points: Vector
    values: Vector

    def __post_init__(self) -> None:
        self.chains: dict[int, SolisWetsState] = {}
        self.exhausted: set[int] = set()

    def replace_worst(self, child: Vector, value: float) -> None:
        """Replace the worst member by a child if it is better; its chain is lost."""
        worst = int(self.values.argmax())
        if value < self.values[worst]:
            self.points[worst], self.values[worst] = child, value
            self.chains.pop(worst, None)
            self.exhausted.discard(worst)

    def next_for_local_search(self, draws: Draws, step: int) -> int:
        """Return the best member that is not exhausted, or a random one if all are."""
        able = [i for i in range(self.values.size) if i not in self.exhausted]
        if not able:
            return int(draws.integers(self.values.size, 1, Stream.CHOICE, step)[0])
        return able[int(self.values[able].argmin())]

    def first_step(self, member: int) -> float:
        """Return half the distance to the nearest different member, divided by n.

        N.B. the division by n is that of the authors' library (docs/competitors.md).
        """
        apart = self.points - self.points[member]
        squares = (apart * apart).sum(axis=1)
        different = squares[squares > 0.0]
        nearest = float(different.min()) if different.size else 0.0
        return 0.5 * math.sqrt(nearest) / self.points.shape[1]


def breed(setting: Setting, herd: Herd, children: int, steps: Iterator[int]) -> Asking[None]:
    """Make this many steps of the steady-state genetic algorithm, one child per step.

    Several children are requested at a time if that makes no difference: `c` children can replace
    only the `c` worst members (and each other), so a child whose possible parents are not among the
    `c` worst does not depend on the `c` children before it.
    """
    members = herd.values.size
    numbered = [next(steps) for _ in range(children)]
    parents, mutants = choose_parents(setting.draws, members, children, numbered[0])
    done = 0
    while done < children:
        rank = np.empty(members, dtype=np.int64)  # from the worst member, 0
        rank[np.argsort(-herd.values, kind="stable")] = np.arange(members)
        safe = rank[parents[done:]].min(axis=1) >= np.arange(children - done)
        batch = slice(done, children if safe.all() else done + int(safe.argmin()))
        made = make_children(setting, herd, parents[batch], numbered[batch])
        for child in np.flatnonzero(mutants[batch]):
            mutate_breeder(setting, made[child], numbered[done + child])
        values = yield made
        for child, value in zip(made, values, strict=True):
            herd.replace_worst(child, float(value))
        done = batch.stop


def choose_parents(
    draws: Draws, members: int, children: int, step: int
) -> tuple[Indices, NDArray[np.bool_]]:
    """Return a mother and three possible fathers, other than her, for each child.

    And which children are mutated.
    """
    numbers = draws.uniforms(children * (2 + FATHERS), Stream.PARTNERS, step)
    numbers = numbers.reshape(children, 2 + FATHERS)
    mothers = (numbers[:, :1] * members).astype(np.int64)
    fathers = (numbers[:, 1:-1] * (members - 1)).astype(np.int64)
    return np.hstack([mothers, fathers + (fathers >= mothers)]), numbers[:, -1] < MUTATION_RATE


def make_children(setting: Setting, herd: Herd, parents: Indices, numbered: list[int]) -> Vector:
    """Return one child per number: of its mother and the possible father farthest from her."""
    mothers, possible = herd.points[parents[:, 0]], herd.points[parents[:, 1:]]
    apart = possible - mothers[:, None, :]
    farthest = (apart * apart).sum(axis=2).argmax(axis=1)
    fathers = possible[np.arange(len(numbered)), farthest]
    shares = [setting.draws.uniforms(setting.n, Stream.CROSSOVER, step) for step in numbered]
    return blend(setting, mothers, fathers, np.array(shares))
