// The kernels, compiled once for every SIMD level into the namespace MMES_LEVEL.
//
// N.B. no standard library header with inline functions belongs here: the linker may keep the AVX-512 copy of such a
// function for all levels.
#include "kernels.hpp"

#include "noise.hpp"

namespace mmes::MMES_LEVEL {
namespace {

void words(std::uint32_t* out, std::size_t count, Address at) {
    alignas(64) std::uint32_t block[kBlock];
    for (std::size_t begin = 0; begin < count; begin += kBlock) {
        philox_chunks(block, begin / kChunk, (begin + kBlock) / kChunk, at);
        for (std::size_t i = 0; i < kBlock && begin + i < count; ++i) out[begin + i] = block[i];
    }
}

void normals(float* out, std::size_t count, Address at) {
    alignas(64) float block[kBlock];
    for (std::size_t begin = 0; begin < count; begin += kBlock) {
        fill_noise(block, begin, kBlock, Noise::normal, at);
        for (std::size_t i = 0; i < kBlock && begin + i < count; ++i) out[begin + i] = block[i];
    }
}

// Folds x into [lower, upper] like a ray between two mirrors; one mirror where only one bound is finite.
double reflected(double x, double lower, double upper) {
    if (x >= lower && x <= upper) return x;
    const double period = 2.0 * (upper - lower);
    if (__builtin_isfinite(period)) {
        if (period == 0.0) return lower;
        double t = __builtin_fmod(x - lower, period);
        if (t < 0.0) t += period;
        x = lower + (2.0 * t <= period ? t : period - t);
    } else {
        x = x < lower ? 2.0 * lower - x : 2.0 * upper - x;
    }
    x = x < lower ? lower : x;
    return x > upper ? upper : x;
}

// Folds y onto [lower - knee, upper + knee], then bends it onto the wall; see mmes/boxes/smooth.py.
double smoothed(double y, double lower, double upper, double knee) {
    const double low = lower - knee, high = upper + knee;
    y = reflected(y, low, high);
    const double from_low = y - low, from_high = high - y, both = 2.0 * knee;
    double x = y;
    if (from_low < both) x = lower + 0.25 / knee * (from_low * from_low);
    if (from_high < both) x = upper - 0.25 / knee * (from_high * from_high);
    x = x < lower ? lower : x;
    return x > upper ? upper : x;
}

void confine(double* image, const double* points, const BoxArguments& box, std::size_t begin, std::size_t end) {
    const double *lower = box.lower, *upper = box.upper, *knee = box.knee;
    if (box.treatment == Box::clip) {
        for (std::size_t i = begin; i < end; ++i) {
            const double raised = points[i] < lower[i] ? lower[i] : points[i];
            image[i] = raised > upper[i] ? upper[i] : raised;
        }
    } else if (box.treatment == Box::reflect) {
        for (std::size_t i = begin; i < end; ++i) image[i] = reflected(points[i], lower[i], upper[i]);
    } else if (box.treatment == Box::smooth) {
        for (std::size_t i = begin; i < end; ++i) {
            // Nearly all coordinates lie inside, where the map is the identity.
            const bool inside = points[i] >= lower[i] + knee[i] && points[i] <= upper[i] - knee[i];
            image[i] = inside ? points[i] : smoothed(points[i], lower[i], upper[i], knee[i]);
        }
    }
}

void add_rows(float* __restrict z, const SampleArguments& a, const std::int64_t* rows, const float* factors,
              std::size_t begin, std::size_t count) {
    const float* row[4];
    float factor[4];
    int held = 0;
    for (std::size_t k = 0; k < a.used; ++k) {
        if (rows[k] >= 0) {
            row[held] = a.directions + static_cast<std::size_t>(rows[k]) * a.n + begin;
            factor[held++] = factors[k];
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

constexpr bool kBoth[2] = {false, true};

void sample_tile(const SampleArguments& a, std::size_t begin, std::size_t count) {
    alignas(64) float z[kTile];
    for (std::size_t draw = 0; draw < a.draws; ++draw) {
        if (a.place[draw] < 0 && a.mirror_place[draw] < 0) continue;
        fill_noise(z, begin, count, a.noise.noise, isotropic_address(a.noise, draw));
        const float isotropic = a.isotropic_each != nullptr ? a.isotropic_each[draw] : a.isotropic;
        if (a.scale != nullptr && !a.scale_rows) {
            const double* __restrict scale = a.scale + begin;
            for (std::size_t i = 0; i < count; ++i) z[i] *= isotropic * static_cast<float>(scale[i]);
        } else if (isotropic != 1.0f) {
            for (std::size_t i = 0; i < count; ++i) z[i] *= isotropic;
        }
        if (a.used > 0) add_rows(z, a, a.rows + draw * a.used, a.factors + draw * a.used, begin, count);
        if (a.scale != nullptr && a.scale_rows) {
            const double* __restrict scale = a.scale + begin;
            for (std::size_t i = 0; i < count; ++i) z[i] *= static_cast<float>(scale[i]);
        }
        const double* __restrict mean = a.mean + begin;
        for (const bool mirrored : kBoth) {
            const std::int64_t place = mirrored ? a.mirror_place[draw] : a.place[draw];
            if (place < 0) continue;
            const double sigma = mirrored ? -a.sigma : a.sigma;
            double* __restrict x = a.population + static_cast<std::size_t>(place) * a.n + begin;
            for (std::size_t i = 0; i < count; ++i) x[i] = mean[i] + sigma * static_cast<double>(z[i]);
            if (a.box.treatment != Box::none) confine(x - begin, x - begin, a.box, begin, begin + count);
        }
    }
}

void sample(const SampleArguments& a, std::size_t begin, std::size_t end) {
    for (; begin < end; begin += kTile) sample_tile(a, begin, end - begin < kTile ? end - begin : kTile);
}

void recombine(const RecombineArguments& a, std::size_t begin, std::size_t end) {
    alignas(64) double tile[kTile];
    for (; begin < end; begin += kTile) {
        const std::size_t count = end - begin < kTile ? end - begin : kTile;
        for (std::size_t i = 0; i < count; ++i) tile[i] = 0.0;
        for (std::size_t k = 0; k < a.mu; ++k) {
            const double* __restrict x = a.population + static_cast<std::size_t>(a.parents[k]) * a.n + begin;
            const double* __restrict mean = a.mean + begin;
            const double weight = a.weights[k];
            // N.B. steps from the mean, not points: the weights sum to 1 only up to rounding, which would swamp the
            // path once sigma is small against the mean.
            for (std::size_t i = 0; i < count; ++i) tile[i] = fused(weight, x[i] - mean[i], tile[i]);
        }
        double* __restrict mean = a.mean + begin;
        double* __restrict path = a.path + begin;
        const double decay = a.decay, gain = a.gain;
        for (std::size_t i = 0; i < count; ++i) {
            path[i] = fused(gain, tile[i], decay * path[i]);
            mean[i] += tile[i];
        }
        if (a.archive_row != nullptr) {
            float* __restrict row = a.archive_row + begin;
            for (std::size_t i = 0; i < count; ++i) row[i] = static_cast<float>(path[i]);
        }
    }
}

void scale_increments(const ScaleArguments& a, std::size_t begin, std::size_t end) {
    alignas(64) float z[kTile];
    alignas(64) double tile[kTile];
    for (; begin < end; begin += kTile) {
        const std::size_t count = end - begin < kTile ? end - begin : kTile;
        for (std::size_t i = 0; i < kTile; ++i) tile[i] = 0.0;
        for (std::size_t draw = 0; draw < a.draws; ++draw) {
            const double weight = a.weights[draw];
            if (weight == 0.0) continue;
            fill_noise(z, begin, count, a.noise.noise, isotropic_address(a.noise, draw));
            for (std::size_t i = 0; i < count; ++i) {
                const double entry = static_cast<double>(z[i]);
                tile[i] = fused(weight, entry * entry, tile[i]);
            }
        }
        for (std::size_t i = 0; i < count; ++i) {
            const double increment = a.rate * tile[i];
            const double raised = increment < -a.limit ? -a.limit : increment;
            tile[i] = raised > a.limit ? a.limit : raised;
        }
        double* __restrict out = a.increments + begin;
        for (std::size_t i = 0; i < count; ++i) out[i] = tile[i];
        // Eight sums side by side, so that the order of adding is that of the lanes; beyond `count` there are zeros.
        double lane[8] = {};
        for (std::size_t i = 0; i < kTile; i += 8)
            for (std::size_t k = 0; k < 8; ++k) lane[k] += tile[i + k];
        for (std::size_t half = 4; half > 0; half /= 2)
            for (std::size_t k = 0; k < half; ++k) lane[k] += lane[half + k];
        a.sums[begin / kTile] = lane[0];
    }
}

// e^x for abs(x) <= 1/2: the Taylor polynomial of degree 14, whose rest is below the rounding.
double exponential(double x) {
    double p = 1.0 / 87178291200.0;
    p = fused(p, x, 1.0 / 6227020800.0);
    p = fused(p, x, 1.0 / 479001600.0);
    p = fused(p, x, 1.0 / 39916800.0);
    p = fused(p, x, 1.0 / 3628800.0);
    p = fused(p, x, 1.0 / 362880.0);
    p = fused(p, x, 1.0 / 40320.0);
    p = fused(p, x, 1.0 / 5040.0);
    p = fused(p, x, 1.0 / 720.0);
    p = fused(p, x, 1.0 / 120.0);
    p = fused(p, x, 1.0 / 24.0);
    p = fused(p, x, 1.0 / 6.0);
    p = fused(p, x, 0.5);
    p = fused(p, x, 1.0);
    return fused(p, x, 1.0);
}

void grow(double* __restrict scale, const double* __restrict increments, double mean, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) scale[i] *= exponential(increments[i] - mean);
}

}  // namespace

const KernelTable table = {words, normals, sample, recombine, scale_increments, grow, confine};

}  // namespace mmes::MMES_LEVEL
