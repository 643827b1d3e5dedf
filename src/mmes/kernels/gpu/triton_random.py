"""Random numbers of the Triton kernels, made in registers: Philox4x32-10 and the laws of z_0.

The addresses are those of `mmes.base.randomness`; the polynomials are those of `native/noise.hpp`.
Where the numbers are comes in `numbers`, and float64 bits in int64 too.
"""
# pyright: reportMissingImports=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportCallIssue=false, reportOptionalMemberAccess=false
# pyright: reportPossiblyUnboundVariable=false

import os

import torch
import triton
import triton.language as tl

from mmes.base.randomness import Stream
from mmes.kernels.protocol import Noise

_SEED_LOW, _SEED_HIGH, _GENERATION = (tl.constexpr(k) for k in range(3))
_ISOTROPIC = tl.constexpr(int(Stream.ISOTROPIC))
_ISOTROPIC_ANGLE = tl.constexpr(int(Stream.ISOTROPIC_ANGLE))
# Instructions of NVIDIA's processors by name; not in Triton's interpreter.
ASSEMBLER = tl.constexpr(torch.version.hip is None and os.environ.get("TRITON_INTERPRET") != "1")
_STUDENT, _RADEMACHER = tl.constexpr(int(Noise.STUDENT)), tl.constexpr(int(Noise.RADEMACHER))


@triton.jit
def real(numbers, place: tl.constexpr):
    """Return the real number whose bits are at this place."""
    return tl.load(numbers + place).to(tl.float64, bitcast=True)


@triton.jit
def _product(word, multiplier: tl.constexpr):
    """Return the 64 bits of a product: one wide multiplication gives both halves.

    LLVM may combine the products of neighbours to vectors and then compute each half by itself.
    """
    if ASSEMBLER:
        return tl.inline_asm_elementwise(
            "mul.wide.u32 $0, $1, $2;", "=l,r,r", [word, multiplier], tl.uint64, True, 1
        )
    return word.to(tl.uint64) * multiplier


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
        product0, product1 = _product(c0, 0xD2511F53), _product(c2, 0xCD9E8D57)
        k0 = (key0 + (r * 0x9E3779B9) % 4294967296).to(tl.uint32)
        k1 = (key1 + (r * 0xBB67AE85) % 4294967296).to(tl.uint32)
        c0 = (product1 >> 32).to(tl.uint32) ^ c1 ^ k0
        c1 = product1.to(tl.uint32)
        c2 = (product0 >> 32).to(tl.uint32) ^ c3 ^ k1
        c3 = product0.to(tl.uint32)
    return c0, c1, c2, c3


@triton.jit
def _uniform(word):
    """Return the number of (0, 1] that a word stands for, (word + 1/2) / 2^32, rounded once."""
    return tl.fma(word.to(tl.float32), 2.3283064365386963e-10, 1.1641532182693481e-10)


@triton.jit
def _minus_two_log(word):
    """Return -2 ln u of the uniform number u that a word stands for."""
    u = _uniform(word)
    if ASSEMBLER:
        # The processor's logarithm has an absolute error: near 1 by the series instead.
        t = 1.0 - u
        series = t * (t * (t * (t * 0.5 + 0.6666666865348816) + 1.0) + 2.0)
        by_table = -1.3862943611198906 * _approximate(u, "lg2.approx.ftz.f32 $0, $1;")
        return tl.where(t < 0.03125, series, by_table)
    bits = u.to(tl.int32, bitcast=True) - 0x3F3504F3
    exponent = (bits >> 23).to(tl.float32)
    f = ((bits & 0x007FFFFF) + 0x3F3504F3).to(tl.float32, bitcast=True) - 1.0
    square = f * f
    p = f * -0.1349320262670517 + 0.23351281881332397
    p = p * f - 0.23776349425315857
    p = p * f + 0.24811182916164398
    p = p * f - 0.28439101576805115
    p = p * f + 0.3333599269390106
    p = p * f - 0.4000423848628998
    p = p * f + 0.5000001788139343
    p = p * f - 0.6666662693023682
    p = (p * f + 1.0) * square
    p = exponent * 4.24388880e-4 + p
    return exponent * -1.38671875 + (p - 2.0 * f)


@triton.jit
def _approximate(x, instruction: tl.constexpr):
    """Return what an instruction of the GPU makes of float32 numbers."""
    return tl.inline_asm_elementwise(instruction, "=f,f", [x], tl.float32, True, 1)


@triton.jit
def _turn(word):
    """Return cosine and sine of the angle 2 pi word / 2^32; the quadrant is split off exactly."""
    if ASSEMBLER:
        angle = word.to(tl.int32, bitcast=True).to(tl.float32) * 1.4629180792671596e-09
        return (
            _approximate(angle, "cos.approx.ftz.f32 $0, $1;"),
            _approximate(angle, "sin.approx.ftz.f32 $0, $1;"),
        )
    # The lower 30 bits with their sign, and the quadrant in the upper two of `shifted`.
    t = (word << 2).to(tl.int32, bitcast=True).to(tl.float32) * 2.3283064365386963e-10
    shifted = word + 0x20000000
    q = t * t
    s = q * 0.00015820673434063792 - 0.004681266378611326
    s = s * q + 0.07969257980585098
    s = s * q - 0.6459640860557556
    s = (s * q + 1.5707963705062866) * t
    c = q * 0.0009036316769197583 - 0.02086007222533226
    c = c * q + 0.25366920232772827
    c = c * q - 1.2337005138397217
    c = c * q + 1.0
    swapped = (shifted & 0x40000000) != 0
    minus_cosine, minus_sine = (shifted + 0x40000000) & 0x80000000, shifted & 0x80000000
    cosine = tl.where(swapped, s, c).to(tl.uint32, bitcast=True) ^ minus_cosine
    sine = tl.where(swapped, c, s).to(tl.uint32, bitcast=True) ^ minus_sine
    return cosine.to(tl.float32, bitcast=True), sine.to(tl.float32, bitcast=True)


@triton.jit
def normal_pair(radius_word, angle_word):
    """Return two normal numbers by the method of Box and Muller."""
    radius = tl.sqrt(_minus_two_log(radius_word))
    cosine, sine = _turn(angle_word)
    return radius * cosine, radius * sine


@triton.jit
def _student(radius_word, angle_word):
    x = 0.2 * _minus_two_log(radius_word)
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
