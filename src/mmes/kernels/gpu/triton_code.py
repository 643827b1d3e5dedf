"""The Triton kernels: one pass over memory each, random numbers made in registers.

A program works on `BLOCKS` neighbouring Philox blocks, each of which gives the four entries that
lie 16 coordinates apart (see `mmes.base.randomness`). Numbers that change from call to call come in
`numbers`, float64 bits in int64, so that no value makes Triton compile anew.
"""
# pyright: reportMissingImports=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportCallIssue=false, reportOptionalMemberAccess=false
# pyright: reportPossiblyUnboundVariable=false

import triton
import triton.language as tl

from mmes.base.randomness import Stream
from mmes.kernels.gpu.triton_random import noise, normal_pair, philox, real

# Places in `numbers`, after those of the random numbers' address.
_FIRST, _SECOND, _THIRD = (tl.constexpr(k) for k in (3, 4, 5))
HEAD = 7
_WORD = tl.constexpr(6)
_HEAD = tl.constexpr(HEAD)
_MIXTURE_INDEX = tl.constexpr(int(Stream.MIXTURE_INDEX))
_MIXTURE_FACTOR = tl.constexpr(int(Stream.MIXTURE_FACTOR))
_CLIP, _REFLECT, _SMOOTH = tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)


@triton.jit
def _fold(x, lower, upper):
    """See `mmes.spaces.boxes.reflect.fold`."""
    period = 2.0 * (upper - lower)
    two_sided = (period > 0) & (period < float("inf"))
    span = tl.where(two_sided, period, 1.0)
    start = tl.where(two_sided, lower, 0.0)
    t = (x - start) % span  # with the sign of x - start, as in C
    t = tl.where(t < 0, t + span, t)
    between = start + tl.where(2.0 * t <= span, t, span - t)
    once = tl.where(x < lower, 2.0 * lower - x, tl.where(x > upper, 2.0 * upper - x, x))
    return tl.where(two_sided, between, tl.where(period == 0, lower, once))


@triton.jit
def boxed(x, box, at, inside, n, BOX: tl.constexpr):
    """Return the points of the box that stand for x, float64, at these coordinates.

    `box` holds rows of length n: lower, upper, knee, and the outermost candidates.
    """
    width = at * 0 + n  # as wide as a coordinate's place; n = 1 is a constant for Triton
    lowest = tl.load(box + 3 * width + at, mask=inside)
    highest = tl.load(box + 4 * width + at, mask=inside)
    if BOX != _CLIP:
        lower = tl.load(box + at, mask=inside)
        upper = tl.load(box + width + at, mask=inside)
        if BOX == _REFLECT:
            x = tl.where((x >= lower) & (x <= upper), x, _fold(x, lower, upper))
        else:
            a = tl.load(box + 2 * width + at, mask=inside)
            y = _fold(x, lower - a, upper + a)
            quarter = tl.where(a > 0, 0.25 / tl.where(a > 0, a, 1.0), 0.0)
            from_lower = y - (lower - a)
            from_upper = (upper + a) - y
            x = tl.where(from_lower < 2.0 * a, lower + quarter * from_lower * from_lower, y)
            x = tl.where(from_upper < 2.0 * a, upper - quarter * from_upper * from_upper, x)
    return tl.minimum(tl.maximum(x, lowest), highest)


@triton.jit
def drawn_rows(
    rows,
    factors,
    numbers,
    cumulative,
    m,
    count,
    used,
    STEPS: tl.constexpr,
    SIZE: tl.constexpr,
):
    """Draw the directions of every draw, by age from a cumulative law, and their factors.

    The occupied rows follow in `numbers`, from the oldest to the newest. An empty slot is the first
    row with weight 0.
    """
    stored = tl.load(numbers + _WORD)
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    draw, item = at // used, at % used
    block = item // 64 * 16 + item % 16
    word = item // 16 % 4
    w0, w1, w2, w3 = philox(numbers, block, draw, _MIXTURE_INDEX)
    chosen = tl.where(word < 2, tl.where(word == 0, w0, w1), tl.where(word == 2, w2, w3))
    u = (chosen.to(tl.float64) + 0.5) * 2.3283064365386963e-10
    # How many entries of the table are at most u.
    low = at * 0
    high = low + m
    for _ in range(STEPS):
        middle = (low + high) // 2
        going = low < high
        entry = tl.load(cumulative + middle, mask=going, other=2.0)
        right = going & (entry <= u)
        low = tl.where(right, middle + 1, low)
        high = tl.where(going & (entry > u), middle, high)
    age = tl.minimum(low, m - 1)
    there = (at < count) & (age < stored)
    row = tl.load(numbers + _HEAD + (stored - 1 - age), mask=there, other=-1)
    f0, f1, f2, f3 = philox(numbers, block, draw, _MIXTURE_FACTOR)
    radius_word = tl.where(word < 2, f0, f2)
    angle_word = tl.where(word < 2, f1, f3)
    cosine, sine = normal_pair(radius_word, angle_word)
    normal = tl.where(word % 2 == 0, cosine, sine)
    tl.store(rows + at, tl.maximum(row, 0), mask=at < count)
    factor = real(numbers, _THIRD).to(tl.float32)
    tl.store(factors + at, tl.where(row >= 0, normal * factor, 0.0), mask=at < count)


