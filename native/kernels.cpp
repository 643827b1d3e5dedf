// The kernels, compiled once for every SIMD level into the namespace MMES_LEVEL.
//
// N.B. no standard library header with inline functions belongs here: the linker may keep the AVX-512 copy of such a
// function for all levels.
#include "kernels.hpp"

#include "sample.hpp"

namespace mmes::MMES_LEVEL {
namespace {

void words(std::uint32_t* out, std::size_t count, Address at) {
    const Philox stream(at);
    alignas(64) std::uint32_t some[kAtOnce];
    for (std::size_t begin = 0; begin < count; begin += kAtOnce) {
        philox_chunks(some, begin / kChunk, stream);
        for (std::size_t i = 0; i < kAtOnce && begin + i < count; ++i) out[begin + i] = some[i];
    }
}

// Uniform in (0, 1): a word u stands for (u + 1/2) 2^-32.
void uniforms(double* out, std::size_t count, Address at) {
    const Philox stream(at);
    alignas(64) std::uint32_t some[kAtOnce];
    for (std::size_t begin = 0; begin < count; begin += kAtOnce) {
        philox_chunks(some, begin / kChunk, stream);
        for (std::size_t i = 0; i < kAtOnce && begin + i < count; ++i)
            out[begin + i] = (static_cast<double>(some[i]) + 0.5) * 0x1p-32;
    }
}

void normals(float* out, std::size_t count, Address at) {
    const NoiseStream stream(Noise::normal, at);
    alignas(64) float some[kAtOnce];
    for (std::size_t begin = 0; begin < count; begin += kAtOnce) {
        stream.some(some, begin);
        for (std::size_t i = 0; i < kAtOnce && begin + i < count; ++i) out[begin + i] = some[i];
    }
}

// Words 0 and 1 of the first `used` blocks of the draws 0, 1, .. in turn, some at a time.
class FirstWords {
  public:
    static constexpr std::size_t kSome = 2 * kWidth;  // under way at a time: each waits for its multiplications
    std::uint32_t zero[kSome], one[kSome];

    FirstWords(Address at, std::size_t used) : at_(at), used_(used) {}

    void next() {
        constexpr std::size_t lanes = kWidth / 2, registers = kSome / lanes;
        alignas(64) std::uint64_t blocks[kSome], candidates[kSome];
        for (std::size_t j = 0; j < kSome; ++j) {
            blocks[j] = block_, candidates[j] = at_.candidate;
            if (++block_ == used_) block_ = 0, ++at_.candidate;
        }
        auto *c0 = reinterpret_cast<Longs*>(blocks), *c1 = reinterpret_cast<Longs*>(candidates);
        Longs c2[registers], c3[registers];
        for (std::size_t g = 0; g < registers; ++g) c2[g] = Longs{} + at_.generation, c3[g] = Longs{} + at_.stream;
        std::uint32_t k0 = static_cast<std::uint32_t>(at_.seed), k1 = static_cast<std::uint32_t>(at_.seed >> 32);
        for (int round = 0; round < kRounds; ++round, k0 += kWeyl0, k1 += kWeyl1) {
#pragma GCC unroll 4
            for (std::size_t g = 0; g < registers; ++g) {
                const Longs p0 = product(c0[g], Longs{} + kMultiplier0), p1 = product(c2[g], Longs{} + kMultiplier1);
                c0[g] = xor3(p1 >> 32, c1[g], Longs{} + k0), c1[g] = p1;
                c2[g] = xor3(p0 >> 32, c3[g], Longs{} + k1), c3[g] = p0;
            }
        }
        for (std::size_t j = 0; j < kSome; ++j) {
            zero[j] = static_cast<std::uint32_t>(blocks[j]), one[j] = static_cast<std::uint32_t>(candidates[j]);
        }
    }

