"""The random numbers of `mmes.base.randomness` in torch operations, on any device.

The same words to the bit; the same normals to the rounding of the device's logarithm and cosine.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from mmes.base.randomness import CHUNK, LANES, Stream, normals
from mmes.kernels.protocol import Noise

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85
_LOW = 0xFFFFFFFF
_ROUNDS = 10
# Generations whose factors are made at once, and how many factors there may be.
_AHEAD, _FEW = 64, 1024


class NormalsAhead:
    """Normals that the host makes, few per generation: those of many generations at once.

    numpy takes almost as long for one generation as for all of them, and the GPU waits meanwhile.
    """

    def __init__(self) -> None:
        self._sequence: tuple[int, int, int] | None = None
        self._first = 0
        self._made: NDArray[np.float32] = np.empty((0, 0), np.float32)

    def __call__(self, count: int, seed: int, stream: int, generation: int) -> NDArray[np.float32]:
        """Return the normals at an address, read-only; see `mmes.base.randomness.normals`."""
        if count > _FEW:
            return normals(count, seed, stream, generation)
        sequence = count, seed, stream
        place = generation - self._first
        if sequence != self._sequence or not 0 <= place < len(self._made):
            # Ahead only where the last generation was asked for, too.
            follows = sequence == self._sequence and place == len(self._made)
            every = generation + np.arange(_AHEAD if follows else 1)
            self._made = normals(count, seed, stream, every, np.zeros_like(every))
            self._made.flags.writeable = False
            self._sequence, self._first, place = sequence, generation, 0
        return self._made[place]


def parts(
    noise: Noise,
    draws: NDArray[np.int64],
    span: tuple[int, int],
    address: tuple[int, int],
    device: torch.device,
) -> torch.Tensor:
    """Return entries of z_0 of some draws, one draw per row, in float32.

    `span` is the first coordinate, a multiple of 64, and the end; `address` is seed and generation.
    """
    first, last = span
    words = _words(draws, span, (*address, Stream.ISOTROPIC), device)
    if noise is Noise.RADEMACHER:
        entries = 1.0 - 2.0 * (words >> 31)
    elif noise is Noise.STUDENT:
        turns = _words(draws, span, (*address, Stream.ISOTROPIC_ANGLE), device)
        radius = torch.sqrt(3.0 * torch.expm1(0.4 * _minus_log(words)))
        entries = radius * torch.cos(_angle(turns))
    else:
        pairs = words.reshape(len(draws), -1, 2, LANES)
        radius = torch.sqrt(2.0 * _minus_log(pairs[:, :, 0]))
        angle = _angle(pairs[:, :, 1])
        both = torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], dim=2)
        entries = both.reshape(words.shape)
    return entries[:, : last - first].to(torch.float32)


def _words(
    draws: NDArray[np.int64],
    span: tuple[int, int],
    address: tuple[int, int, int],
    device: torch.device,
) -> torch.Tensor:
    """Return whole chunks of random words in int64, one draw per row."""
    seed, generation, stream = address
    first, chunks = span[0] // CHUNK, -(-(span[1] - span[0]) // CHUNK)
    c0 = torch.arange(first * LANES, (first + chunks) * LANES, device=device)[None, :]
    c1 = torch.as_tensor(draws, device=device)[:, None]
    c2, c3 = torch.full_like(c1, generation), torch.full_like(c1, stream)
    key0, key1 = seed & _LOW, seed >> 32
    for _ in range(_ROUNDS):
        # Products wrap around at 64 bits; the mask takes care of the sign.
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            (product1 >> 32 & _LOW) ^ c1 ^ key0,
            product1 & _LOW,
            (product0 >> 32 & _LOW) ^ c3 ^ key1,
            product0 & _LOW,
        )
        key0, key1 = (key0 + _WEYL[0]) & _LOW, (key1 + _WEYL[1]) & _LOW
    shape = len(draws), chunks, LANES
    blocks = torch.stack(
        [
            torch.broadcast_to(c, (shape[0], chunks * LANES)).reshape(shape)
            for c in (c0, c1, c2, c3)
        ],
        dim=2,
    )
    return blocks.reshape(shape[0], -1)


def _minus_log(words: torch.Tensor) -> torch.Tensor:
    # Rounded to float32 before the logarithm, as everywhere.
    rounded = (words.to(torch.float32) + 0.5) * 2.0**-32
    return -torch.log(rounded.to(torch.float64))


def _angle(words: torch.Tensor) -> torch.Tensor:
    return words.to(torch.float64) * (2.0 * math.pi * 2.0**-32)