@triton.jit
def _direction(directions, rows, factors, place, n):
    """Return the begin of a row and its weight."""
    return directions + tl.load(rows + place) * n, tl.load(factors + place)


@triton.jit
def _mixed(z, direction, weight, at, inside):
    entries = tl.load(direction + at, mask=inside)
    return tl.fma(weight, entries.to(tl.float32), z)


@triton.jit
def places_of(block, n):
    """Return the four coordinates of each block, and which of them there are."""
    at0 = block // 16 * 64 + block % 16
    at1, at2, at3 = at0 + 16, at0 + 32, at0 + 48
    return at0, at1, at2, at3, at0 < n, at1 < n, at2 < n, at3 < n


@triton.jit
def four(vector, at0, at1, at2, at3, in0, in1, in2, in3, KIND: tl.constexpr):
    """Return the entries of a vector at four times as many coordinates, in this precision."""
    x0 = tl.load(vector + at0, mask=in0).to(KIND)
    x1 = tl.load(vector + at1, mask=in1).to(KIND)
    x2 = tl.load(vector + at2, mask=in2).to(KIND)
    x3 = tl.load(vector + at3, mask=in3).to(KIND)
    return x0, x1, x2, x3


@triton.jit
def counters(block, entries):
    """Return the blocks, in the layout in which these entries of theirs were loaded.

    Otherwise Triton computes the random numbers with one block per thread and passes them from
    thread to thread for the rest. The shifts leave nothing of the entries, but Triton does not know
    that when it chooses layouts; the compiler behind it does.
    """
    if entries.dtype == tl.float64:
        nothing = entries.to(tl.uint64, bitcast=True) >> 32 >> 32
    else:
        nothing = entries.to(tl.uint32, bitcast=True) >> 16 >> 16
    return block.to(tl.uint32) | nothing.to(tl.uint32)


@triton.jit
def step_of(
    numbers,
    block,
    counter,
    draw,
    isotropic,
    d0,
    d1,
    d2,
    d3,
    directions,
    rows,
    factors,
    used,
    n,
    NOISE: tl.constexpr,
    SCALED: tl.constexpr,
    USED: tl.constexpr,
):
    """Return the four entries of the step z of a draw that each block gives.

    `counter` are the blocks as `counters` returns them; `rows` and `factors` have a line for every
    draw; d0 .. d3 are the scales of the coordinates. SCALED is 0 without scales, 1 where they
    multiply z_0, 2 for the step. USED is the number of rows per draw, or -1 where it is too large
    to be unrolled.
    """
    at0, at1, at2, at3, in0, in1, in2, in3 = places_of(block, n)
    z0, z1, z2, z3 = noise(numbers, counter, draw, NOISE)
    z0, z1, z2, z3 = z0 * isotropic, z1 * isotropic, z2 * isotropic, z3 * isotropic
    if SCALED == 1:
        z0, z1, z2, z3 = z0 * d0, z1 * d1, z2 * d2, z3 * d3
    if USED > 0:  # all loads under way at once
        for k in tl.static_range(USED):
            direction, weight = _direction(directions, rows, factors, draw * used + k, n)
            z0 = _mixed(z0, direction, weight, at0, in0)
            z1 = _mixed(z1, direction, weight, at1, in1)
            z2 = _mixed(z2, direction, weight, at2, in2)
            z3 = _mixed(z3, direction, weight, at3, in3)
    elif USED < 0:
        for k in range(used):
            direction, weight = _direction(directions, rows, factors, draw * used + k, n)
            z0 = _mixed(z0, direction, weight, at0, in0)
            z1 = _mixed(z1, direction, weight, at1, in1)
            z2 = _mixed(z2, direction, weight, at2, in2)
            z3 = _mixed(z3, direction, weight, at3, in3)
    if SCALED == 2:
        z0, z1, z2, z3 = z0 * d0, z1 * d1, z2 * d2, z3 * d3
    return z0, z1, z2, z3


