"""The Triton kernels that rank values and move mean and path; see `triton_code`."""
# pyright: reportMissingImports=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportCallIssue=false, reportOptionalMemberAccess=false
# pyright: reportPossiblyUnboundVariable=false, reportAssignmentType=false

import triton
import triton.language as tl

from mmes.kernels.gpu.triton_code import HEAD, counters, four, moved, places_of, step_of
from mmes.kernels.gpu.triton_random import real

_FIRST, _SECOND = tl.constexpr(3), tl.constexpr(4)
_WORD, _HEAD = tl.constexpr(6), tl.constexpr(HEAD)


@triton.jit
def rank(
    order,
    best,
    told,
    numbers,
    values,
    sent,
    count,
    words,
    SIZE: tl.constexpr,
    WORDS: tl.constexpr,
):
    """Write the order of values, the best of them, and all of them to the host's memory.

    Ties go by index. Failed candidates, +inf and then NaN, stand behind the first half, as in
    `sidelined`: the worst are those that are known to be bad. What the host has sent for the next
    kernel is taken along: copies of their own would keep the GPU waiting.
    """
    i = tl.arange(0, SIZE)
    there = i < count
    v = tl.load(values + i, mask=there, other=0.0)
    tl.store(told + i, v, mask=there)
    k = tl.arange(0, WORDS)
    tl.store(numbers + k, tl.load(sent + k, mask=k < words), mask=k < words)
    before, failed = i * 0, i * 0
    for j in range(count):
        w = tl.load(values + j + i * 0)
        failed += ((w == float("inf")) | (w != w)).to(tl.int32)
        less = (w < v) | ((w == w) & (v != v))
        same = (w == v) | ((w != w) & (v != v))
        before += (less | (same & (j < i))).to(tl.int32)
    seen = count - failed
    parents = tl.minimum(count // 2, seen)
    behind = tl.where(before < seen, before + failed, before - seen + parents)
    tl.store(order + tl.where(before < parents, before, behind), i.to(tl.int64), mask=there)
    tl.store(best + i * 0, v, mask=there & (before == 0))


@triton.jit
def _to_bfloat16(x):
    """Round to the nearest, written out: Triton's interpreter cuts the last bits off."""
    bits = x.to(tl.uint32, bitcast=True)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.to(tl.float32, bitcast=True).to(tl.bfloat16)


@triton.jit
def _written(mean, path, numbers, m, step, at, inside, ARCHIVED: tl.constexpr):
    """Write mean, path and the row of the archive at these coordinates."""
    decay, gain = real(numbers, _FIRST).to(m.dtype), real(numbers, _SECOND).to(m.dtype)
    former = tl.load(path + at, mask=inside).to(m.dtype)
    path_now = tl.fma(gain, step, former * decay)
    tl.store(path + at, path_now, mask=inside)
    tl.store(mean + at, m + step, mask=inside)
    if ARCHIVED != 0:
        short = path_now.to(tl.float32)
        if ARCHIVED == 2:
            archive_row = tl.load(numbers + _WORD).to(tl.pointer_type(tl.bfloat16))
            tl.store(archive_row + at, _to_bfloat16(short), mask=inside)
        else:
            archive_row = tl.load(numbers + _WORD).to(tl.pointer_type(tl.float32))
            tl.store(archive_row + at, short, mask=inside)


@triton.jit
def recombine(
    population,
    numbers,
    mean,
    path,
    best,
    order,
    count,
    n,
    ARCHIVED: tl.constexpr,
    RANKED: tl.constexpr,
    TOGETHER: tl.constexpr,
    SIZE: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Move mean and path to the weighted parents, which follow in `numbers`: rows, then weights.

    So many parents are read together: one at a time would wait for each. The row of the archive is
    named by its address: another one each time, while all else stays where it is. ARCHIVED is its
    number of bytes per entry, 0 where there is none. WIDE is that of `sample`.

    RANKED: the parents are given by their ranks, and `best` and `order` are those of `rank`. If
    the best is not a number, nothing moves.
    """
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = at < n
    KIND: tl.constexpr = tl.float64 if WIDE else tl.float32
    centre = tl.load(mean + at, mask=inside).to(KIND)
    step = tl.full([SIZE], 0.0, KIND)
    for first in range(0, count, TOGETHER):
        for k in tl.static_range(TOGETHER):
            # Beyond the last parent, the last one with weight 0.
            place = numbers + _HEAD + tl.minimum(first + k, count - 1)
            weight = tl.load(place + count).to(tl.float64, bitcast=True)
            weight = tl.where(first + k < count, weight, 0.0).to(KIND)
            parent = tl.load(place)
            if RANKED:
                parent = tl.load(order + parent)
            x = tl.load(population + parent * n + at, mask=inside).to(KIND)
            step = tl.fma(weight, x - centre, step)
    if RANKED:
        # As wide as the coordinates: the interpreter has no logic of single numbers.
        inside = inside & (tl.load(best + at * 0) < float("inf"))
    _written(mean, path, numbers, centre, step, at, inside, ARCHIVED)


@triton.jit
def step_squares(
    out,
    population,
    numbers,
    mean,
    count,
    n,
    TOGETHER: tl.constexpr,
    SIZE: tl.constexpr,
):
    """Write sum_k weights_k (gain (x_k - mean))^2; parents and weights as in `recombine`."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = at < n
    centre = tl.load(mean + at, mask=inside).to(tl.float64)
    total = tl.full([SIZE], 0.0, tl.float64)
    for first in range(0, count, TOGETHER):
        for k in tl.static_range(TOGETHER):
            place = numbers + _HEAD + tl.minimum(first + k, count - 1)
            weight = tl.load(place + count).to(tl.float64, bitcast=True)
            weight = tl.where(first + k < count, weight, 0.0)
            x = tl.load(population + tl.load(place) * n + at, mask=inside).to(tl.float64) - centre
            total += weight * (x * x)
    gain = real(numbers, _SECOND)
    tl.store(out + at, total * (gain * gain), mask=inside)


@triton.jit
def _added(
    step, mean, weight, sigma, z, box, at, inside, n, BOX: tl.constexpr, SINGLE: tl.constexpr
):
    """Add weight times the step to a candidate, which is rounded as in a population."""
    x = moved(mean, sigma, z, box, at, inside, n, BOX)
    if SINGLE:
        x = x.to(tl.float32).to(mean.dtype)
    return tl.fma(weight, x - mean, step)


@triton.jit
def sample_and_recombine(
    mean,
    path,
    numbers,
    step_numbers,
    scale,
    directions,
    rows,
    factors,
    each,
    box,
    n,
    draws,
    used,
    count,
    NOISE: tl.constexpr,
    SCALED: tl.constexpr,
    USED: tl.constexpr,
    EACH: tl.constexpr,
    BOX: tl.constexpr,
    BLOCKS: tl.constexpr,
    WIDE: tl.constexpr,
    ARCHIVED: tl.constexpr,
    SINGLE: tl.constexpr,
):
    """Move mean and path to the weighted parents, which are made in registers one after the other.

    `numbers` are those of `sample`, `step_numbers` those of `recombine`, whose parents are
    candidates here. `rows`, `factors` and `each` have a line for every draw. The row of the archive
    that is written may be one of `directions`: a program reads its coordinates of it before.
    """
    block = tl.program_id(0).to(tl.int64) * BLOCKS + tl.arange(0, BLOCKS)
    at0, at1, at2, at3, in0, in1, in2, in3 = places_of(block, n)
    KIND: tl.constexpr = tl.float64 if WIDE else tl.float32
    m0, m1, m2, m3 = four(mean, at0, at1, at2, at3, in0, in1, in2, in3, KIND)
    counter = counters(block, m0)
    d0, d1, d2, d3 = m0, m1, m2, m3  # not looked at
    if SCALED != 0:
        d0, d1, d2, d3 = four(scale, at0, at1, at2, at3, in0, in1, in2, in3, tl.float32)
    width = real(numbers, _FIRST).to(KIND)
    isotropic = real(numbers, _SECOND).to(tl.float32)
    s0 = tl.full([BLOCKS], 0.0, KIND)
    s1, s2, s3 = s0, s0, s0
    for k in range(count):
        parent = tl.load(step_numbers + _HEAD + k)
        weight = tl.load(step_numbers + _HEAD + count + k).to(tl.float64, bitcast=True).to(KIND)
        sigma = tl.where(parent < draws, width, -width)
        draw = tl.where(parent < draws, parent, parent - draws)
        if EACH:
            isotropic = tl.load(each + draw)
        z0, z1, z2, z3 = step_of(
            numbers, block, counter, draw, isotropic, d0, d1, d2, d3, directions, rows, factors,
            used, n, NOISE, SCALED, USED,
        )  # fmt: skip
        s0 = _added(s0, m0, weight, sigma, z0, box, at0, in0, n, BOX, SINGLE)
        s1 = _added(s1, m1, weight, sigma, z1, box, at1, in1, n, BOX, SINGLE)
        s2 = _added(s2, m2, weight, sigma, z2, box, at2, in2, n, BOX, SINGLE)
        s3 = _added(s3, m3, weight, sigma, z3, box, at3, in3, n, BOX, SINGLE)
    _written(mean, path, step_numbers, m0, s0, at0, in0, ARCHIVED)
    _written(mean, path, step_numbers, m1, s1, at1, in1, ARCHIVED)
    _written(mean, path, step_numbers, m2, s2, at2, in2, ARCHIVED)
    _written(mean, path, step_numbers, m3, s3, at3, in3, ARCHIVED)
