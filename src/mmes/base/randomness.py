"""Random numbers as a pure function of where they are used.

Every random number of the library is addressed, not drawn: Philox4x32-10 (Salmon, Moraes, Dror,
Shaw 2011) turns a key and a counter into four 32-bit words, and

    key     = seed (64 bits, low word first)
    counter = (block, candidate, generation, stream)

so that a candidate can be rebuilt at any time, on any machine, in any order. This module is the
definition of record; the native kernel gives the same words bit for bit and the same normals to
float32 rounding.

A sequence of numbers is read in chunks of 64: item k is word (k // 16) % 4 of block 16 (k // 64) +
k % 16. (SIMD hardware computes sixteen neighbouring blocks at a time.)
"""

from __future__ import annotations

import os
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

LANES = 16
CHUNK = 64
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_ROUNDS = 10
SEED_LIMIT = 2**64

Candidates = int | NDArray[np.integer]
Generations = int | NDArray[np.integer]


class Stream(IntEnum):
    """What a sequence of random numbers is for; the last word of the counter."""

    ISOTROPIC = 0  # The isotropic part z_0 of a step.
    ISOTROPIC_ANGLE = 1  # The second uniform of a Student-t entry of z_0.
    MIXTURE_INDEX = 2  # Which archive rows a step mixes.
    MIXTURE_FACTOR = 3  # The normal factors z_j of those rows.
    START_POINT = 4  # Start points: uniform in the box, or around x0.
    CHILD_SEED = 5  # Seeds of restarts and of independent parts.
    INITIAL_DIRECTIONS = 6  # Start values of stored directions, where a strategy needs them.
    DIRECTION_COUNT = 7  # How many stored directions a step uses, where that is random.
    FIRST_POPULATION = 8  # First populations of the competitors.
    GROUPS = 9  # Which variables a competitor groups.
    PARTNERS = 10  # Which members of a population are combined.
    CHOICE = 11  # Which of several ways a competitor takes.
    CROSSOVER = 12  # Which coordinates a child takes from whom, and where it lies between them.
    CROSSOVER_RATE = 13  # Crossover rates.
    SCALE_FACTOR = 14  # Scale factors of differential evolution.
    MUTATION = 15  # Mutations of single coordinates.
    LOCAL_STEP = 16  # Steps of a local search, or of a particle.
    FIRST_LESSONS = 17  # Start values of the path of lessons about the scales.


def philox(counter: NDArray[np.uint32], seed: int) -> NDArray[np.uint32]:
    """Return the Philox4x32-10 blocks of the counters, one of four uint32 per row.

    The seed is the 64-bit key.
    """
    c0, c1, c2, c3 = (counter[..., i].astype(np.uint64) for i in range(4))
    key0, key1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(_ROUNDS):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            (product1 >> np.uint64(32)) ^ c1 ^ np.uint64(key0),
            product1 & _LOW,
            (product0 >> np.uint64(32)) ^ c3 ^ np.uint64(key1),
            product0 & _LOW,
        )
        key0, key1 = (key0 + _WEYL[0]) & 0xFFFFFFFF, (key1 + _WEYL[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)


def words(
    count: int, seed: int, stream: int, generation: Generations = 0, candidate: Candidates = 0
) -> NDArray[np.uint32]:
    """Return the first `count` random words of the sequence at this address.

    For an array of candidates, one sequence per row; so do the other functions. There may be as
    many generations then, one of each.
    """
    chunks = -(-count // CHUNK)
    counter = np.empty((*np.shape(candidate), chunks * LANES, 4), dtype=np.uint32)
    counter[..., 0] = np.arange(chunks * LANES, dtype=np.uint32)
    counter[..., 1] = np.asarray(candidate, dtype=np.uint32)[..., None]
    counter[..., 2] = np.asarray(generation, dtype=np.uint32)[..., None]
    counter[..., 3] = stream
    blocks = philox(counter, seed).reshape(*np.shape(candidate), chunks, LANES, 4)
    return np.swapaxes(blocks, -1, -2).reshape(*np.shape(candidate), -1)[..., :count]


def uniforms(
    count: int, seed: int, stream: int, generation: int = 0, candidate: Candidates = 0
) -> NDArray[np.float64]:
    """Return uniform numbers in (0, 1): the words plus one half, over 2^32, exact in float64."""
    return (words(count, seed, stream, generation, candidate).astype(np.float64) + 0.5) * 2.0**-32


def normals(
    count: int, seed: int, stream: int, generation: Generations = 0, candidate: Candidates = 0
) -> NDArray[np.float32]:
    """Return standard normal numbers in float32, by the Box-Muller transform.

    The words 0 and 1 of a block (radius, angle) give two normals in their places, the words 2 and 3
    another two.
    """
    padded = -(-count // CHUNK) * CHUNK
    raw = words(padded, seed, stream, generation, candidate)
    pairs = raw.reshape(*raw.shape[:-1], -1, 2, LANES)
    radius = np.sqrt(2.0 * _minus_log(pairs[..., 0, :]))
    angle = pairs[..., 1, :] * (2.0 * np.pi * 2.0**-32)
    both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-2)
    return both.reshape(raw.shape)[..., :count].astype(np.float32)


def student(
    count: int, seed: int, generation: int = 0, candidate: Candidates = 0
) -> NDArray[np.float32]:
    """Return Student-t numbers with 5 degrees of freedom scaled to unit variance, in float32.

    The polar form of Bailey (1994): sqrt(5 (u^(-2/5) - 1)) cos(2 pi v), times sqrt(3/5).
    """
    radius = _minus_log(words(count, seed, Stream.ISOTROPIC, generation, candidate))
    turn = words(count, seed, Stream.ISOTROPIC_ANGLE, generation, candidate)
    cosine = np.cos(turn * (2.0 * np.pi * 2.0**-32))
    return (np.sqrt(3.0 * np.expm1(0.4 * radius)) * cosine).astype(np.float32)


def signs(
    count: int, seed: int, stream: int, generation: int = 0, candidate: Candidates = 0
) -> NDArray[np.float32]:
    """Return fair signs +1 and -1 in float32; the top bit of a word decides."""
    negative = words(count, seed, stream, generation, candidate) >> np.uint32(31)
    return (1.0 - 2.0 * negative).astype(np.float32)


def child_seed(seed: int, index: int) -> int:
    """Return the seed of the index-th independent part of a run (a restart, a worker's problem)."""
    low, high = words(17, seed, Stream.CHILD_SEED, index)[[0, 16]]
    return int(low) | int(high) << 32


def fresh_seed() -> int:
    """Return a seed from the operating system's entropy, for a run without a seed."""
    return int.from_bytes(os.urandom(8), "little") >> 1


def _minus_log(raw: NDArray[np.uint32]) -> NDArray[np.float64]:
    # The uniform is rounded to float32 before the logarithm, so that the native kernel starts from
    # the same number.
    rounded = (raw.astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-32)
    return -np.log(rounded.astype(np.float64))
