"""SHADE: differential evolution whose rates follow the history of their successes.

R. Tanabe, A. Fukunaga, IEEE Congress on Evolutionary Computation 2013.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mmes.base.randomness import Stream
from mmes.lab.competitors.parts.differential_evolution import crossover_mask
from mmes.lab.competitors.parts.draws import Draws, Indices, Vector
from mmes.lab.competitors.parts.setting import Asking, Setting

MEMORY_SIZE = 100
GREEDIEST, LEAST_GREEDY = 2, 0.2
"""The guides of a mutant are the best two members at least, a fifth of all at most."""


class Memory:
    """The history of successful crossover rates and scale factors; one slot is written at a time.

    =======  =======  ==============================================
    field    paper    meaning
    =======  =======  ==============================================
    rates    M_CR     means of the crossover rates, each begins at 0.5
    factors  M_F      means of the scale factors, likewise
    slot     k        the slot that the next update writes
    =======  =======  ==============================================
    """

    def __init__(self) -> None:
        self.rates = np.full(MEMORY_SIZE, 0.5)
        self.factors = np.full(MEMORY_SIZE, 0.5)
        self.slot = 0

    def update(self, rates: Vector, factors: Vector, gains: Vector) -> None:
        """Write the means of successful members, weighted by their gains, into the next slot.

        For the factors it is the Lehmer mean. Without a gain nothing changes.
        """
        total = float(gains.sum())
        if not total > 0.0:
            return
        weights = gains / total
        self.rates[self.slot] = (weights * rates).sum()
        self.factors[self.slot] = (weights * factors**2).sum() / (weights * factors).sum()
        self.slot = (self.slot + 1) % MEMORY_SIZE


def factors_around(draws: Draws, centres: Vector, step: int) -> Vector:
    """Return a Cauchy number of width 0.1 around each centre: at most 1, drawn again if not > 0."""
    found = np.zeros(centres.size)
    part = 0
    while (missing := np.flatnonzero(found <= 0.0)).size:
        tries = draws.cauchys(4 * missing.size, Stream.SCALE_FACTOR, step, part).reshape(4, -1)
        tries = centres[missing] + 0.1 * tries
        found[missing] = tries[(tries > 0.0).argmax(axis=0), np.arange(missing.size)]
        part += 1
    return np.minimum(found, 1.0)


class Shade:
    """A population under SHADE, which can be continued.

    Points and values are those of an evaluated population and change in place; `steps` numbers the
    steps: the addresses of their random numbers.
    """

    def __init__(self, setting: Setting, points: Vector, values: Vector, steps: Iterator[int]):
        self.points = points
        self.values = values
        self.memory = Memory()
        self._archive = np.empty((0, setting.n))
        self._setting = setting
        self._steps = steps

    def run(self, evaluations: int) -> Asking[None]:
        """Run generations until the evaluations are used up; the last one may be incomplete."""
        while evaluations > 0:
            step = next(self._steps)
            wanted = min(evaluations, self.values.size)
            trials, rates, factors = self._trials(step)
            trials, rates, factors = trials[:wanted], rates[:wanted], factors[:wanted]
            trial_values = yield trials
            self._select(trials, trial_values, rates, factors, step)
            evaluations -= wanted

    def _trials(self, step: int) -> tuple[Vector, Vector, Vector]:
        """Return a trial for each member (current-to-pbest/1/bin), its rate and its factor."""
        draws, members = self._setting.draws, self.values.size
        slots = draws.integers(MEMORY_SIZE, members, Stream.CHOICE, step)
        noise = draws.normals(members, Stream.CROSSOVER_RATE, step)
        rates = np.clip(self.memory.rates[slots] + 0.1 * noise, 0.0, 1.0)
        factors = factors_around(draws, self.memory.factors[slots], step)
        guides, first, second = self._partners(step)
        archived = second >= members
        others = self.points[np.where(archived, 0, second)]
        others[archived] = self._archive[second[archived] - members]
        mutants = self.points[guides] - self.points
        mutants += self.points[first]
        mutants -= others
        mutants *= factors[:, None]
        mutants += self.points
        lower, upper = self._setting.lower, self._setting.upper
        # Outside the box a coordinate goes halfway from its parent to the wall.
        np.copyto(mutants, 0.5 * (self.points + lower), where=mutants < lower)
        np.copyto(mutants, 0.5 * (self.points + upper), where=mutants > upper)
        mask = crossover_mask(draws, rates, self._setting.n, step)
        return np.where(mask, mutants, self.points), rates, factors

    def _partners(self, step: int) -> tuple[Indices, Indices, Indices]:
        """Return for each member a guide among the best, a member, and a member or archived point.

        Guide aside, all differ from each other and from the member itself.
        """
        members = self.values.size
        numbers = self._setting.draws.uniforms(4 * members, Stream.PARTNERS, step)
        greed, guide, first, second = numbers.reshape(4, members)
        itself = np.arange(members)
        fewest = min(GREEDIEST, members)
        most = max(int(LEAST_GREEDY * members), fewest)
        eligible = np.maximum(fewest, ((fewest + greed * (most - fewest)) + 0.5).astype(np.int64))
        guides = np.argsort(self.values, kind="stable")[(guide * eligible).astype(np.int64)]
        one = (first * (members - 1)).astype(np.int64)
        one += one >= itself
        pool = members + self._archive.shape[0]
        two = (second * (pool - 2)).astype(np.int64)
        low, high = np.minimum(one, itself), np.maximum(one, itself)
        two += two >= low
        two += two >= high
        return guides, one, two

    def _select(
        self, trials: Vector, trial_values: Vector, rates: Vector, factors: Vector, step: int
    ) -> None:
        members = trial_values.size
        values = self.values[:members]
        improved = trial_values < values
        accepted = trial_values <= values
        self._remember(self.points[:members][improved], step)
        self.memory.update(rates[improved], factors[improved], (values - trial_values)[improved])
        self.points[:members][accepted] = trials[accepted]
        self.values[:members][accepted] = trial_values[accepted]

    def _remember(self, parents: Vector, step: int) -> None:
        """Archive the parents that were beaten; random ones leave when there are too many."""
        archive = np.concatenate([self._archive, parents])
        if archive.shape[0] > self.values.size:
            order = self._setting.draws.permutation(archive.shape[0], Stream.GROUPS, step)
            archive = archive[np.sort(order[: self.values.size])]
        self._archive = archive
