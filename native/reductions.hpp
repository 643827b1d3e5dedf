// What the rival strategies need beyond sampling and recombination: scalar products and weighted sums.
//
// Like the kernels, these work on ranges of coordinates. Where a result is a sum over coordinates the caller gives each
// range its own place and adds the places up in order, so that the number of threads does not matter.
#pragma once

#include "kernels.hpp"

namespace mmes {

struct NoiseSumArguments {
    double* sum;            // (n), written: sum_i weights_i z_i
    const double* weights;  // (draws)
    std::size_t draws;
    NoiseArguments noise;
    KeptNoise kept;  // if nothing is kept, the noise is made again
};

struct NoiseWithinArguments {
    double* sum;               // (n), written
    const double* population;  // (count, n): candidates as they were clipped
    std::size_t n;
    const double* weights;  // (count)
    std::size_t count;
    std::size_t draws;    // candidate draws + i is the mirror image of draw i
    const double* mean;   // (n)
    const double* scale;  // (n) or null: ones
    double size;          // standard deviation of an isotropic part where the scale is 1
    const double* lower;  // (n)
    const double* upper;  // (n)
    NoiseArguments noise;
    KeptNoise kept;
};

struct ProjectArguments {
    const float* vectors;      // (m, n)
    std::size_t n;
    const std::int64_t* rows;  // (draws, used): rows of `vectors`; a negative one is left out
    std::size_t draws;
    std::size_t used;
    NoiseArguments noise;
};

struct CombineArguments {
    float* out;                   // (., n): row targets[i] receives sum_j coefficients_ij vectors_j
    const std::int64_t* targets;  // (count)
    std::size_t count;
    const double* coefficients;  // (count, m)
    const float* vectors;        // (m, n)
    std::size_t m;
    std::size_t n;
};

struct ReductionTable {
    void (*noise_sum)(const NoiseSumArguments&, std::size_t begin, std::size_t end);
    // The same of the isotropic parts as clipping left them; adds their squares, per draw, to squares[0], and those of the
    // parts as they were drawn to squares[1].
    void (*noise_within)(const NoiseWithinArguments&, double* squares, std::size_t begin, std::size_t end);
    // sum <- sum_k weights_k (gain (x_k - mean))^2, entry by entry.
    void (*step_squares)(const RecombineArguments&, double* sum, std::size_t begin, std::size_t end);
    double (*dot)(const double* a, const double* b, std::size_t count);
    // Adds to sums (draws, used) the scalar products of the rows with the noise of the draws.
    void (*project)(const ProjectArguments&, double* sums, std::size_t begin, std::size_t end);
    // Adds to sums (m, m), at and below the diagonal, the scalar products of the vectors with one another; `accurate`
    // adds up in double precision, else a tile in single.
    void (*gram)(const float* vectors, std::size_t m, std::size_t n, bool accurate, double* sums, std::size_t begin,
                 std::size_t end);
    // vectors_i <- decays_i vectors_i + gains_i step.
    void (*accumulate)(float* vectors, std::size_t m, std::size_t n, const double* decays, const double* gains,
                       const double* step, std::size_t begin, std::size_t end);
    void (*combine)(const CombineArguments&, std::size_t begin, std::size_t end);
    // For each vector q in turn: q <- decay q + gain u; t = u.q / q.q; u <- (u - t q) / sqrt(1 + t^2).
    void (*deflate)(float* vectors, std::size_t m, std::size_t n, double decay, double gain, double* u);
};

namespace baseline {
extern const ReductionTable reductions;
}
namespace avx2 {
extern const ReductionTable reductions;
}
namespace avx512 {
extern const ReductionTable reductions;
}

}  // namespace mmes
