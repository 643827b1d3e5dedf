// Sampling: the candidates of a generation, a block of coordinates of one draw at a time.
//
// Noise, rows and scale of a block meet in the first-level cache, and its candidates are written once. Tiles of coordinates
// come outermost, so that the mean stays in the cache for all draws; the rows of the next draw are fetched meanwhile.
#pragma once

#include "box.hpp"
#include "noise.hpp"

namespace mmes::MMES_LEVEL {

// In memory, where registers' worth of numbers need not be aligned.
using LooseDoubles = double __attribute__((vector_size(4 * kWidth), aligned(8), may_alias));
using HalfFloats = float __attribute__((vector_size(2 * kWidth), aligned(4)));

template <bool past_caches>
MMES_INLINE void put(double* out, Doubles value) {
#if defined(__AVX512F__)
    if constexpr (past_caches) return _mm512_stream_pd(out, (__m512d)value);
#elif defined(__AVX2__)
    if constexpr (past_caches) return _mm256_stream_pd(out, (__m256d)value);
#elif defined(__x86_64__)
    if constexpr (past_caches) return _mm_stream_pd(out, (__m128d)value);
#endif
    *reinterpret_cast<LooseDoubles*>(out) = value;
}

static inline bool on_a_line(const double* out) { return reinterpret_cast<std::uintptr_t>(out) % 64 == 0; }

// Copies past the caches what nobody will read before it would have left them.
static inline void put_past_caches(double* out, const double* from, std::size_t count) {
    std::size_t i = 0;
    for (; i < count && !on_a_line(out + i); ++i) out[i] = from[i];
    for (; i + kDoubles <= count; i += kDoubles) put<true>(out + i, *reinterpret_cast<const LooseDoubles*>(from + i));
    for (; i < count; ++i) out[i] = from[i];
}

// Four rows of a draw, the usual number.
struct FourRows {
    const float* row[4];
    float factor[4];
};

#if defined(__AVX2__)
constexpr bool kAddsFour = true;  // whether rows are added in registers
using LooseFloats = float __attribute__((vector_size(4 * kWidth), aligned(4)));
MMES_INLINE Doubles lower_half(Floats a) {
#if defined(__AVX512F__)
    return (Doubles)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)a));
#else
    return (Doubles)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)a));
#endif
}
MMES_INLINE Doubles upper_half(Floats a) {
#if defined(__AVX512F__)
    return (Doubles)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)a, 1));
#else
    return (Doubles)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)a, 1));
#endif
}
#else
constexpr bool kAddsFour = false;
#endif

// x = mean + sigma z and, if there is a mirror image, mirror = mean - sigma z, for the few entries that fill no register;
// before that, z += sum_k factor_k row_k if there are rows. One copy for all cases: loops over so few need no speed.
static __attribute__((noinline)) void put_rest(double* x, double* mirror, const double* mean, double sigma, const float* z,
                                               const FourRows* rows, std::size_t begin, std::size_t i, std::size_t count) {
    for (; i < count; ++i) {
        float entry = z[i];
        for (int k = 0; k < 4 && rows != nullptr; ++k) entry = fused(rows->factor[k], rows->row[k][begin + i], entry);
        const double step = sigma * static_cast<double>(entry);
        x[i] = mean[i] + step;
        if (mirror != nullptr) mirror[i] = mean[i] - step;
    }
}

// x = mean + sigma z and, if `pair`, mirror = mean - sigma z; before that, z += sum_k factor_k row_k if `four`.
template <bool pair, bool past_caches, bool four>
MMES_INLINE void put_candidates(double* x, double* mirror, const double* mean, double sigma, const float* z,
                                const FourRows& rows, std::size_t begin, std::size_t count) {
    const auto put_both = [&](std::size_t i, Doubles step) MMES_INLINE_MEMBER {
        const Doubles centre = *reinterpret_cast<const LooseDoubles*>(mean + i);
        put<past_caches>(x + i, centre + step);
        if constexpr (pair) put<past_caches>(mirror + i, centre - step);
    };
    std::size_t i = 0;
#if defined(__AVX2__)
    for (; i + kWidth <= count; i += kWidth) {
        Floats step = *reinterpret_cast<const LooseFloats*>(z + i);
        if constexpr (four) {
#pragma GCC unroll 4
            for (int k = 0; k < 4; ++k)
                step = fused(all(rows.factor[k]), *reinterpret_cast<const LooseFloats*>(rows.row[k] + begin + i), step);
        }
        put_both(i, sigma * lower_half(step));
        put_both(i + kDoubles, sigma * upper_half(step));
    }
#else
    static_assert(!four);
    for (; i + kDoubles <= count; i += kDoubles)
        put_both(i, sigma * __builtin_convertvector(*reinterpret_cast<const HalfFloats*>(z + i), Doubles));
#endif
    if (i < count) put_rest(x, pair ? mirror : nullptr, mean, sigma, z, four ? &rows : nullptr, begin, i, count);
}

