"""Loops over short arrays, with one entry per candidate or direction.

Such arrays are on the host for every kernel. This module is the definition, and is used if the
native module cannot be loaded; otherwise the same in C++ replaces it, because numpy takes many
times as long for so few numbers.
"""

from __future__ import annotations

import contextlib
import math

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def renew(order: NDArray[np.int64], stamps: NDArray[np.int64], spacing: float) -> int:
    """Move the row of the archive to replace to the end of `order`, and return it.

    It is the later member of the closest pair of neighbours (the first such pair), so that the
    others keep their distance; but once all neighbours lie more than T = `spacing` generations
    apart, the oldest.
    """
    place = 0
    if order.size > 1:
        ordered = stamps.take(order)
        gaps = ordered[1:] - ordered[:-1]
        closest = int(gaps.argmin())
        # N.B. the pseudo-code drops the oldest at a gap >= T, the text keeps a gap "no larger
        # than T"; the published figures come out with > T (test_archive.py pins it).
        place = 0 if gaps[closest] > spacing else closest + 1
    row = int(order[place])
    order[place:-1] = order[place + 1 :]
    order[-1] = row
    return row


def success_share(best: Vector, previous: Vector, weights: Vector) -> float:
    """Return L, the sum of w_i over the ranks at which this generation beats the previous one.

    A tie counts one half.
    """
    pairs = zip(weights.tolist(), best.tolist(), previous.tolist(), strict=True)
    return math.fsum(w if now < before else 0.5 * w for w, now, before in pairs if now <= before)


def add_by_draw(total: Vector, ranking: NDArray[np.int64], by_rank: Vector) -> None:
    """Add the weight of each rank to the total of its draw, in place.

    Candidate i is draw i; with h draws, candidate h + i is the mirror image of draw i.
    """
    by_candidate = np.empty(ranking.size)
    by_candidate[ranking] = by_rank
    draws = total.size
    total += by_candidate[:draws]
    total[: ranking.size - draws] += by_candidate[draws:]


def opposition(ranking: NDArray[np.int64], draws: int) -> float:
    """Return the sum of (r+ - H)(r- - H) over the mirrored pairs.

    r+ and r- are the ranks of a pair, 0 the best, and H is the middle rank.
    """
    ranks = np.empty(ranking.size)
    ranks[ranking] = np.arange(ranking.size) - (ranking.size - 1) / 2
    return math.fsum((ranks[: ranking.size - draws] * ranks[draws:]).tolist())


DEFINITIONS = {f.__name__: f for f in (renew, success_share, add_by_draw, opposition)}
"""The functions in Python, which those in C++ must agree with."""

with contextlib.suppress(ImportError):
    from mmes.kernels._native import add_by_draw, opposition, renew, success_share
