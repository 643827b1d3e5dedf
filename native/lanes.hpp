// SIMD lanes for sums of products, in the namespace of the SIMD level: the same lanes, hence the same bits, for AVX2 and
// AVX-512.
#pragma once

#include "noise.hpp"

namespace mmes::MMES_LEVEL {

// `load_rest` takes the last few entries of a vector, less than a full set of lanes, with zeros after them.
template <class Lanes, class T>
static inline Lanes padded(const T* a, std::size_t count) {
    T full[Lanes::lanes] = {};
    for (std::size_t i = 0; i < count; ++i) full[i] = a[i];
    return Lanes::load(full);
}

#if defined(__AVX512F__)
struct FloatLanes {  // sixteen float32 lanes
    static constexpr std::size_t lanes = 16;
    __m512 v = _mm512_setzero_ps();
    static FloatLanes load(const float* a) { return {_mm512_loadu_ps(a)}; }
    static FloatLanes load_rest(const float* a, std::size_t count) {
        return {_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1u), a)};
    }
    void add_product(FloatLanes a, FloatLanes b) { v = _mm512_fmadd_ps(a.v, b.v, v); }
    void store(float* out) const { _mm512_storeu_ps(out, v); }
};
struct DoubleLanes {  // eight float64 lanes, loaded from float32
    static constexpr std::size_t lanes = 8;
    __m512d v = _mm512_setzero_pd();
    static DoubleLanes load(const float* a) { return {_mm512_cvtps_pd(_mm256_loadu_ps(a))}; }
    static DoubleLanes load(const double* a) { return {_mm512_loadu_pd(a)}; }
    static DoubleLanes load_rest(const float* a, std::size_t count) {
        return {_mm512_cvtps_pd(_mm256_maskz_loadu_ps(static_cast<__mmask8>((1u << count) - 1u), a))};
    }
    static DoubleLanes load_rest(const double* a, std::size_t count) {
        return {_mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1u), a)};
    }
    void add_product(DoubleLanes a, DoubleLanes b) { v = _mm512_fmadd_pd(a.v, b.v, v); }
    void store(double* out) const { _mm512_storeu_pd(out, v); }
};
#elif defined(__AVX2__)
struct FloatLanes {
    static constexpr std::size_t lanes = 16;
    __m256 v[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    static FloatLanes load(const float* a) { return {{_mm256_loadu_ps(a), _mm256_loadu_ps(a + 8)}}; }
    static FloatLanes load_rest(const float* a, std::size_t count) { return padded<FloatLanes>(a, count); }
    void add_product(FloatLanes a, FloatLanes b) {
        for (int i = 0; i < 2; ++i) v[i] = _mm256_fmadd_ps(a.v[i], b.v[i], v[i]);
    }
    void store(float* out) const {
        for (int i = 0; i < 2; ++i) _mm256_storeu_ps(out + 8 * i, v[i]);
    }
};
struct DoubleLanes {
    static constexpr std::size_t lanes = 8;
    __m256d v[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
    static DoubleLanes load(const float* a) {
        return {{_mm256_cvtps_pd(_mm_loadu_ps(a)), _mm256_cvtps_pd(_mm_loadu_ps(a + 4))}};
    }
    static DoubleLanes load(const double* a) { return {{_mm256_loadu_pd(a), _mm256_loadu_pd(a + 4)}}; }
    template <class T>
    static DoubleLanes load_rest(const T* a, std::size_t count) {
        return padded<DoubleLanes>(a, count);
    }
    void add_product(DoubleLanes a, DoubleLanes b) {
        for (int i = 0; i < 2; ++i) v[i] = _mm256_fmadd_pd(a.v[i], b.v[i], v[i]);
    }
    void store(double* out) const {
        for (int i = 0; i < 2; ++i) _mm256_storeu_pd(out + 4 * i, v[i]);
    }
};
#else
template <class T, std::size_t width>
struct PlainLanes {  // loops of fixed length, which compilers unroll
    static constexpr std::size_t lanes = width;
    T v[width] = {};
    template <class U>
    static PlainLanes load(const U* a) {
        PlainLanes r;
        for (std::size_t i = 0; i < width; ++i) r.v[i] = static_cast<T>(a[i]);
        return r;
    }
    template <class U>
    static PlainLanes load_rest(const U* a, std::size_t count) {
        return padded<PlainLanes>(a, count);
    }
    void add_product(const PlainLanes& a, const PlainLanes& b) {
        for (std::size_t i = 0; i < width; ++i) v[i] = fused(a.v[i], b.v[i], v[i]);
    }
    void store(T* out) const {
        for (std::size_t i = 0; i < width; ++i) out[i] = v[i];
    }
};
using FloatLanes = PlainLanes<float, 16>;
using DoubleLanes = PlainLanes<double, 8>;
#endif

// The sum over the lanes, halves first.
template <class T, class Lanes>
static inline T sum_of_lanes(const Lanes& sums) {
    alignas(64) T lane[Lanes::lanes];
    sums.store(lane);
    for (std::size_t half = Lanes::lanes / 2; half > 0; half /= 2)
        for (std::size_t i = 0; i < half; ++i) lane[i] += lane[half + i];
    return lane[0];
}
static inline double total(const FloatLanes& sums) { return static_cast<double>(sum_of_lanes<float>(sums)); }
static inline double total(const DoubleLanes& sums) { return sum_of_lanes<double>(sums); }

// The scalar products of `a` with `width` vectors b in one pass, added to sums.
template <class Lanes, int width>
static inline void products(const float* a, const float* const* b, std::size_t count, double* sums) {
    Lanes held[width];
    std::size_t i = 0;
    for (; i + Lanes::lanes <= count; i += Lanes::lanes) {
        const Lanes x = Lanes::load(a + i);
        for (int k = 0; k < width; ++k) held[k].add_product(x, Lanes::load(b[k] + i));
    }
    if (i < count) {
        const Lanes x = Lanes::load_rest(a + i, count - i);
        for (int k = 0; k < width; ++k) held[k].add_product(x, Lanes::load_rest(b[k] + i, count - i));
    }
    for (int k = 0; k < width; ++k) sums[k] += total(held[k]);
}

}  // namespace mmes::MMES_LEVEL