@triton.jit
def moved(mean, sigma, z, box, at, inside, n, BOX: tl.constexpr):
    """Return the candidate mean + sigma z in the precision of the mean, or its point of the box.

    It is rounded once: the compiler shall have no choice.
    """
    x = tl.fma(sigma, z.to(mean.dtype), mean)
    if BOX != 0:
        x = boxed(x.to(tl.float64), box, at, inside, n, BOX).to(mean.dtype)
    return x


@triton.jit
def _candidate(population, row, mean, sigma, z, box, at, inside, n, BOX: tl.constexpr):
    if row >= 0:
        x = moved(mean, sigma, z, box, at, inside, n, BOX)
        tl.store(population + row * n + at, x, mask=inside)


@triton.jit
def sample(
    population,
    numbers,
    mean,
    scale,
    directions,
    rows,
    factors,
    places,
    each,
    box,
    n,
    draws,
    used,
    groups,
    per_group,
    NOISE: tl.constexpr,
    SCALED: tl.constexpr,
    USED: tl.constexpr,
    EACH: tl.constexpr,
    BOX: tl.constexpr,
    BLOCKS: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Fill a population; `places` lists draws, the rows of the candidates and of their images.

    Programs that work on the same coordinates follow each other, so that the rows they share are
    read from memory once. SCALED and USED are those of `step_of`. WIDE: in float64; without, the
    mean and the candidates are float32, and nothing is computed in more.
    """
    program = tl.program_id(0)
    block = (program // groups).to(tl.int64) * BLOCKS + tl.arange(0, BLOCKS)
    at0, at1, at2, at3, in0, in1, in2, in3 = places_of(block, n)
    KIND: tl.constexpr = tl.float64 if WIDE else tl.float32
    m0, m1, m2, m3 = four(mean, at0, at1, at2, at3, in0, in1, in2, in3, KIND)
    counter = counters(block, m0)
    d0, d1, d2, d3 = m0, m1, m2, m3  # not looked at
    if SCALED != 0:
        d0, d1, d2, d3 = four(scale, at0, at1, at2, at3, in0, in1, in2, in3, tl.float32)
    sigma = real(numbers, _FIRST).to(KIND)
    isotropic = real(numbers, _SECOND).to(tl.float32)
    first = (program % groups) * per_group
    for i in range(first, tl.minimum(first + per_group, draws)):
        draw = tl.load(places + i)
        if EACH:
            isotropic = tl.load(each + draw)
        z0, z1, z2, z3 = step_of(
            numbers, block, counter, draw, isotropic, d0, d1, d2, d3, directions, rows, factors,
            used, n, NOISE, SCALED, USED,
        )  # fmt: skip
        to = tl.load(places + draws + i)
        _candidate(population, to, m0, sigma, z0, box, at0, in0, n, BOX)
        _candidate(population, to, m1, sigma, z1, box, at1, in1, n, BOX)
        _candidate(population, to, m2, sigma, z2, box, at2, in2, n, BOX)
        _candidate(population, to, m3, sigma, z3, box, at3, in3, n, BOX)
        to = tl.load(places + 2 * draws + i)
        _candidate(population, to, m0, -sigma, z0, box, at0, in0, n, BOX)
        _candidate(population, to, m1, -sigma, z1, box, at1, in1, n, BOX)
        _candidate(population, to, m2, -sigma, z2, box, at2, in2, n, BOX)
        _candidate(population, to, m3, -sigma, z3, box, at3, in3, n, BOX)


@triton.jit
def confine(image, points, box, n, BOX: tl.constexpr, SIZE: tl.constexpr):
    """Write the points of the box that stand for the points of the search."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    row = tl.program_id(1).to(tl.int64) * n
    inside = at < n
    x = tl.load(points + row + at, mask=inside).to(tl.float64)
    tl.store(image + row + at, boxed(x, box, at, inside, n, BOX), mask=inside)
