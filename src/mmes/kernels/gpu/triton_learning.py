"""The Triton kernels that learn from the isotropic parts of a generation, made again in registers.

A program works on `rounds` groups of blocks or coordinates, as far apart as there are programs:
the number of sums over its coordinates that it writes does not depend on the number of variables.
"""
# pyright: reportMissingImports=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportCallIssue=false, reportOptionalMemberAccess=false
# pyright: reportPossiblyUnboundVariable=false

import triton
import triton.language as tl

from mmes.kernels.gpu.triton_code import HEAD, counters, places_of
from mmes.kernels.gpu.triton_random import noise, real

_FIRST, _SECOND, _THIRD = (tl.constexpr(k) for k in (3, 4, 5))
_HEAD = tl.constexpr(HEAD)


@triton.jit
def _add(a, b):
    # Not `tl.sum`: in the interpreter that works only where Triton was imported for it.
    return a + b


@triton.jit
def _followed(path, decay, gain, t, at, inside):
    """Move the path at these coordinates."""
    former = tl.load(path + at, mask=inside).to(tl.float64)
    tl.store(path + at, tl.fma(gain, t.to(tl.float64), former * decay), mask=inside)


@triton.jit
def _grown(scale, rate, t, at, inside, LIMIT: tl.constexpr, KEEP: tl.constexpr):
    """Multiply the scale by e^(rate t), clipped; return the exponents, 0 outside.

    KEEP: write t, and return that.
    """
    added = t.to(tl.float64)
    if KEEP:
        tl.store(scale + at, added, mask=inside)
    else:
        added = tl.minimum(tl.maximum(rate * added, -LIMIT), LIMIT)
        d = tl.load(scale + at, mask=inside).to(tl.float64)
        tl.store(scale + at, d * tl.exp(added), mask=inside)
    return tl.where(inside, added, 0.0)


@triton.jit
def learn(
    path,
    scale,
    sums,
    numbers,
    n,
    draws,
    rounds,
    PATH: tl.constexpr,
    SCALE: tl.constexpr,
    KEEP: tl.constexpr,
    LIMIT: tl.constexpr,
    NOISE: tl.constexpr,
    BLOCKS: tl.constexpr,
):
    """Move a path by sum_i v_i z_{0,i}, and the scale by e^(rate sum_i w_i z_{0,i}^2).

    PATH, SCALE: which of the two. KEEP: write sum_i w_i z_{0,i}^2 to `scale` instead. `numbers`
    has decay, gain and rate, then v, then w. What each program added to the logarithms of the scale
    goes to `sums`.
    """
    decay, gain, rate = real(numbers, _FIRST), real(numbers, _SECOND), real(numbers, _THIRD)
    grown = rate * 0.0
    for turn in range(rounds):
        group = (tl.program_id(0) + turn * tl.num_programs(0)).to(tl.int64)
        block = group * BLOCKS + tl.arange(0, BLOCKS)
        at0, at1, at2, at3, in0, in1, in2, in3 = places_of(block, n)
        if PATH:
            counter = counters(block, tl.load(path + at0, mask=in0))
        else:
            counter = counters(block, tl.load(scale + at0, mask=in0))
        t0 = tl.full([BLOCKS], 0.0, tl.float32)
        t1, t2, t3, u0, u1, u2, u3 = t0, t0, t0, t0, t0, t0, t0
        for i in range(draws):
            z0, z1, z2, z3 = noise(numbers, counter, i, NOISE)
            if PATH:
                v = tl.load(numbers + _HEAD + i).to(tl.float64, bitcast=True).to(tl.float32)
                t0, t1 = tl.fma(v, z0, t0), tl.fma(v, z1, t1)
                t2, t3 = tl.fma(v, z2, t2), tl.fma(v, z3, t3)
            if SCALE:
                w = tl.load(numbers + _HEAD + draws + i).to(tl.float64, bitcast=True).to(tl.float32)
                u0, u1 = tl.fma(w, z0 * z0, u0), tl.fma(w, z1 * z1, u1)
                u2, u3 = tl.fma(w, z2 * z2, u2), tl.fma(w, z3 * z3, u3)
        if PATH:
            _followed(path, decay, gain, t0, at0, in0)
            _followed(path, decay, gain, t1, at1, in1)
            _followed(path, decay, gain, t2, at2, in2)
            _followed(path, decay, gain, t3, at3, in3)
        if SCALE:
            total = _grown(scale, rate, u0, at0, in0, LIMIT, KEEP)
            total += _grown(scale, rate, u1, at1, in1, LIMIT, KEEP)
            total += _grown(scale, rate, u2, at2, in2, LIMIT, KEEP)
            total += _grown(scale, rate, u3, at3, in3, LIMIT, KEEP)
            grown += tl.reduce(total, 0, _add)
    if SCALE:
        tl.store(sums + tl.program_id(0), grown)


