// Philox4x32-10 for 16 blocks at a time (Salmon, Moraes, Dror, Shaw 2011), in the namespace of the SIMD level.
#pragma once

#include "kernels.hpp"

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace mmes::MMES_LEVEL {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
constexpr int kRounds = 10;

// A SIMD vector of 64-bit lanes, each holding one 32-bit word in its lower half: the widening multiply reads just that
// half, so the upper half may hold rubbish between the rounds.
#if defined(__AVX512F__)
struct Wide {
    static constexpr int lanes = 8;
    __m512i v;
    static Wide spread(std::uint32_t a) { return {_mm512_set1_epi64(a)}; }
    // The blocks first, first + 2, first + 4, ...
    static Wide every_other(std::uint32_t first) {
        return {_mm512_add_epi64(_mm512_set1_epi64(first), _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0))};
    }
    static Wide multiply(Wide a, Wide b) { return {_mm512_mul_epu32(a.v, b.v)}; }
    static Wide high(Wide a) { return {_mm512_srli_epi64(a.v, 32)}; }
    static Wide xor3(Wide a, Wide b, Wide c) { return {_mm512_ternarylogic_epi64(a.v, b.v, c.v, 0x96)}; }
    static void store_interleaved(std::uint32_t* out, Wide even, Wide odd) {
        _mm512_storeu_si512(out, _mm512_mask_blend_epi32(0xAAAA, even.v, _mm512_slli_epi64(odd.v, 32)));
    }
};
#elif defined(__AVX2__)
struct Wide {
    static constexpr int lanes = 4;
    __m256i v;
    static Wide spread(std::uint32_t a) { return {_mm256_set1_epi64x(a)}; }
    static Wide every_other(std::uint32_t first) {
        return {_mm256_add_epi64(_mm256_set1_epi64x(first), _mm256_set_epi64x(6, 4, 2, 0))};
    }
    static Wide multiply(Wide a, Wide b) { return {_mm256_mul_epu32(a.v, b.v)}; }
    static Wide high(Wide a) { return {_mm256_srli_epi64(a.v, 32)}; }
    static Wide xor3(Wide a, Wide b, Wide c) { return {_mm256_xor_si256(_mm256_xor_si256(a.v, b.v), c.v)}; }
    static void store_interleaved(std::uint32_t* out, Wide even, Wide odd) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                            _mm256_blend_epi32(even.v, _mm256_slli_epi64(odd.v, 32), 0xAA));
    }
};
#else
struct Wide {  // plain loops, which compilers turn into the widening multiply of SSE2 or NEON
    static constexpr int lanes = 8;
    std::uint64_t v[lanes];
    template <class F>
    static Wide make(F f) {
        Wide r;
        for (int i = 0; i < lanes; ++i) r.v[i] = f(i);
        return r;
    }
    static Wide spread(std::uint32_t a) {
        return make([=](int) { return std::uint64_t{a}; });
    }
    static Wide every_other(std::uint32_t first) {
        return make([=](int i) { return std::uint64_t{first + 2u * static_cast<std::uint32_t>(i)}; });
    }
    static Wide multiply(const Wide& a, const Wide& b) {
        return make([&](int i) { return (a.v[i] & 0xFFFFFFFFu) * (b.v[i] & 0xFFFFFFFFu); });
    }
    static Wide high(const Wide& a) {
        return make([&](int i) { return a.v[i] >> 32; });
    }
    static Wide xor3(const Wide& a, const Wide& b, const Wide& c) {
        return make([&](int i) { return a.v[i] ^ b.v[i] ^ c.v[i]; });
    }
    static void store_interleaved(std::uint32_t* out, const Wide& even, const Wide& odd) {
        for (int i = 0; i < lanes; ++i) {
            out[2 * i] = static_cast<std::uint32_t>(even.v[i]);
            out[2 * i + 1] = static_cast<std::uint32_t>(odd.v[i]);
        }
    }
};
#endif

// Writes the chunks [first, last) of the sequence at `at`: 64 words each, laid out as kernels.hpp says.
static inline void philox_chunks(std::uint32_t* out, std::size_t first, std::size_t last, Address at) {
    const Wide multiplier0 = Wide::spread(kMultiplier0), multiplier1 = Wide::spread(kMultiplier1);
    const Wide candidate = Wide::spread(at.candidate), generation = Wide::spread(at.generation);
    const Wide stream = Wide::spread(at.stream);
    constexpr int group = 2 * Wide::lanes;  // blocks worked on at a time: the even and the odd ones
    for (std::size_t chunk = first; chunk < last; ++chunk, out += kChunk) {
        for (int part = 0; part < static_cast<int>(kLanes); part += group) {
            const std::uint32_t block = static_cast<std::uint32_t>(kLanes * chunk) + static_cast<std::uint32_t>(part);
            Wide a0 = Wide::every_other(block), a1 = candidate, a2 = generation, a3 = stream;
            Wide b0 = Wide::every_other(block + 1), b1 = candidate, b2 = generation, b3 = stream;
            std::uint32_t key0 = static_cast<std::uint32_t>(at.seed), key1 = static_cast<std::uint32_t>(at.seed >> 32);
            for (int round = 0; round < kRounds; ++round, key0 += kWeyl0, key1 += kWeyl1) {
                const Wide k0 = Wide::spread(key0), k1 = Wide::spread(key1);
                const Wide p0 = Wide::multiply(a0, multiplier0), p1 = Wide::multiply(a2, multiplier1);
                const Wide q0 = Wide::multiply(b0, multiplier0), q1 = Wide::multiply(b2, multiplier1);
                a0 = Wide::xor3(Wide::high(p1), a1, k0), a1 = p1;
                a2 = Wide::xor3(Wide::high(p0), a3, k1), a3 = p0;
                b0 = Wide::xor3(Wide::high(q1), b1, k0), b1 = q1;
                b2 = Wide::xor3(Wide::high(q0), b3, k1), b3 = q0;
            }
            Wide::store_interleaved(out + 0 * kLanes + part, a0, b0);
            Wide::store_interleaved(out + 1 * kLanes + part, a1, b1);
            Wide::store_interleaved(out + 2 * kLanes + part, a2, b2);
            Wide::store_interleaved(out + 3 * kLanes + part, a3, b3);
        }
    }
}

}  // namespace mmes::MMES_LEVEL
