// Box treatments: points outside are clipped, reflected, or bent onto the wall. Must agree with mmes/boxes.
//
// Written without branches, so that compilers vectorise it: where many optima lie on walls, many coordinates lie outside.
#pragma once

#include "kernels.hpp"

namespace mmes::MMES_LEVEL {

// Folds x into [lower, upper] like a ray between two mirrors; one mirror where only one bound is finite. `offset` is
// x - lower, less whole periods of 2 (upper - lower).
static inline double folded(double x, double lower, double upper, double offset) {
    const double period = 2.0 * (upper - lower);
    const double t = offset < 0.0 ? offset + period : offset;
    const double between = lower + (2.0 * t <= period ? t : period - t);
    const double once = x < lower ? 2.0 * lower - x : 2.0 * upper - x;
    const double image = period == 0.0 ? lower : period < __builtin_inf() ? between : once;
    const double raised = image < lower ? lower : image;
    const double result = raised > upper ? upper : raised;
    return x >= lower && x <= upper ? x : result;
}

// What is left of an offset after whole periods, which takes a division, is seldom needed: `far` then becomes true.
struct Near {
    std::int64_t far = 0;
    double operator()(double x, double lower, double upper) {
        const double period = 2.0 * (upper - lower), offset = x - lower;
        const double size = offset < 0.0 ? -offset : offset;
        far |= size >= period && period > 0.0 ? 1 : 0;
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
template <class Fold>
static inline double smoothed(double point, double lower, double upper, double knee, Fold& fold) {
    const double low = lower - knee, high = upper + knee;
    const double y = fold(point, low, high);
    const double from_low = y - low, from_high = high - y, both = 2.0 * knee, quarter = 0.25 / knee;
    const double bent_low = lower + quarter * (from_low * from_low);
    const double bent_high = upper - quarter * (from_high * from_high);
    const double lifted = from_low < both ? bent_low : y;
    const double x = from_high < both ? bent_high : lifted;
    const double raised = x < lower ? lower : x;
    const double image = raised > upper ? upper : raised;
    // Nearly all coordinates lie inside, where the map is the identity.
    return point >= lower + knee && point <= upper - knee ? point : image;
}

template <class Fold>
static inline void fold_points(double* image, const double* points, const BoxArguments& box, std::size_t begin,
                               std::size_t end, Fold& fold) {
    const double *lower = box.lower, *upper = box.upper, *knee = box.knee;
    Fold local = fold;
    if (box.treatment == Box::reflect)
        for (std::size_t i = begin; i < end; ++i) image[i] = local(points[i], lower[i], upper[i]);
    else
        for (std::size_t i = begin; i < end; ++i) image[i] = smoothed(points[i], lower[i], upper[i], knee[i], local);
    fold = local;
}

// image <- the points of the box that stand for `points`; both may be the same memory.
static inline void confine(double* image, const double* points, const BoxArguments& box, std::size_t begin,
                           std::size_t end) {
    if (box.treatment == Box::clip) {
        for (std::size_t i = begin; i < end; ++i) {
            const double raised = points[i] < box.lower[i] ? box.lower[i] : points[i];
            image[i] = raised > box.upper[i] ? box.upper[i] : raised;
        }
        return;
    }
    for (; begin < end; begin += kBlock) {
        const std::size_t stop = end - begin < kBlock ? end : begin + kBlock;
        alignas(64) double given[kBlock];  // in case that `image` is the same memory
        for (std::size_t i = begin; i < stop; ++i) given[i - begin] = points[i];
        Near near;
        fold_points(image, given - begin, box, begin, stop, near);
        Anywhere anywhere;
        if (near.far != 0) fold_points(image, given - begin, box, begin, stop, anywhere);
    }
}

}  // namespace mmes::MMES_LEVEL