@triton.jit
def take(
    path,
    lesson,
    sums,
    taken,
    numbers,
    n,
    draws,
    parts,
    rounds,
    PARTS: tl.constexpr,
    SIZE: tl.constexpr,
    LIMIT: tl.constexpr,
):
    """Turn a lesson into what the logarithms of the scale grow by, and move its path (`Lessons`).

    `sums` are those of the lesson. Those of the increments go to `taken`, and behind them the sums
    of the squares of the path, cut off at the threshold. `numbers` has six more behind the weights.
    """
    part = tl.arange(0, PARTS)
    mean = tl.reduce(tl.load(sums + part, mask=part < parts, other=0.0), 0, _add) / n
    more = numbers + _HEAD + 2 * draws
    rate, decay, gain = real(numbers, _THIRD), real(more, 0), real(more, 1)
    factor, slope, threshold = real(more, 2), real(more, 3), real(more, 4)
    fastest = real(more, 5)
    grown, squares = rate * 0.0, rate * 0.0
    for turn in range(rounds):
        group = (tl.program_id(0) + turn * tl.num_programs(0)).to(tl.int64)
        at = group * SIZE + tl.arange(0, SIZE)
        inside = at < n
        x = tl.load(lesson + at, mask=inside, other=0.0) - mean
        q = tl.load(path + at, mask=inside, other=0.0).to(tl.float64)
        # By the path before this generation: so the rate and the lesson are independent.
        wanted = tl.minimum(factor + slope * tl.maximum(q * q - threshold, 0.0), fastest)
        step = tl.minimum(tl.maximum(rate * wanted * x, -LIMIT), LIMIT)
        q = tl.fma(gain, x, q * decay)
        tl.store(path + at, q, mask=inside)
        tl.store(lesson + at, step, mask=inside)
        grown += tl.reduce(tl.where(inside, step, 0.0), 0, _add)
        squares += tl.reduce(tl.where(inside, tl.minimum(q * q, threshold), 0.0), 0, _add)
    tl.store(taken + tl.program_id(0), grown)
    tl.store(taken + PARTS + tl.program_id(0), squares)


@triton.jit
def grow(scale, steps, sums, n, parts, rounds, PARTS: tl.constexpr, SIZE: tl.constexpr):
    """Multiply the scale by e^(step - mean of the steps)."""
    part = tl.arange(0, PARTS)
    mean = tl.reduce(tl.load(sums + part, mask=part < parts, other=0.0), 0, _add) / n
    for turn in range(rounds):
        group = (tl.program_id(0) + turn * tl.num_programs(0)).to(tl.int64)
        at = group * SIZE + tl.arange(0, SIZE)
        d = tl.load(scale + at, mask=at < n).to(tl.float64)
        tl.store(scale + at, d * tl.exp(tl.load(steps + at, mask=at < n) - mean), mask=at < n)


@triton.jit
def centre(scale, sums, n, parts, rounds, PARTS: tl.constexpr, SIZE: tl.constexpr):
    """Divide the scale by e^(mean of all exponents), which follows from `sums`."""
    part = tl.arange(0, PARTS)
    mean = tl.reduce(tl.load(sums + part, mask=part < parts, other=0.0), 0, _add) / n
    factor = tl.exp(-mean)
    for turn in range(rounds):
        group = (tl.program_id(0) + turn * tl.num_programs(0)).to(tl.int64)
        at = group * SIZE + tl.arange(0, SIZE)
        d = tl.load(scale + at, mask=at < n).to(tl.float64)
        tl.store(scale + at, d * factor, mask=at < n)


@triton.jit
def product_sums(sums, a, b, n, rounds, SIZE: tl.constexpr):
    """Write parts of the scalar product of two vectors."""
    total = tl.full([SIZE], 0.0, tl.float64)
    for turn in range(rounds):
        group = (tl.program_id(0) + turn * tl.num_programs(0)).to(tl.int64)
        at = group * SIZE + tl.arange(0, SIZE)
        x = tl.load(a + at, mask=at < n, other=0.0).to(tl.float64)
        y = tl.load(b + at, mask=at < n, other=0.0).to(tl.float64)
        total += x * y
    tl.store(sums + tl.program_id(0), tl.reduce(total, 0, _add))