  private:
    Address at_;
    std::size_t used_, block_ = 0;
};

// Calls use(words, first, count) for all parts of the first `used` words of each draw.
template <class Use>
void each_first(std::size_t used, std::size_t draws, Address at, Use use) {
    FirstWords words(at, used);
    for (std::size_t first = 0; first < used * draws; first += FirstWords::kSome) {
        words.next();
        const std::size_t left = used * draws - first;
        use(words, first, left < FirstWords::kSome ? left : FirstWords::kSome);
    }
}

void first_words(std::uint32_t* out, std::size_t used, std::size_t draws, Address at) {
    each_first(used, draws, at, [out](const FirstWords& words, std::size_t first, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) out[first + i] = words.zero[i];
    });
}

void first_normals(float* out, std::size_t used, std::size_t draws, Address at) {
    each_first(used, draws, at, [out](const FirstWords& words, std::size_t first, std::size_t count) {
        float some[FirstWords::kSome];
        for (std::size_t i = 0; i < FirstWords::kSome; ++i)
            some[i] = __builtin_sqrtf(2.0f * minus_log(unit_uniform(words.zero[i]))) * turn(words.one[i]).cosine;
        for (std::size_t i = 0; i < count; ++i) out[first + i] = some[i];
    });
}

// sum += sum_k weights_k (x_k - mean) over `parents` parents, in their order: one pass for all of them.
// N.B. steps from the mean, not points: the weights sum to 1 only up to rounding, which would swamp the path once sigma is
// small against the mean.
template <int parents>
void add_steps(double* __restrict sum, const RecombineArguments& a, std::size_t first, std::size_t begin,
               std::size_t count) {
    const double* __restrict mean = a.mean + begin;
    const double* x[parents];
    double weight[parents];
    for (int k = 0; k < parents; ++k) {
        x[k] = a.population + static_cast<std::size_t>(a.parents[first + static_cast<std::size_t>(k)]) * a.stride + begin;
        weight[k] = a.weights[first + static_cast<std::size_t>(k)];
    }
    for (std::size_t i = 0; i < count; ++i) {
        double total = sum[i];
#pragma GCC unroll 4
        for (int k = 0; k < parents; ++k) total = fused(weight[k], x[k][i] - mean[i], total);
        sum[i] = total;
    }
}

void recombine(const RecombineArguments& a, std::size_t begin, std::size_t end) {
    constexpr std::size_t kStretch = 4 * kTile;  // longer ones, since the parents come from memory
    alignas(64) double step[kStretch];
    for (; begin < end; begin += kStretch) {
        const std::size_t count = end - begin < kStretch ? end - begin : kStretch;
        for (std::size_t i = 0; i < count; ++i) step[i] = 0.0;
        std::size_t k = 0;
        for (; k + 4 <= a.mu; k += 4) add_steps<4>(step, a, k, begin, count);
        for (; k < a.mu; ++k) add_steps<1>(step, a, k, begin, count);
        double* __restrict mean = a.mean + begin;
        double* __restrict path = a.path + begin;
        const double decay = a.decay, gain = a.gain;
        for (std::size_t i = 0; i < count; ++i) {
            path[i] = fused(gain, step[i], decay * path[i]);
            mean[i] += step[i];
        }
        if (a.archive_row != nullptr) {
            float* __restrict row = a.archive_row + begin;
            for (std::size_t i = 0; i < count; ++i) row[i] = static_cast<float>(path[i]);
        }
    }
}

void sample_and_recombine(const SampleArguments& sampled, const RecombineArguments& step, double* memory,
                          std::size_t width, std::size_t begin, std::size_t end) {
    SampleArguments some = sampled;
    RecombineArguments of_these = step;
    some.stride = of_these.stride = width;
    for (; begin < end; begin += width) {
        some.population = memory - begin;
        of_these.population = some.population;
        const std::size_t stop = end - begin < width ? end : begin + width;
        sample(some, begin, stop);
        recombine(of_these, begin, stop);
    }
}

// sum += sum_k weights_k z_k^2 over `draws` draws, in their order.
template <int draws>
void add_squares(double* __restrict sum, const float* const* z, const double* weights, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        double total = sum[i];
#pragma GCC unroll 4
        for (int k = 0; k < draws; ++k) {
            const double entry = static_cast<double>(z[k][i]);
            total = fused(weights[k], entry * entry, total);
        }
        sum[i] = total;
    }
}

