// Normal numbers from the counter to the entry in SIMD registers.
//
// The arithmetic is that of noise.hpp, where it can be read entry by entry. Powers of two have been moved between factors,
// which changes no bit. Every step is written for all pairs at once, because each waits for the one before.
#pragma once

#include "philox.hpp"

#if defined(__AVX2__)

namespace mmes::MMES_LEVEL {

using Floats = float __attribute__((vector_size(4 * kWidth)));
using Integers = std::int32_t __attribute__((vector_size(4 * kWidth)));

MMES_INLINE Floats all(float a) { return Floats{} + a; }
MMES_INLINE Floats floats(Integers a) { return __builtin_convertvector(a, Floats); }

#if defined(__AVX512F__)
MMES_INLINE Floats fused(Floats a, Floats b, Floats c) {
    return (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
MMES_INLINE Floats root(Floats a) { return (Floats)_mm512_sqrt_ps((__m512)a); }
// By the highest bit of each word.
MMES_INLINE Floats chosen(Words bit, Floats yes, Floats no) {
    return (Floats)_mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)bit), (__m512)no, (__m512)yes);
}
MMES_INLINE Floats floats(Words a) { return (Floats)_mm512_cvtepu32_ps((__m512i)a); }
#else
MMES_INLINE Floats fused(Floats a, Floats b, Floats c) {
    return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
MMES_INLINE Floats root(Floats a) { return (Floats)_mm256_sqrt_ps((__m256)a); }
MMES_INLINE Floats chosen(Words bit, Floats yes, Floats no) {
    return (Floats)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)bit);
}
// AVX2 converts signed numbers alone. Both halves are exact, and their sum is rounded once.
MMES_INLINE Floats floats(Words a) {
    return fused(floats((Integers)(a >> 16)), all(65536.0f), floats((Integers)(a & 0xFFFFu)));
}
#endif

constexpr int kPairs = 2 * Philox::kGroups;  // words 0 and 1 of a block, and words 2 and 3
#define MMES_EACH _Pragma("GCC unroll 4") for (int k = 0; k < kPairs; ++k)

// Box-Muller: the first words of the pairs give radii, the second ones angles.
MMES_INLINE void box_muller(Floats (&cosines)[kPairs], Floats (&sines)[kPairs], const Words (&first)[kPairs],
                            const Words (&second)[kPairs]) {
    // radius = sqrt(-2 ln u)
    Words bits[kPairs];
    Floats f[kPairs], p[kPairs], square[kPairs], exponent[kPairs], radius[kPairs];
    MMES_EACH bits[k] = (Words)fused(floats(first[k]), all(0x1p-32f), all(0x1p-33f)) + (0x3F800000u - 0x3F3504F3u);
    MMES_EACH f[k] = (Floats)((bits[k] & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
    MMES_EACH exponent[k] = floats((Integers)(bits[k] >> 23) - 127);
    MMES_EACH p[k] = fused(all(0.06746601313352585f), f[k], all(-0.11675640940666199f));
    MMES_EACH p[k] = fused(p[k], f[k], all(0.11888174712657928f));
    MMES_EACH p[k] = fused(p[k], f[k], all(-0.12405591458082199f));
    MMES_EACH p[k] = fused(p[k], f[k], all(0.14219550788402557f));
    MMES_EACH p[k] = fused(p[k], f[k], all(-0.1666799634695053f));
    MMES_EACH p[k] = fused(p[k], f[k], all(0.2000211924314499f));
    MMES_EACH p[k] = fused(p[k], f[k], all(-0.25000008940696716f));
    MMES_EACH p[k] = fused(p[k], f[k], all(0.3333331346511841f));
    MMES_EACH square[k] = f[k] * f[k];
    MMES_EACH p[k] = fused(p[k] * f[k], -2.0f * square[k], square[k]);
    MMES_EACH p[k] = fused(exponent[k], all(2.0f * 2.12194440e-4f), p[k]);
    MMES_EACH p[k] = fused(f[k], all(-2.0f), p[k]);
    MMES_EACH radius[k] = root(fused(exponent[k], all(-2.0f * 0.693359375f), p[k]));

    Words turned[kPairs];
    Floats t[kPairs], q[kPairs], s[kPairs], c[kPairs];
    MMES_EACH turned[k] = second[k] + 0x20000000u;
    MMES_EACH t[k] = floats((Integers)(second[k] - (turned[k] & 0xC0000000u))) * 0x1p-30f;
    MMES_EACH q[k] = t[k] * t[k];
    MMES_EACH s[k] = fused(all(0.00015820673434063792f), q[k], all(-0.004681266378611326f));
    MMES_EACH c[k] = fused(all(0.0009036316769197583f), q[k], all(-0.02086007222533226f));
    MMES_EACH s[k] = fused(s[k], q[k], all(0.07969257980585098f));
    MMES_EACH c[k] = fused(c[k], q[k], all(0.25366920232772827f));
    MMES_EACH s[k] = fused(s[k], q[k], all(-0.6459640860557556f));
    MMES_EACH c[k] = fused(c[k], q[k], all(-1.2337005138397217f));
    MMES_EACH s[k] = fused(s[k], q[k], all(1.5707963705062866f)) * t[k];
    MMES_EACH c[k] = fused(c[k], q[k], all(1.0f));
    MMES_EACH {
        const Words odd = turned[k] << 1;  // the quadrant is odd: sine and cosine change places
        const Words cosine = (Words)chosen(odd, s[k], c[k]) ^ ((turned[k] + 0x40000000u) & 0x80000000u);
        const Words sine = (Words)chosen(odd, c[k], s[k]) ^ (turned[k] & 0x80000000u);
        cosines[k] = radius[k] * (Floats)cosine;
        sines[k] = radius[k] * (Floats)sine;
    }
}
#undef MMES_EACH

// Writes kAtOnce normals, from the chunk `first` on; z is aligned to 64 bytes.
MMES_INLINE void normal_chunks(float* z, std::size_t first, const Philox& stream) {
    static_assert(kAtOnce == 4 * Philox::kBlocks);
    Words words[Philox::kGroups][4], radii[kPairs], angles[kPairs];
    stream.words(words, static_cast<std::uint32_t>(first * kLanes));
    for (int k = 0; k < kPairs; ++k) radii[k] = words[k / 2][k % 2 * 2], angles[k] = words[k / 2][k % 2 * 2 + 1];
    Floats cosines[kPairs], sines[kPairs];
    box_muller(cosines, sines, radii, angles);
    for (int k = 0; k < kPairs; ++k) {
        float* out = z + Philox::place(static_cast<std::size_t>(k / 2 * kWidth)) +
                     static_cast<std::size_t>(k % 2) * 2 * kLanes;
        *reinterpret_cast<Floats*>(out) = cosines[k];
        *reinterpret_cast<Floats*>(out + kLanes) = sines[k];
    }
}

}  // namespace mmes::MMES_LEVEL

#endif
