// Philox4x32-10 for 16 blocks at a time (Salmon, Moraes, Dror, Shaw 2011), in the namespace of the SIMD level.
#pragma once

#include "kernels.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Functions on SIMD registers must be inlined: their arguments would go through memory otherwise.
#define MMES_INLINE_MEMBER __attribute__((always_inline))
#define MMES_INLINE static inline MMES_INLINE_MEMBER

namespace mmes::MMES_LEVEL {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
constexpr int kRounds = 10;

// A SIMD register holds kWidth numbers of 32 bits. `Longs` hold one 32-bit word in the lower half of each lane: the
// widening multiply reads just that half, so the upper half may hold rubbish between the rounds.
#if defined(__AVX512F__)
constexpr int kWidth = 16;
#elif defined(__AVX2__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif
using Words = std::uint32_t __attribute__((vector_size(4 * kWidth)));
using Longs = std::uint64_t __attribute__((vector_size(4 * kWidth)));

#if defined(__AVX512F__)
MMES_INLINE Longs product(Longs a, Longs b) { return (Longs)_mm512_mul_epu32((__m512i)a, (__m512i)b); }
MMES_INLINE Longs xor3(Longs a, Longs b, Longs c) {
    return (Longs)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0x96);
}
MMES_INLINE Words interleaved(Longs even, Longs odd) {
    return (Words)_mm512_mask_blend_epi32(0xAAAA, (__m512i)even, (__m512i)(odd << 32));
}
#else
MMES_INLINE Longs xor3(Longs a, Longs b, Longs c) { return a ^ b ^ c; }
#if defined(__AVX2__)
MMES_INLINE Longs product(Longs a, Longs b) { return (Longs)_mm256_mul_epu32((__m256i)a, (__m256i)b); }
MMES_INLINE Words interleaved(Longs even, Longs odd) {
    return (Words)_mm256_blend_epi32((__m256i)even, (__m256i)(odd << 32), 0xAA);
}
#else
#if defined(__x86_64__)
MMES_INLINE Longs product(Longs a, Longs b) { return (Longs)_mm_mul_epu32((__m128i)a, (__m128i)b); }
#else
MMES_INLINE Longs product(Longs a, Longs b) { return (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu); }
#endif
MMES_INLINE Words interleaved(Longs even, Longs odd) { return (Words)((even & 0xFFFFFFFFu) | (odd << 32)); }
#endif
#endif

// The sequence of words at an address, any part of it at a time.
class Philox {
  public:
    // Blocks that are worked on at a time: each waits for its multiplications, so that several must be under way.
    static constexpr int kGroups = 2;
    static constexpr int kBlocks = kGroups * kWidth;

    Philox() = default;
    explicit Philox(Address at) {
        std::uint32_t k0 = static_cast<std::uint32_t>(at.seed), k1 = static_cast<std::uint32_t>(at.seed >> 32);
        for (int round = 0; round < kRounds; ++round, k0 += kWeyl0, k1 += kWeyl1) key0_[round] = k0, key1_[round] = k1;
        // In the first two rounds half of the work is the same for all blocks, which differ in one counter alone.
        const std::uint64_t p1 = std::uint64_t{at.generation} * kMultiplier1;
        const std::uint64_t p0 = ((p1 >> 32) ^ at.candidate ^ key0_[0]) * kMultiplier0;
        first2_ = at.stream ^ key1_[0];
        second0_ = (p1 & 0xFFFFFFFFu) ^ key0_[1];
        second2_ = (p0 >> 32) ^ key1_[1];
        second3_ = p0;
    }

    // out[g][j]: word j of the blocks first + kWidth g, first + kWidth g + 1, ...
    MMES_INLINE_MEMBER void words(Words (&out)[kGroups][4], std::uint32_t first) const {
        const Longs multiplier0 = Longs{} + kMultiplier0, multiplier1 = Longs{} + kMultiplier1;
        Longs even;
        for (int i = 0; i < kWidth / 2; ++i) even[i] = 2 * static_cast<std::uint64_t>(i);
        constexpr int registers = 2 * kGroups;  // the even and the odd blocks of each group
        Longs c0[registers], c1[registers], c2[registers], c3[registers];
#pragma GCC unroll 4
        for (int g = 0; g < registers; ++g) {
            const std::uint32_t block = first + static_cast<std::uint32_t>(kWidth * (g / 2) + g % 2);
            const Longs p0 = product(even + block, multiplier0);
            const Longs p1 = product((p0 >> 32) ^ first2_, multiplier1);
            c0[g] = (p1 >> 32) ^ second0_, c1[g] = p1;
            c2[g] = p0 ^ second2_, c3[g] = Longs{} + second3_;
        }
#pragma GCC unroll 10
        for (int round = 2; round < kRounds; ++round) {
            const Longs k0 = Longs{} + key0_[round], k1 = Longs{} + key1_[round];
#pragma GCC unroll 4
            for (int g = 0; g < registers; ++g) {
                const Longs p0 = product(c0[g], multiplier0), p1 = product(c2[g], multiplier1);
                c0[g] = xor3(p1 >> 32, c1[g], k0), c1[g] = p1;
                c2[g] = xor3(p0 >> 32, c3[g], k1), c3[g] = p0;
            }
        }
#pragma GCC unroll 2
        for (int g = 0; g < kGroups; ++g) {
            out[g][0] = interleaved(c0[2 * g], c0[2 * g + 1]);
            out[g][1] = interleaved(c1[2 * g], c1[2 * g + 1]);
            out[g][2] = interleaved(c2[2 * g], c2[2 * g + 1]);
            out[g][3] = interleaved(c3[2 * g], c3[2 * g + 1]);
        }
    }

    // Where word 0 of block `block` lies in a sequence of chunks; the words 1, 2, 3 follow at a distance of kLanes.
    static constexpr std::size_t place(std::size_t block) { return block / kLanes * kChunk + block % kLanes; }

  private:
    std::uint64_t key0_[kRounds], key1_[kRounds];
    std::uint64_t first2_, second0_, second2_, second3_;
};

// Words that are made at a time, at least: whole chunks.
constexpr std::size_t kAtOnce = 4 * Philox::kBlocks < kChunk ? kChunk : 4 * Philox::kBlocks;
static_assert(kBlock % kAtOnce == 0);

// Writes kAtOnce words of the sequence, from the chunk `first` on, laid out as kernels.hpp says.
static inline void philox_chunks(std::uint32_t* out, std::size_t first, const Philox& stream) {
    for (std::size_t block = 0; block < kAtOnce / 4; block += Philox::kBlocks) {
        Words words[Philox::kGroups][4];
        stream.words(words, static_cast<std::uint32_t>(first * kLanes + block));
        for (std::size_t g = 0; g < Philox::kGroups; ++g)
            for (std::size_t j = 0; j < 4; ++j)
                *reinterpret_cast<Words*>(out + Philox::place(block + g * kWidth) + j * kLanes) = words[g][j];
    }
}

}  // namespace mmes::MMES_LEVEL
