"""Parts of differential evolution: partners, crossover masks, rates, DE/rand/1/bin."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mmes.base.randomness import Stream
from mmes.lab.competitors.parts.draws import Draws, Indices, Vector
from mmes.lab.competitors.parts.setting import Asking, reflect


def partners(draws: Draws, members: int, count: int, step: int) -> Indices:
    """Return `count` partners of each member, shape (count, members).

    They are rotations of one random permutation: the partners of a member are distinct from each
    other, but one may be the member itself.
    """
    order = draws.permutation(members, Stream.PARTNERS, step)
    return np.stack([np.roll(order, -shift) for shift in range(count)])


def crossover_mask(draws: Draws, rates: Vector, columns: int, step: int) -> NDArray[np.bool_]:
    """Return which coordinates come from the mutant, one row per member.

    Each does with the member's rate; where none would, one at random does.
    """
    members = rates.size
    numbers = draws.uniforms(members * columns, Stream.CROSSOVER, step).reshape(members, columns)
    mask = numbers < rates[:, None]
    empty = np.flatnonzero(~mask.any(axis=1))
    if empty.size:
        mask[empty, draws.integers(columns, members, Stream.CROSSOVER, step, 1)[empty]] = True
    return mask


def normals_between(
    draws: Draws, means: Vector, deviation: float, low: float, high: float, step: int
) -> Vector:
    """Return N(mean, deviation^2) for each mean, drawn again until it lies in (low, high)."""
    found = np.full(means.size, np.nan)
    part = 0
    while (missing := np.flatnonzero(np.isnan(found))).size:
        tries = draws.normals(8 * missing.size, Stream.CROSSOVER_RATE, step, part).reshape(8, -1)
        tries = means[missing] + deviation * tries
        inside = (tries > low) & (tries < high)
        hit = inside.any(axis=0)
        found[missing[hit]] = tries[inside.argmax(axis=0)[hit], np.flatnonzero(hit)]
        part += 1
    return found


def rand_1_bin(
    draws: Draws,
    lower: Vector,
    upper: Vector,
    members: int,
    generations: int,
    steps: Iterator[int],
) -> Asking[tuple[Vector, float]]:
    """Minimise by DE/rand/1/bin with F = 0.5 and CR = 0.9; return the best point and its value.

    The points it yields contain only its variables, in the box from `lower` to `upper`.
    """
    n = lower.size
    shares = draws.uniforms(members * n, Stream.FIRST_POPULATION, next(steps)).reshape(members, n)
    points = np.minimum(np.maximum(lower + shares * (upper - lower), lower), upper)
    values = yield points
    points, values = points.copy(), values.copy()
    rates = np.full(members, 0.9)
    for _ in range(generations):
        step = next(steps)
        first, second, third = partners(draws, members, 3, step)
        mutants = points[third] + 0.5 * (points[first] - points[second])
        trials = np.where(crossover_mask(draws, rates, n, step), mutants, points)
        reflect(trials, lower, upper)
        trial_values = yield trials
        better = trial_values <= values
        points[better], values[better] = trials[better], trial_values[better]
    best = int(values.argmin())
    return points[best].copy(), float(values[best])