// Rows that will be read soon: the first few of a draw.
struct Ahead {
    const float* row[4];
    int count = 0;

    Ahead(const SampleArguments& a, std::size_t draw, std::size_t begin) {
        for (std::size_t k = 0; k < a.used && count < 4; ++k)
            if (const std::int64_t row_of = a.rows[draw * a.used + k]; row_of >= 0)
                row[count++] = a.directions + static_cast<std::size_t>(row_of) * a.n + begin;
    }
    Ahead() = default;
    void fetch_block(std::size_t i) const {
        for (int k = 0; k < count; ++k)
            for (std::size_t line = 0; line < kBlock; line += 16) __builtin_prefetch(row[k] + i + line, 0, 2);
    }
};

// One draw, where it goes, and what it is made of.
struct Draw {
    const SampleArguments& a;
    NoiseStream noise;
    float* kept;  // null: the noise is not kept
    float isotropic;
    const std::int64_t* rows;
    const float* factors;
    double* x;       // row of the population
    double* mirror;  // null: one candidate alone
    double sigma;    // negative where the mirror image is the one candidate
    bool four;       // whether it mixes just four rows, which are added when the candidates are written
    FourRows four_rows;

    Draw(const SampleArguments& arguments, std::size_t draw)
        : a(arguments), noise(a.noise.noise, isotropic_address(a.noise, draw)) {
        kept = a.kept.data != nullptr ? a.kept.row(draw) : nullptr;
        isotropic = a.isotropic_each != nullptr ? a.isotropic_each[draw] : a.isotropic;
        rows = a.rows + draw * a.used;
        factors = a.factors + draw * a.used;
        const auto row = [this](std::int64_t place) { return a.population + static_cast<std::size_t>(place) * a.stride; };
        const bool itself = a.place[draw] >= 0, image = a.mirror_place[draw] >= 0;
        x = row(itself ? a.place[draw] : a.mirror_place[draw]);
        mirror = itself && image ? row(a.mirror_place[draw]) : nullptr;
        sigma = itself ? a.sigma : -a.sigma;
        four = kAddsFour && a.used == 4 && (a.scale == nullptr || !a.scale_rows);
        for (int k = 0; k < 4 && four; ++k) {
            four = rows[k] >= 0;
            four_rows.row[k] = a.directions + static_cast<std::size_t>(four ? rows[k] : 0) * a.n;
            four_rows.factor[k] = factors[k];
        }
    }

    static bool wanted(const SampleArguments& a, std::size_t draw) {
        return a.place[draw] >= 0 || a.mirror_place[draw] >= 0;
    }
};

// z += sum_k factors_k rows_k
MMES_INLINE void add_rows(float* __restrict z, const Draw& d, std::size_t begin, std::size_t count) {
    const float* row[4];
    float factor[4];
    int held = 0;
    for (std::size_t k = 0; k < d.a.used; ++k) {
        if (d.rows[k] >= 0) {
            row[held] = d.a.directions + static_cast<std::size_t>(d.rows[k]) * d.a.n + begin;
            factor[held++] = d.factors[k];
        }
        if (held == 4) {  // four rows in one pass over z
            const float *r0 = row[0], *r1 = row[1], *r2 = row[2], *r3 = row[3];
            const float f0 = factor[0], f1 = factor[1], f2 = factor[2], f3 = factor[3];
            for (std::size_t i = 0; i < count; ++i)
                z[i] = fused(f3, r3[i], fused(f2, r2[i], fused(f1, r1[i], fused(f0, r0[i], z[i]))));
            held = 0;
        }
    }
    for (int k = 0; k < held; ++k) {
        const float* r = row[k];
        const float f = factor[k];
        for (std::size_t i = 0; i < count; ++i) z[i] = fused(f, r[i], z[i]);
    }
}

