"""SaNSDE: self-adaptive differential evolution with neighbourhood search (Yang, Tang, Yao 2008).

The sub-optimiser of DECC-G and DECC-DG. It works on some of the variables, the others being held at
those of the best point so far (the context).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmes.base.randomness import Stream
from mmes.lab.competitors.parts.differential_evolution import (
    crossover_mask,
    normals_between,
    partners,
)
from mmes.lab.competitors.parts.draws import Draws, Indices, Vector
from mmes.lab.competitors.parts.setting import Asking, Incumbent, Setting, reflect

RATES_KEPT = 5
"""Generations for which crossover rates are kept."""
LEARNING_PERIOD = 24
"""Generations between two updates of the probabilities and of the mean crossover rate."""


def in_context(context: Vector, group: Indices, part: Vector) -> Vector:
    """Return copies of the context, one per row of `part`, with that row on the group."""
    points = np.repeat(context[None, :], part.shape[0], axis=0)
    points[:, group] = part
    return points


@dataclass
class Counter:
    """Successes and failures of two alternatives since the last update; both begin at 1."""

    successes: list[float] = field(default_factory=lambda: [1.0, 1.0])
    failures: list[float] = field(default_factory=lambda: [1.0, 1.0])

    def count(self, first: NDArray[np.bool_], accepted: NDArray[np.bool_]) -> None:
        """Count the members that used the first alternative, and the others."""
        for k, users in enumerate((first, ~first)):
            self.successes[k] += int((users & accepted).sum())
            self.failures[k] += int((users & ~accepted).sum())

    def share(self) -> float:
        """Return the first alternative's share of the two success rates.

        For the scale factor the specification writes it as s1 (s2 + f2) / (s2 (s1 + f1) + s1
        (s2 + f2)): the same number.
        """
        rate, other = (s / (s + f) for s, f in zip(self.successes, self.failures, strict=True))
        return rate / (rate + other)


@dataclass
class CrossoverRecord:
    """The crossover rates that led to improvements, weighted by the gain."""

    weighted: float = 0.0
    total: float = 0.0

    def add(self, rates: Vector, gains: Vector) -> None:
        """Record some members' rates and gains."""
        self.weighted += float((gains * rates).sum())
        self.total += float(gains.sum())

    def mean(self, otherwise: float) -> float:
        """Return the mean rate weighted by the gains, or `otherwise` if there was no gain."""
        return self.weighted / self.total if self.total > 0.0 else otherwise


def scale_factors(draws: Draws, normal: NDArray[np.bool_], step: int) -> Vector:
    """Return F for each member: abs N(0.5, 0.3^2) where `normal`, else abs of a Cauchy number."""
    count = normal.size
    narrow = 0.5 + 0.3 * draws.normals(count, Stream.SCALE_FACTOR, step)
    wide = draws.cauchys(count, Stream.SCALE_FACTOR, step, 1)
    return np.abs(np.where(normal, narrow, wide))


class Part(NamedTuple):
    """A sub-population."""

    group: Indices  # The variables searched.
    points: Vector  # The members, shape (NP, size of the group).
    values: Vector | None = None  # Their values in the context, where they are known already.


def sansde(
    setting: Setting,
    best: Incumbent,
    members: Part,
    generations: int,
    rate: float,
    steps: Iterator[int],
) -> Asking[tuple[Vector, Vector, float]]:
    """Improve `best`, the context, in place on one group of variables.

    `members` is the sub-population, which is not changed, and `generations` counts those after its
    evaluation. `steps` numbers the steps: the addresses of their random numbers. Return the points
    of the sub-population, their values, and the mean crossover rate, which outlives the call.
    """
    group, values = members.group, members.values
    draws = setting.draws
    lower, upper = setting.lower[group], setting.upper[group]
    part = members.points.copy()
    size = part.shape[0]
    if values is None:
        points = in_context(best.x, group, part)
        values = yield points
        best.offer(points, values)
    values = values.copy()
    towards_best, normal_share = 0.5, 0.5
    strategies, factors, record = Counter(), Counter(), CrossoverRecord()
    rates = np.empty(0)
    for t in range(generations):
        step = next(steps)
        if t % LEARNING_PERIOD == 0:
            rate, record = record.mean(rate), CrossoverRecord()
        if t % RATES_KEPT == 0:
            rates = normals_between(draws, np.full(size, rate), 0.1, 0.0, 1.0, step)
        choice = draws.uniforms(2 * size, Stream.CHOICE, step)
        to_best, normal = choice[:size] < towards_best, choice[size:] < normal_share
        scale = scale_factors(draws, normal, step)[:, None]
        r1, r2, r3, r4 = partners(draws, size, 4, step)
        difference = part[r1] - part[r2]
        centre = part[int(values.argmin())]
        mutants = np.where(
            to_best[:, None],
            part + scale * (centre - part) + scale * (difference + part[r3] - part[r4]),
            part[r3] + scale * difference,
        )
        trials = np.where(crossover_mask(draws, rates, group.size, step), mutants, part)
        reflect(trials, lower, upper)
        points = in_context(best.x, group, trials)
        trial_values = yield points
        accepted = trial_values <= values
        gains = np.where(accepted, values - trial_values, 0.0)
        record.add(rates, gains)
        strategies.count(to_best, accepted)
        factors.count(normal, accepted)
        part[accepted], values[accepted] = trials[accepted], trial_values[accepted]
        best.offer(points, trial_values)
        if t > 0 and t % LEARNING_PERIOD == 0:
            towards_best, normal_share = strategies.share(), factors.share()
            strategies, factors = Counter(), Counter()
    return part, values, rate
