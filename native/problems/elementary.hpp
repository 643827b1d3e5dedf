// Branch-free logarithm, exponential, sine and 1 - cosine on lanes, to about one unit in the last place.
// The polynomials come from coefficients.py; arguments are reduced as each comment says.
#pragma once

#include "registers.hpp"

namespace mmes::problems::MMES_LEVEL {

// Adding 1.5 * 2^52 rounds a double below 2^51 to an integer, which then stands in the low bits of the sum.
constexpr double rounder = 0x1.8p52;
constexpr double infinity = __builtin_inf();

constexpr double log_tail[] = {0.666666666666667,   0.39999999999899505, 0.28571428625975487, 0.2222221113479508,
                               0.18182889125261723, 0.15331721600556042, 0.14616449685043406};
constexpr double exp_tail[] = {0.5000000000000001,     0.16666666666666669,    0.041666666666624164,
                               0.008333333333330065,   0.0013888888917196719,  0.00019841269863040545,
                               2.4801521322368692e-05, 2.7557268480310024e-06, 2.7620075879983367e-07,
                               2.5100375832561234e-08};
constexpr double sin_tail[] = {-0.16666666666666666,   0.008333333333333316,   -0.00019841269841254974,
                               2.7557319219163234e-06, -2.5052107616996182e-08, 1.6058977312464087e-10,
                               -7.643970296798572e-13, 2.7314447669863995e-15};
constexpr double one_minus_cos[] = {19.739208802178716, -64.9393940226683,  85.45681720669327,
                                    -60.244641371802196, 26.42625677724394, -7.903536087724504,
                                    1.7143830010384546, -0.2818836870497314, 0.03533453351022262};

constexpr double ln2_high = 0x1.62e42fefa3800p-1;  // 42 bits: its product with an exponent is exact
constexpr double ln2_low = 0x1.ef35793c76730p-45;

// ln x for positive normal x; infinity and nan stay. x = 2^k m with m in [sqrt(1/2), sqrt 2), s = (m-1)/(m+1).
static inline Lanes logarithm(Lanes x) {
    const int64_t bias = 1023;
    const int64_t root_half = 0x3fe6a09e667f3bcd;
    const UnsignedBits bits = (UnsignedBits)x;
    const UnsignedBits exponent = (bits + (uint64_t)((bias << 52) - root_half)) >> 52;  // k + bias
    const Lanes k = (Lanes)(exponent | 0x4330000000000000u) - (0x1p52 + bias);
    const Lanes m = (Lanes)(bits - ((exponent - (uint64_t)bias) << 52));
    const Lanes s = (m - 1.0) / (m + 1.0);
    const Lanes w = s * s;
    const Lanes tail = fma(k, broadcast(ln2_low), s * w * polynomial(w, log_tail));
    const Lanes value = fma(k, broadcast(ln2_high), tail + 2.0 * s);
    return x < infinity ? value : x;
}

// e^x, with gradual underflow, infinity above the range and nan for nan. x = k ln 2 + r.
static inline Lanes exponential(Lanes x) {
    const Lanes clamped = clamp(x, -746.0, 710.0);
    const Lanes shifted = fma(clamped, broadcast(0x1.71547652b82fep+0), broadcast(rounder));
    const Lanes k = shifted - rounder;
    const Lanes r = fma(k, broadcast(-ln2_low), fma(k, broadcast(-ln2_high), clamped));
    const Lanes value = fma(r * r, polynomial(r, exp_tail), r) + 1.0;
    return times_power_of_two(value, k, shifted);
}

// sin x for |x| < 10^5, with absolute error; x = k pi + r
static inline Lanes sine(Lanes x) {
    const Lanes shifted = fma(x, broadcast(0x1.45f306dc9c883p-2), broadcast(rounder));
    const Lanes k = shifted - rounder;
    // pi in three parts of which the first two have exact products with k, fused or not
    Lanes r = fma(k, broadcast(-0x1.921fb54400000p+1), x);
    r = fma(k, broadcast(-0x1.0b4611a600000p-33), r);
    r = fma(k, broadcast(-0x1.3198a2e037073p-68), r);
    const Lanes w = r * r;
    const Lanes value = fma(r * w, polynomial(w, sin_tail), r);
    return (Lanes)((Bits)value ^ ((Bits)shifted << 63));  // (-1)^k
}

// 1 - cos(2 pi x) without cancellation; x = k/2 + r. From 2^50 on, where the phase of a double means nothing, 0.
static inline Lanes one_minus_cosine_of_turns(Lanes x) {
    const Lanes shifted = x + x + rounder;
    const Lanes k = shifted - rounder;
    const Lanes r = fma(k, broadcast(-0.5), x);
    const Lanes w = r * r;
    const Lanes near = w * polynomial(w, one_minus_cos);
    const Bits odd = -((Bits)shifted & 1);
    const Lanes value = odd ? 2.0 - near : near;
    return magnitude(x) > 0x1p50 ? x - x : value;
}

}  // namespace mmes::problems::MMES_LEVEL