// Eight sums side by side, so that the order of adding is that of the lanes; beyond the last entry there are zeros.
double tile_sum(const double* tile) {
    double lane[8] = {};
    for (std::size_t i = 0; i < kTile; i += 8)
        for (std::size_t k = 0; k < 8; ++k) lane[k] += tile[i + k];
    for (std::size_t half = 4; half > 0; half /= 2)
        for (std::size_t k = 0; k < half; ++k) lane[k] += lane[half + k];
    return lane[0];
}

void scale_increments(const ScaleArguments& a, std::size_t begin, std::size_t end) {
    alignas(64) float made[4][kTile];
    alignas(64) double tile[kTile];
    for (; begin < end; begin += kTile) {
        const std::size_t count = end - begin < kTile ? end - begin : kTile;
        for (std::size_t i = 0; i < kTile; ++i) tile[i] = 0.0;
        const float* z[4];
        double weights[4];
        int held = 0;
        for (std::size_t draw = 0; draw < a.draws; ++draw) {
            if (a.weights[draw] == 0.0) continue;
            z[held] = a.kept.data != nullptr ? a.kept.row(draw) + begin : made[held];
            if (a.kept.data == nullptr)
                fill_noise(made[held], begin, count, a.noise.noise, isotropic_address(a.noise, draw));
            weights[held++] = a.weights[draw];
            if (held == 4) add_squares<4>(tile, z, weights, count), held = 0;
        }
        for (int k = 0; k < held; ++k) add_squares<1>(tile, z + k, weights + k, count);
        for (std::size_t i = 0; i < count; ++i) {
            const double increment = a.rate * tile[i];
            const double raised = increment < -a.limit ? -a.limit : increment;
            tile[i] = raised > a.limit ? a.limit : raised;
        }
        double* __restrict out = a.increments + begin;
        for (std::size_t i = 0; i < count; ++i) out[i] = tile[i];
        a.sums[begin / kTile] = tile_sum(tile);
    }
}

void learn(const LessonArguments& a, std::size_t begin, std::size_t end) {
    alignas(64) double steps[kTile];
    alignas(64) double squares[kTile];
    for (; begin < end; begin += kTile) {
        const std::size_t count = end - begin < kTile ? end - begin : kTile;
        for (std::size_t i = 0; i < kTile; ++i) steps[i] = squares[i] = 0.0;
        double* __restrict path = a.path + begin;
        double* __restrict lessons = a.lessons + begin;
        for (std::size_t i = 0; i < count; ++i) {
            const double former = path[i], x = lessons[i] - a.mean;
            // By the path before this generation: so the rate and the lesson are independent.
            const double above = former * former - a.threshold;
            const double wanted = a.factor + a.slope * (above > 0.0 ? above : 0.0);
            const double step = a.rate * (wanted < a.fastest ? wanted : a.fastest) * x;
            const double raised = step < -a.limit ? -a.limit : step;
            steps[i] = raised > a.limit ? a.limit : raised;
            const double now = former * a.decay + a.gain * x;
            const double square = now * now;
            squares[i] = square < a.threshold ? square : a.threshold;
            path[i] = now;
            lessons[i] = steps[i];
        }
        a.step_sums[begin / kTile] = tile_sum(steps);
        a.square_sums[begin / kTile] = tile_sum(squares);
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

const KernelTable table = {words,     uniforms,             normals,          first_words, first_normals, sample,
                           recombine, sample_and_recombine, scale_increments, learn,       grow,          confine};

}  // namespace mmes::MMES_LEVEL
