// Lanes: one vector register, which holds the same variable of several points or several variables of one point.
//
// All arithmetic runs lane by lane, and a point's numbers are added in one fixed order. So a value depends neither on
// the batch nor on which of the two layouts computed it; and the levels with fused multiply-add (AVX2, AVX-512, NEON)
// give the same bits as each other.
#pragma once

#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace mmes::problems::MMES_LEVEL {

#if defined(__AVX512F__)
constexpr int width = 8;
#elif defined(__AVX2__)
constexpr int width = 4;
#else
constexpr int width = 2;
#endif

typedef double Lanes __attribute__((vector_size(8 * width)));
typedef int64_t Bits __attribute__((vector_size(8 * width)));
typedef uint64_t UnsignedBits __attribute__((vector_size(8 * width)));

static inline Lanes broadcast(double value) { return value - Lanes{}; }

// a b + c, rounded once where the machine can
static inline Lanes fma(Lanes a, Lanes b, Lanes c) {
#if defined(__AVX512F__)
    return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
    return _mm256_fmadd_pd(a, b, c);
#elif defined(__aarch64__)
    return vfmaq_f64(c, a, b);
#else
    return a * b + c;
#endif
}

static inline Lanes square_root(Lanes x) {
#if defined(__AVX512F__)
    return _mm512_sqrt_pd(x);
#elif defined(__AVX2__)
    return _mm256_sqrt_pd(x);
#else
    for (int i = 0; i < width; ++i) x[i] = __builtin_sqrt(x[i]);
    return x;
#endif
}

// x kept within [low, high]; nan stays
static inline Lanes clamp(Lanes x, double low, double high) {
#if defined(__AVX512F__)
    return _mm512_min_pd(broadcast(high), _mm512_max_pd(broadcast(low), x));
#elif defined(__AVX2__)
    return _mm256_min_pd(broadcast(high), _mm256_max_pd(broadcast(low), x));
#else
    x = x < low ? broadcast(low) : x;
    return x > high ? broadcast(high) : x;
#endif
}

// x 2^k for an integer k between -2000 and 2000, rounded once. `shifted` is k + 1.5 * 2^52.
static inline Lanes times_power_of_two(Lanes x, [[maybe_unused]] Lanes k, [[maybe_unused]] Lanes shifted) {
#if defined(__AVX512F__)
    return _mm512_scalef_pd(x, k);
#else
    // in two steps, each by a normal number; unsigned, since nan gives any whole number
    const UnsignedBits whole = (UnsignedBits)shifted - (UnsignedBits)broadcast(0x1.8p52);
    const UnsignedBits half = ((whole + 2048) >> 1) - 1024;
    return x * (Lanes)((half + 1023) << 52) * (Lanes)((whole - half + 1023) << 52);
#endif
}

// The multiply-add on one number, to the same bits
static inline double fma(double a, double b, double c) {
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

static inline Lanes load(const double* from) {
    Lanes x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
}

static inline void store(double* to, Lanes x) { __builtin_memcpy(to, &x, sizeof x); }

static inline Lanes magnitude(Lanes x) { return (Lanes)((Bits)x & INT64_MAX); }
static inline Lanes with_sign_of(Lanes x, Lanes sign) { return (Lanes)((Bits)x | ((Bits)sign & INT64_MIN)); }

// Horner's rule for the even and the odd powers apart, which halves the wait; coefficients lowest first
template <int count>
static inline Lanes polynomial(Lanes x, const double (&c)[count]) {
    const Lanes w = x * x;
    Lanes last = broadcast(c[count - 1]), other = broadcast(c[count - 2]);
    for (int i = count - 3; i >= 0; i -= 2) last = fma(last, w, broadcast(c[i]));
    for (int i = count - 4; i >= 0; i -= 2) other = fma(other, w, broadcast(c[i]));
    return count % 2 == 0 ? fma(last, x, other) : fma(other, x, last);
}

}  // namespace mmes::problems::MMES_LEVEL