// From noise to the step: z = isotropic scale z_0 + rows, or scale (isotropic z_0 + rows).
MMES_INLINE void make_step(float* __restrict z, const Draw& d, std::size_t begin, std::size_t count) {
    const SampleArguments& a = d.a;
    const float isotropic = d.isotropic;
    if (a.scale != nullptr && !a.scale_rows) {
        const double* __restrict scale = a.scale + begin;
        for (std::size_t i = 0; i < count; ++i) z[i] *= isotropic * static_cast<float>(scale[i]);
    } else if (isotropic != 1.0f) {
        for (std::size_t i = 0; i < count; ++i) z[i] *= isotropic;
    }
    if (!d.four) add_rows(z, d, begin, count);
    if (a.scale != nullptr && a.scale_rows) {
        const double* __restrict scale = a.scale + begin;
        for (std::size_t i = 0; i < count; ++i) z[i] *= static_cast<float>(scale[i]);
    }
}

template <bool pair, bool four>
MMES_INLINE void put_step(float* z, const Draw& d, std::size_t begin, std::size_t count) {
    const SampleArguments& a = d.a;
    double *x = d.x + begin, *mirror = pair ? d.mirror + begin : nullptr;
    const double* mean = a.mean + begin;
    const bool boxed = a.box.treatment != Box::none;
    if (!a.past_caches) {
        put_candidates<pair, false, four>(x, mirror, mean, d.sigma, z, d.four_rows, begin, count);
        if (!boxed) return;
        confine(d.x, d.x, a.box, begin, begin + count);
        if (pair) confine(d.mirror, d.mirror, a.box, begin, begin + count);
    } else if (!boxed && on_a_line(x) && (!pair || on_a_line(mirror))) {
        put_candidates<pair, true, four>(x, mirror, mean, d.sigma, z, d.four_rows, begin, count);
    } else {
        alignas(64) double staged[2][kBlock];
        put_candidates<pair, false, four>(staged[0], staged[1], mean, d.sigma, z, d.four_rows, begin, count);
        for (int k = 0; k < (pair ? 2 : 1); ++k) {
            if (boxed) confine(staged[k] - begin, staged[k] - begin, a.box, begin, begin + count);
            put_past_caches(k == 0 ? x : mirror, staged[k], count);
        }
    }
}

template <bool past_caches>
static inline void keep_block(float* out, const float* z) {
    for (std::size_t i = 0; i < kBlock; i += kWidth)
        put<past_caches>(reinterpret_cast<double*>(out + i), *reinterpret_cast<const LooseDoubles*>(z + i));
}

static inline void sample_block(const Draw& d, std::size_t begin, std::size_t count) {
    alignas(64) float z[kBlock];
    d.noise.block(z, begin);
    if (d.kept != nullptr) (d.a.past_caches ? keep_block<true> : keep_block<false>)(d.kept + begin, z);
    make_step(z, d, begin, count);
    if (d.mirror != nullptr)
        d.four ? put_step<true, kAddsFour>(z, d, begin, count) : put_step<true, false>(z, d, begin, count);
    else
        d.four ? put_step<false, kAddsFour>(z, d, begin, count) : put_step<false, false>(z, d, begin, count);
}

static inline void sample_draw(const Draw& d, const Ahead& ahead, std::size_t begin, std::size_t count) {
    for (std::size_t i = 0; i < count; i += kBlock) {
        if (i + kBlock <= count) ahead.fetch_block(i);
        sample_block(d, begin + i, count - i < kBlock ? count - i : kBlock);
    }
}

static inline void sample(const SampleArguments& a, std::size_t begin, std::size_t end) {
    // An archive of so few variables lies in the second-level cache: there is nothing to be fetched.
    constexpr std::size_t kFetchedFrom = 4096;
    for (; begin < end; begin += kTile) {
        const std::size_t count = end - begin < kTile ? end - begin : kTile;
        for (std::size_t draw = 0; draw < a.draws; ++draw) {
            if (!Draw::wanted(a, draw)) continue;
            std::size_t next = draw + 1, tile = begin;
            while (next < a.draws && !Draw::wanted(a, next)) ++next;
            if (next == a.draws) next = 0, tile = begin + kTile;
            const bool whole = tile + count <= end;
            sample_draw(Draw(a, draw), a.n >= kFetchedFrom && whole ? Ahead(a, next, tile) : Ahead(), begin, count);
        }
    }
#if defined(__x86_64__)
    if (a.past_caches) _mm_sfence();
#endif
}

}  // namespace mmes::MMES_LEVEL
