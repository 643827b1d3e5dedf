"""Parts of real-coded genetic algorithms: blend crossover and two mutations."""

from __future__ import annotations

import numpy as np

from mmes.base.randomness import Stream
from mmes.lab.competitors.parts.draws import Draws, Indices, Vector
from mmes.lab.competitors.parts.setting import Setting

ALPHA = 0.5
"""How far blend crossover reaches beyond the parents, in their distances."""
AT_ONCE = 16384
"""Entries that are worked on at a time, so that what is computed on the way stays in the cache."""


def blend(setting: Setting, mothers: Vector, fathers: Vector, shares: Vector) -> Vector:
    """Return children by blend crossover (BLX-0.5).

    Each coordinate lies between the parents or up to half their distance beyond, the interval being
    cut to the box; `shares` in (0, 1) tell where.
    """
    children, rows = np.empty_like(mothers), max(AT_ONCE // setting.n, 1)
    for first in range(0, len(children), rows):
        some = slice(first, first + rows)
        children[some] = _blend(setting, mothers[some], fathers[some], shares[some])
    return children


def _blend(setting: Setting, mothers: Vector, fathers: Vector, shares: Vector) -> Vector:
    low, high = np.minimum(mothers, fathers), np.maximum(mothers, fathers)
    reach = ALPHA * (high - low)
    low -= reach
    high += reach
    np.maximum(low, setting.lower, out=low)
    np.minimum(high, setting.upper, out=high)
    high -= low
    high *= shares
    low += high
    return np.minimum(low, setting.upper, out=low)  # rounding may have passed the wall


def mutate_breeder(setting: Setting, child: Vector, step: int) -> None:
    """Move one coordinate, in place, as the breeder genetic algorithm does, with range 0.1.

    The distance is 0.1 of the box's width times a sum of 2^-k, k = 0 to 15, each term being there
    with probability 1/16.
    """
    numbers = setting.draws.uniforms(18, Stream.MUTATION, step)
    i = int(numbers[0] * setting.n)
    sign = 1.0 if numbers[1] < 0.5 else -1.0
    sum_of_terms = sum(0.5**k for k in range(16) if numbers[2 + k] < 1.0 / 16.0)
    moved = child[i] + sign * 0.1 * float(setting.width[i]) * sum_of_terms
    child[i] = min(max(moved, float(setting.lower[i])), float(setting.upper[i]))


TRIES = 16


def mutate_gaussian(setting: Setting, children: Vector, times: int, step: int) -> None:
    """Add N(0, 1) times the box's width to `times` random coordinates of each child, in place.

    A coordinate may be chosen twice. A number that would lead out of the box is drawn again.
    """
    rows = np.arange(children.shape[0])
    places = setting.draws.integers(setting.n, times * rows.size, Stream.CHOICE, step, 1)
    for part, chosen in enumerate(places.reshape(times, rows.size)):
        lower, upper = setting.lower[chosen], setting.upper[chosen]
        children[rows, chosen] = moved_inside(
            setting.draws, children[rows, chosen], lower, upper, step, part
        )


def moved_inside(
    draws: Draws, places: Vector, lower: Vector, upper: Vector, step: int, part: int
) -> Vector:
    """Return places + N(0, 1) (upper - lower), each drawn again until it lies in [lower, upper]."""
    moved = places.copy()
    missing: Indices = np.flatnonzero(upper > lower)
    attempt = 0
    while missing.size:
        address = part * 1000 + attempt
        noise = draws.normals(TRIES * missing.size, Stream.MUTATION, step, address)
        low, high = lower[missing], upper[missing]
        tries = places[missing] + noise.reshape(TRIES, -1) * (high - low)
        inside = (tries >= low) & (tries <= high)
        hit = inside.any(axis=0)
        moved[missing[hit]] = tries[inside.argmax(axis=0)[hit], np.flatnonzero(hit)]
        missing = missing[~hit]
        attempt += 1
    return moved
