"""Damage to the bytes of a file, as by a fuzzer or a failing disk."""

from __future__ import annotations

import random


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return a damaged copy: bytes changed, cut out, doubled, swapped, or the end cut off."""
    damaged = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        kind = rng.randrange(6 if len(damaged) > 1024 else 2)
        at = rng.randrange(len(damaged))
        length = min(rng.choice((1, 2, 16, 512)), len(damaged) - at)
        if kind == 0:
            damaged[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            damaged[at : at + length] = rng.randbytes(length)
        elif kind == 2:
            del damaged[at : at + length]
        elif kind == 3:
            damaged[at:at] = damaged[at : at + length]
        elif kind == 4:
            other = rng.randrange(len(damaged) - length + 1)
            part = bytes(damaged[at : at + length])
            damaged[at : at + length] = damaged[other : other + length]
            damaged[other : other + length] = part
        else:
            damaged = damaged[: max(at, 1)]
    return bytes(damaged)
