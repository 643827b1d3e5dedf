// The kernels of one SIMD level: arrays in, arrays out; no Python, no state, no allocation.
//
// Every kernel works on a range of coordinates, so that the caller may hand disjoint ranges to threads; what is computed
// for a coordinate never depends on the range it came in.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mmes {

// Random numbers come in chunks of 64 items: 16 Philox blocks (lanes) of 4 words. Item k is word (k / 16) % 4 of block
// 16 (k / 64) + k % 16, which lets one SIMD lane work on one block. Must agree with randomness.py.
constexpr std::size_t kLanes = 16;
constexpr std::size_t kChunk = 64;
// Coordinates of one draw that are made at a time: two chunks, which SIMD registers hold between them.
constexpr std::size_t kBlock = 2 * kChunk;
// Coordinates a kernel works on at a time: small enough for the first-level cache, a multiple of kBlock.
constexpr std::size_t kTile = 1024;

enum class Noise : int { normal = 0, student = 1, rademacher = 2 };
// Must agree with mmes.spaces.boxes.BoxCode.
enum class Box : int { none = 0, clip = 1, reflect = 2, smooth = 3 };
// Must agree with mmes.base.randomness.Stream.
enum Stream : std::uint32_t { kIsotropic = 0, kIsotropicAngle = 1, kMixtureIndex = 2, kMixtureFactor = 3 };

// Where a sequence of random numbers lives in the counter space.
struct Address {
    std::uint64_t seed;
    std::uint32_t stream;
    std::uint32_t generation;
    std::uint32_t candidate;
    // The same of another candidate.
    Address of(std::size_t other) const { return {seed, stream, generation, static_cast<std::uint32_t>(other)}; }
};

// A box and what its treatment needs.
struct BoxArguments {
    Box treatment;
    const double* lower;  // (n)
    const double* upper;  // (n)
    const double* knee;   // (n), smooth alone
};

// Where the noise of a generation lives.
struct NoiseArguments {
    Noise noise;
    std::uint64_t seed;
    std::uint32_t generation;
};

// Isotropic parts that are kept from sampling to the update of the scale: one row per draw, each begins at a cache line and
// has room for whole blocks.
struct KeptNoise {
    float* data;  // null: nothing is kept
    std::size_t stride;
    float* row(std::size_t draw) const { return data + draw * stride; }
};

struct SampleArguments {
    double* population;  // (., n), written
    std::size_t n;
    std::size_t stride;                // entries from one row of the population to the next
    std::size_t draws;                 // h: independent steps
    const std::int64_t* place;         // (draws): row of the population for mean + sigma z; negative: not wanted
    const std::int64_t* mirror_place;  // (draws): row for mean - sigma z; negative: not wanted
    const double* mean;                // (n)
    double sigma;
    const double* scale;          // (n) or null: ones
    const float* directions;      // (m, n) or null
    std::size_t used;             // rows mixed into each draw
    const std::int64_t* rows;     // (draws, used): rows of `directions`; a negative one is an empty slot
    const float* factors;         // (draws, used): factor of each row
    float isotropic;              // factor of the isotropic part
    const float* isotropic_each;  // (draws) or null: one factor per draw instead
    bool scale_rows;              // whether the scale multiplies the rows too, not the isotropic part alone
    NoiseArguments noise;
    BoxArguments box;
    KeptNoise kept;    // written
    bool past_caches;  // whether the population is written past the caches, which it would not fit
};

struct RecombineArguments {
    const double* population;
    std::size_t n;
    std::size_t stride;           // entries from one row of the population to the next
    const std::int64_t* parents;  // (mu): rows of the population, best first
    const double* weights;        // (mu)
    std::size_t mu;
    double* mean;        // (n), updated
    double* path;        // (n), updated
    double decay;        // 1 - c_c
    double gain;         // sqrt(c_c (2 - c_c) mu_eff) / sigma
    float* archive_row;  // (n) or null: receives the new path
};

struct ScaleArguments {
    double* increments;     // (n), written
    double* sums;           // (tiles), written: the sum of the increments of each tile
    const double* weights;  // (draws): selection weight of each draw, mirrored pairs added up
    std::size_t draws;
    double rate;   // c_d / 2
    double limit;  // increments are clipped to +-limit
    NoiseArguments noise;
    KeptNoise kept;  // if nothing is kept, the noise is made again
};

struct LessonArguments {
    double* path;         // (n), moved by the lessons
    double* lessons;      // (n), replaced by the increments of the logarithm of the scale
    double* step_sums;    // (tiles), written: the sum of the increments of each tile
    double* square_sums;  // (tiles), written: the sum of min(path^2, threshold) of each tile
    double mean;          // of the lessons
    double rate;          // c_d / 2
    double limit;         // increments are clipped to +-limit
    double decay, gain;   // of the path
    double factor, slope, threshold, fastest;
};

struct KernelTable {
    void (*words)(std::uint32_t* out, std::size_t count, Address at);
    void (*uniforms)(double* out, std::size_t count, Address at);
    void (*normals)(float* out, std::size_t count, Address at);
    // What `words` and `normals` begin with: the first `used` items, at most kLanes, of the candidates 0 .. draws - 1.
    void (*first_words)(std::uint32_t* out, std::size_t used, std::size_t draws, Address at);
    void (*first_normals)(float* out, std::size_t used, std::size_t draws, Address at);
    void (*sample)(const SampleArguments&, std::size_t begin, std::size_t end);
    void (*recombine)(const RecombineArguments&, std::size_t begin, std::size_t end);
    // Both in one pass: the parents, rows 0 .. mu - 1 of a population that exists for some coordinates at a time, in
    // `memory` of so many entries per row, whole blocks.
    void (*sample_and_recombine)(const SampleArguments&, const RecombineArguments&, double* memory, std::size_t width,
                                 std::size_t begin, std::size_t end);
    void (*scale_increments)(const ScaleArguments&, std::size_t begin, std::size_t end);
    // Lessons become increments, each variable at its own rate, and move their path.
    void (*learn)(const LessonArguments&, std::size_t begin, std::size_t end);
    // scale_i <- scale_i exp(increments_i - mean), for abs(increments_i - mean) <= 1/2.
    void (*grow)(double* scale, const double* increments, double mean, std::size_t count);
    // image <- the points of the box that stand for `points`; both may be the same memory.
    void (*confine)(double* image, const double* points, const BoxArguments& box, std::size_t begin, std::size_t end);
};

namespace baseline {
extern const KernelTable table;
}
namespace avx2 {
extern const KernelTable table;
}
namespace avx512 {
extern const KernelTable table;
}

}  // namespace mmes
