// Box treatments: points outside are clipped, reflected, or bent onto the wall. Must agree with mmes/boxes.
//
// Without branches, for one coordinate or a register full of them: where an optimum lies on walls, many are outside.
#pragma once

#include "philox.hpp"

namespace mmes::MMES_LEVEL {

using Doubles = double __attribute__((vector_size(4 * kWidth)));
constexpr std::size_t kDoubles = kWidth / 2;

// Numbers from memory that need not be aligned.
template <class D, class T>
MMES_INLINE D loaded(const T* from) {
    D numbers;
    __builtin_memcpy(&numbers, from, sizeof numbers);
    return numbers;
}

// Whether a comparison holds in any lane.
MMES_INLINE bool any(decltype(Doubles{} < Doubles{}) held) {
#if defined(__AVX512F__)
    return _mm512_movepi64_mask((__m512i)held) != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_pd((__m256d)held) != 0;
#else
    bool found = false;
    for (std::size_t k = 0; k < kDoubles; ++k) found |= held[k] != 0;
    return found;
#endif
}

template <class D>
MMES_INLINE D clipped(D x, D lower, D upper) {
    const D raised = x < lower ? lower : x;
    return raised > upper ? upper : raised;
}

// Folds x into [lower, upper] like a ray between two mirrors; one mirror where only one bound is finite. `offset` is
// x - lower, less whole periods of 2 (upper - lower).
template <class D>
MMES_INLINE D folded(D x, D lower, D upper, D offset) {
    const D period = 2.0 * (upper - lower);
    const D t = offset < 0.0 ? offset + period : offset;
    const D between = lower + (2.0 * t <= period ? t : period - t);
    const D once = x < lower ? 2.0 * lower - x : 2.0 * upper - x;
    const D image = period == 0.0 ? lower : (period < __builtin_inf() ? between : once);
    return (x >= lower) & (x <= upper) ? x : clipped(image, lower, upper);
}

// Folds points that lie less than a period outside. For others, where `far` is set, it takes a division.
template <class D>
struct Near {
    decltype(D{} < D{}) far{};
    MMES_INLINE_MEMBER D operator()(D x, D lower, D upper) {
        const D period = 2.0 * (upper - lower), offset = x - lower;
        far = far | (((offset >= period) | (-offset >= period)) & (period > 0.0));
        return folded(x, lower, upper, offset);
    }
};

struct Anywhere {
    double operator()(double x, double lower, double upper) const {
        const double period = 2.0 * (upper - lower);
        const bool several = period > 0.0 && __builtin_isfinite(period);
        return folded(x, lower, upper, several ? __builtin_fmod(x - lower, period) : x - lower);
    }
};

// Folds y onto [lower - knee, upper + knee], then bends it onto the wall; see mmes/boxes/smooth.py.
template <class D, class Fold>
MMES_INLINE D smoothed(D point, D lower, D upper, D knee, Fold& fold) {
    const D low = lower - knee, high = upper + knee;
    const D y = fold(point, low, high);
    const D from_low = y - low, from_high = high - y, both = 2.0 * knee, quarter = 0.25 / knee;
    const D bent_low = lower + quarter * (from_low * from_low);
    const D bent_high = upper - quarter * (from_high * from_high);
    const D lifted = from_low < both ? bent_low : y;
    const D image = clipped(from_high < both ? bent_high : lifted, lower, upper);
    return (point >= lower + knee) & (point <= upper - knee) ? point : image;  // the identity inside
}

// The image of the coordinates from i on, as many as a D holds.
template <class D, class Fold>
MMES_INLINE D image_of(const double* points, const BoxArguments& box, std::size_t i, Fold& fold) {
    const auto at = [i](const double* a) MMES_INLINE_MEMBER { return loaded<D>(a + i); };
    if (box.treatment == Box::clip) return clipped<D>(at(points), at(box.lower), at(box.upper));
    if (box.treatment == Box::reflect) return fold(at(points), at(box.lower), at(box.upper));
    return smoothed<D>(at(points), at(box.lower), at(box.upper), at(box.knee), fold);
}

// image <- the points of the box that stand for `points`; both may be the same memory.
static inline void confine(double* image, const double* points, const BoxArguments& box, std::size_t begin,
                           std::size_t end) {
    Anywhere anywhere;
    const std::size_t whole = begin + (end - begin) / kDoubles * kDoubles;
    for (std::size_t i = begin; i < whole; i += kDoubles) {
        // Nearly all coordinates lie inside, where the map is the identity.
        const Doubles point = loaded<Doubles>(points + i);
        const Doubles knee = box.treatment == Box::smooth ? loaded<Doubles>(box.knee + i) : Doubles{};
        Near<Doubles> near;
        Doubles found = point;
        if (any((point < loaded<Doubles>(box.lower + i) + knee) | (point > loaded<Doubles>(box.upper + i) - knee)))
            found = image_of<Doubles>(points, box, i, near);
        if (any(near.far))
            for (std::size_t k = i; k < i + kDoubles; ++k) image[k] = image_of<double>(points, box, k, anywhere);
        else
            __builtin_memcpy(image + i, &found, sizeof found);
    }
    for (std::size_t i = whole; i < end; ++i) image[i] = image_of<double>(points, box, i, anywhere);
}

}  // namespace mmes::MMES_LEVEL
