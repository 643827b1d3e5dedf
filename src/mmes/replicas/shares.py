"""The distribution of the rows of a generation, and the state of each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmes.base.arrays import Vector
from mmes.evaluate.values import Measured, together
from mmes.evaluate.workers.lost import Round

# Shares shorter than this are dealt out in one piece: a message costs about a millisecond.
_SHORT_SECONDS = 0.02

Batch = tuple[int, ...]
"""Rows that are evaluated together."""


@dataclass(frozen=True)
class Cutting:
    """What decides how rows are cut into batches."""

    parts: int  # Participants.
    vectorized: bool  # Whether a batch is one call of the objective.
    seconds: float  # Time of one evaluation; infinite if it is not known.
    chunk_size: int | None = None  # Rows of a batch, if the user set it.

    def batches(self, rows: int) -> list[Batch]:
        """Return the rows in batches: equal shares, or half of them so and the rest in parts.

        The first batches, one for each participant, are sent immediately, the others on demand. A
        candidate and its mirror image, half a generation later, stay together if possible: they
        share their random numbers.
        """
        if self.chunk_size is not None:
            return [
                tuple(range(first, min(first + self.chunk_size, rows)))
                for first in range(0, rows, self.chunk_size)
            ]
        half = -(-rows // 2)
        pairs = [(row, row + half) if row + half < rows else (row,) for row in range(half)]
        if self.vectorized or rows < 4 * self.parts:
            # One call wants its rows side by side.
            pairs = [(row,) for row in range(rows)]
        share = len(pairs) / self.parts
        if self.vectorized or self.seconds * rows / self.parts < _SHORT_SECONDS:
            return _joined(_split(pairs, self.parts))
        first = self.parts * math.ceil(share / 2)
        rest = pairs[first:]
        size = max(math.ceil(len(rest) / (4 * self.parts)), 1)
        later = [rest[k : k + size] for k in range(0, len(rest), size)]
        return _joined(_split(pairs[:first], self.parts) + later)


def _split(units: list[Batch], parts: int) -> list[list[Batch]]:
    edges = [round(k * len(units) / parts) for k in range(parts + 1)]
    return [units[one:end] for one, end in itertools.pairwise(edges) if end > one]


def _joined(groups: list[list[Batch]]) -> list[Batch]:
    return [tuple(sorted(row for unit in group for row in unit)) for group in groups]


def ranges(batch: Batch) -> tuple[tuple[int, int], ...]:
    """Return rows as (first, end) pairs, which are shorter in a message."""
    found: list[tuple[int, int]] = []
    for row in batch:
        if found and found[-1][1] == row:
            found[-1] = found[-1][0], row + 1
        else:
            found.append((row, row + 1))
    return tuple(found)


def packed(values: Sequence[Any]) -> bytes:
    """Return values as they are sent; ValueError if points differ in the number of constraints."""
    return together(values).tobytes()


def unpacked(data: bytes, count: int) -> Sequence[Any] | Vector:
    """Return the values of `count` points that `packed` was given; rows with constraints.

    Where all have failed, nothing tells the number of constraints, and each has one NaN.
    """
    values = np.frombuffer(data)
    if values.size == count:
        return values
    return [Measured(row) for row in values.reshape(count, -1)]


class SharedRound(Round):
    """One generation that replicas evaluate, or points that they are sent."""

    def __init__(self, generation: int, rows: int):
        super().__init__(generation, rows, "the replica")
        self.points: Vector | None = None  # the candidates, once the head has asked for them
        self.shipped = False  # whether the points must travel: they are not a generation's
        # The head's digests of its numbers and, now and then, vectors.
        self.numbers: bytes = b""
        self.vectors: bytes | None = None
