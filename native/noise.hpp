// From random words to the isotropic part of a step: normal, Student-t and Rademacher entries in float32.
//
// Branch-free loops over 16 lanes, which the compiler vectorises. The polynomials are near-minimax fits made for these
// ranges; errors stay below 2e-7 relative, i.e. float32 rounding. Must agree with randomness.py.
#pragma once

#include "normals.hpp"

namespace mmes::MMES_LEVEL {

// N.B. contraction is off in the build: a fused multiply-add happens exactly where this is written. Where the processor
// has no such instruction the C library computes it, slowly, so that every processor gives the same bits.
static inline float fused(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}

static inline double fused(double a, double b, double c) {
    return __builtin_fma(a, b, c);
}

// A uniform number in (0, 1]: the word plus one half, rounded to float32, over 2^32.
static inline float unit_uniform(std::uint32_t word) { return (static_cast<float>(word) + 0.5f) * 0x1p-32f; }

// -ln(u) for u in [2^-33, 1].
static inline float minus_log(float u) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, u) + (0x3F800000u - 0x3F3504F3u);
    const float exponent = static_cast<float>(static_cast<std::int32_t>(bits >> 23) - 127);
    const float f = __builtin_bit_cast(float, (bits & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;  // in [sqrt 1/2, sqrt 2) - 1
    const float square = f * f;
    float p = 0.06746601313352585f;
    p = fused(p, f, -0.11675640940666199f);
    p = fused(p, f, 0.11888174712657928f);
    p = fused(p, f, -0.12405591458082199f);
    p = fused(p, f, 0.14219550788402557f);
    p = fused(p, f, -0.1666799634695053f);
    p = fused(p, f, 0.2000211924314499f);
    p = fused(p, f, -0.25000008940696716f);
    p = fused(p, f, 0.3333331346511841f);
    p = fused(p * f, square, -0.5f * square);  // ln(1 + f) - f
    // ln 2 in two parts, so that the product with the exponent is exact in the leading one.
    p = fused(exponent, -2.12194440e-4f, p);
    return -fused(exponent, 0.693359375f, p + f);
}

// e^x - 1 for x in [0, 12].
static inline float exponential_minus_one(float x) {
    const float k = static_cast<float>(static_cast<std::int32_t>(fused(x, 1.4426950408889634f, 0.5f)));
    const float r = fused(k, 2.12194440e-4f, fused(k, -0.693359375f, x));
    float p = 0.0013948580017313361f;
    p = fused(p, r, 0.008369150571525097f);
    p = fused(p, r, 0.041666239500045776f);
    p = fused(p, r, 0.16666504740715027f);
    p = fused(p, r, 0.5f);
    p = fused(p, r, 1.0f);
    const float power = __builtin_bit_cast(float, (static_cast<std::int32_t>(k) + 127) << 23);
    return fused(power, p * r, power - 1.0f);
}

struct Rotation {
    float cosine, sine;
};

// Cosine and sine of the angle 2 pi word / 2^32; the quadrant is split off in integers, hence exactly.
static inline Rotation turn(std::uint32_t word) {
    const std::uint32_t quadrant = (word + 0x20000000u) >> 30;
    const float t = static_cast<float>(static_cast<std::int32_t>(word - (quadrant << 30))) * 0x1p-30f;  // [-1/2, 1/2)
    const float q = t * t;
    float s = 0.00015820673434063792f;
    s = fused(s, q, -0.004681266378611326f);
    s = fused(s, q, 0.07969257980585098f);
    s = fused(s, q, -0.6459640860557556f);
    s = fused(s, q, 1.5707963705062866f) * t;
    float c = 0.0009036316769197583f;
    c = fused(c, q, -0.02086007222533226f);
    c = fused(c, q, 0.25366920232772827f);
    c = fused(c, q, -1.2337005138397217f);
    c = fused(c, q, 1.0f);
    const bool swapped = (quadrant & 1u) != 0;
    const std::uint32_t cosine = __builtin_bit_cast(std::uint32_t, swapped ? s : c) ^ (((quadrant + 1u) & 2u) << 30);
    const std::uint32_t sine = __builtin_bit_cast(std::uint32_t, swapped ? c : s) ^ ((quadrant & 2u) << 30);
    return {__builtin_bit_cast(float, cosine), __builtin_bit_cast(float, sine)};
}

// Box-Muller: words 0 and 1 of a block give two normals, words 2 and 3 another two.
static inline void normals_from_words(float* out, const std::uint32_t* words, std::size_t count) {
    for (std::size_t start = 0; start < count; start += 2 * kLanes) {
        const std::uint32_t* w = words + start;
        float* z = out + start;
        for (std::size_t i = 0; i < kLanes; ++i) {
            const float radius = __builtin_sqrtf(2.0f * minus_log(unit_uniform(w[i])));
            const Rotation at = turn(w[kLanes + i]);
            z[i] = radius * at.cosine;
            z[kLanes + i] = radius * at.sine;
        }
    }
}

// Student-t with 5 degrees of freedom scaled to unit variance, by the polar form of Bailey (1994): one variate takes a
// radius word and an angle word, since the sine of the same pair would not be independent of the cosine.
static inline void student_from_words(float* out, const std::uint32_t* radii, const std::uint32_t* angles,
                                      std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
        out[i] = __builtin_sqrtf(3.0f * exponential_minus_one(0.4f * minus_log(unit_uniform(radii[i])))) *
                 turn(angles[i]).cosine;
}

static inline void signs_from_words(float* out, const std::uint32_t* words, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
        out[i] = __builtin_bit_cast(float, 0x3F800000u | (words[i] & 0x80000000u));
}

// The noise of one draw, a block of coordinates at a time.
class NoiseStream {
  public:
    NoiseStream(Noise noise, Address at) : noise_(noise), main_(at) {
        if (noise == Noise::student) angles_ = Philox({at.seed, kIsotropicAngle, at.generation, at.candidate});
    }

    // Fills z, aligned to 64 bytes, with the coordinates begin .. begin + kBlock - 1; `begin` is a multiple of kBlock.
    MMES_INLINE_MEMBER void block(float* z, std::size_t begin) const {
#pragma GCC unroll 2
        for (std::size_t i = 0; i < kBlock; i += kAtOnce) some(z + i, begin + i);
    }

    // The same for kAtOnce coordinates.
    MMES_INLINE_MEMBER void some(float* z, std::size_t begin) const {
#if defined(__AVX2__)
        if (noise_ == Noise::normal) return normal_chunks(z, begin / kChunk, main_);
#endif
        others(z, begin);
    }

  private:
    __attribute__((noinline)) void others(float* z, std::size_t begin) const {
        alignas(64) std::uint32_t words[kAtOnce], angles[kAtOnce];
        philox_chunks(words, begin / kChunk, main_);
        if (noise_ == Noise::normal) {
            normals_from_words(z, words, kAtOnce);
        } else if (noise_ == Noise::rademacher) {
            signs_from_words(z, words, kAtOnce);
        } else {
            philox_chunks(angles, begin / kChunk, angles_);
            student_from_words(z, words, angles, kAtOnce);
        }
    }

    Noise noise_;
    Philox main_, angles_;
};

// Fills z, aligned and with room for a multiple of kBlock, with the noise of the coordinates from `begin` on.
static inline void fill_noise(float* z, std::size_t begin, std::size_t count, Noise noise, Address at) {
    const NoiseStream stream(noise, at);
    for (std::size_t i = 0; i < count; i += kBlock) stream.block(z + i, begin + i);
}

// Where the isotropic part of a draw lives.
static inline Address isotropic_address(const NoiseArguments& a, std::size_t draw) {
    return {a.seed, kIsotropic, a.generation, static_cast<std::uint32_t>(draw)};
}

}  // namespace mmes::MMES_LEVEL
