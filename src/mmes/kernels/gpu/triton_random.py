"""Random numbers of the Triton kernels, made in registers: Philox4x32-10 and the laws of z_0.

The addresses are those of `mmes.base.randomness`; the polynomials are those of `native/noise.hpp`.
Where the numbers are comes in `numbers`, and float64 bits in int64 too.
"""
# pyright: reportMissingImports=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportCallIssue=false, reportOptionalMemberAccess=false
# pyright: reportPossiblyUnboundVariable=false

import triton
import triton.language as tl

from mmes.base.randomness import Stream
from mmes.kernels.protocol import Noise

_SEED_LOW, _SEED_HIGH, _GENERATION = (tl.constexpr(k) for k in range(3))
_ISOTROPIC = tl.constexpr(int(Stream.ISOTROPIC))
_ISOTROPIC_ANGLE = tl.constexpr(int(Stream.ISOTROPIC_ANGLE))
_STUDENT, _RADEMACHER = tl.constexpr(int(Noise.STUDENT)), tl.constexpr(int(Noise.RADEMACHER))


@triton.jit
def real(numbers, place: tl.constexpr):
    """Return the real number whose bits are at this place."""
    return tl.load(numbers + place).to(tl.float64, bitcast=True)


@triton.jit
def philox(numbers, block, draw, stream: tl.constexpr):
    """Return the four random words of each block."""
    key0 = tl.load(numbers + _SEED_LOW).to(tl.uint64)
    key1 = tl.load(numbers + _SEED_HIGH).to(tl.uint64)
    zero = block * 0
    c0 = block.to(tl.uint32)
    c1 = (zero + draw).to(tl.uint32)
    c2 = (zero + tl.load(numbers + _GENERATION)).to(tl.uint32)
    c3 = (zero + stream).to(tl.uint32)
    for r in tl.static_range(10):
        # One wide multiplication gives both halves.
        product0 = c0.to(tl.uint64) * 0xD2511F53
        product1 = c2.to(tl.uint64) * 0xCD9E8D57
        k0 = (key0 + (r * 0x9E3779B9) % 4294967296).to(tl.uint32)
        k1 = (key1 + (r * 0xBB67AE85) % 4294967296).to(tl.uint32)
        c0 = (product1 >> 32).to(tl.uint32) ^ c1 ^ k0
        c1 = product1.to(tl.uint32)
        c2 = (product0 >> 32).to(tl.uint32) ^ c3 ^ k1
        c3 = product0.to(tl.uint32)
    return c0, c1, c2, c3


@triton.jit
def _minus_log(word):
    """Return -ln u of the uniform number that a word stands for."""
    u = (word.to(tl.float32) + 0.5) * 2.3283064365386963e-10
    bits = u.to(tl.uint32, bitcast=True) + 0x4AFB0D
    exponent = ((bits >> 23).to(tl.int32) - 127).to(tl.float32)
    f = ((bits & 0x007FFFFF) + 0x3F3504F3).to(tl.float32, bitcast=True) - 1.0
    square = f * f
    p = f * 0.06746601313352585 - 0.11675640940666199
    p = p * f + 0.11888174712657928
    p = p * f - 0.12405591458082199
    p = p * f + 0.14219550788402557
    p = p * f - 0.1666799634695053
    p = p * f + 0.2000211924314499
    p = p * f - 0.25000008940696716
    p = p * f + 0.3333331346511841
    p = p * f * square - 0.5 * square
    p = exponent * -2.12194440e-4 + p
    return -(exponent * 0.693359375 + (p + f))


@triton.jit
def _turn(word):
    """Return cosine and sine of the angle 2 pi word / 2^32; the quadrant is split off exactly."""
    quadrant = (word + 0x20000000) >> 30
    t = (word - (quadrant << 30)).to(tl.int32, bitcast=True).to(tl.float32) * 9.313225746154785e-10
    q = t * t
    s = q * 0.00015820673434063792 - 0.004681266378611326
    s = s * q + 0.07969257980585098
    s = s * q - 0.6459640860557556
    s = (s * q + 1.5707963705062866) * t
    c = q * 0.0009036316769197583 - 0.02086007222533226
    c = c * q + 0.25366920232772827
    c = c * q - 1.2337005138397217
    c = c * q + 1.0
    swapped = (quadrant & 1) != 0
    cosine = tl.where(swapped, s, c).to(tl.uint32, bitcast=True) ^ (((quadrant + 1) & 2) << 30)
    sine = tl.where(swapped, c, s).to(tl.uint32, bitcast=True) ^ ((quadrant & 2) << 30)
    return cosine.to(tl.float32, bitcast=True), sine.to(tl.float32, bitcast=True)


@triton.jit
def normal_pair(radius_word, angle_word):
    """Return two normal numbers by the method of Box and Muller."""
    radius = tl.sqrt(2.0 * _minus_log(radius_word))
    cosine, sine = _turn(angle_word)
    return radius * cosine, radius * sine


@triton.jit
def _student(radius_word, angle_word):
    x = 0.4 * _minus_log(radius_word)
    k = (x * 1.4426950408889634 + 0.5).to(tl.int32)
    kf = k.to(tl.float32)
    r = kf * 2.12194440e-4 + (kf * -0.693359375 + x)
    p = r * 0.0013948580017313361 + 0.008369150571525097
    p = p * r + 0.041666239500045776
    p = p * r + 0.16666504740715027
    p = p * r + 0.5
    p = p * r + 1.0
    power = ((k + 127) << 23).to(tl.float32, bitcast=True)
    growth = power * (p * r) + (power - 1.0)
    cosine, _ = _turn(angle_word)
    return tl.sqrt(3.0 * growth) * cosine


@triton.jit
def _sign(word):
    return ((word & 0x80000000) | 0x3F800000).to(tl.float32, bitcast=True)


@triton.jit
def noise(numbers, block, draw, NOISE: tl.constexpr):
    """Return the four entries of z_0 that each block gives."""
    w0, w1, w2, w3 = philox(numbers, block, draw, _ISOTROPIC)
    if NOISE == _RADEMACHER:
        return _sign(w0), _sign(w1), _sign(w2), _sign(w3)
    if NOISE == _STUDENT:
        a0, a1, a2, a3 = philox(numbers, block, draw, _ISOTROPIC_ANGLE)
        return _student(w0, a0), _student(w1, a1), _student(w2, a2), _student(w3, a3)
    z0, z1 = normal_pair(w0, w1)
    z2, z3 = normal_pair(w2, w3)
    return z0, z1, z2, z3
