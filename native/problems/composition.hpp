// A sum of base functions of groups of variables: plain data, shared by the module and every SIMD level.
#pragma once

#include <stdint.h>

namespace mmes::problems {

// The numbers of composition.py.
enum class Base : int32_t { sphere, elliptic, rastrigin, ackley, schwefel, rosenbrock, count };
enum class Transform : int32_t { oscillate = 1, asymmetric = 2, scale = 4 };

// weight * base(transforms((x[index] - shift) @ matrix)), with `size` entries of the arrays below from `start` on.
struct Part {
    Base base;
    int32_t transforms;  // a sum of Transform; the asymmetric one comes only after the oscillating one
    int32_t start, size;
    int64_t matrix;  // where its size x size matrix begins, or -1
    double weight;

    constexpr bool has(Transform transform) const { return transforms & (int32_t)transform; }
};

struct Composition {
    const Part* parts;
    int64_t part_count;
    const int32_t* index;
    const double* shift;
    const double* elliptic;   // coefficients of the elliptic function
    const double* asymmetry;  // beta u_i of the asymmetric transformation
    const double* scale;      // alpha^(u_i / 2)
    const double* matrices;
    int64_t dimension;
    int64_t largest;  // size of the largest part
};

constexpr int64_t widest_lanes = 8;

// Writes the values of `count` points (rows of `dimension` doubles). `scratch` is aligned to 64 bytes and holds two
// buffers of `widest_lanes * largest` doubles.
using Evaluate = void(const Composition&, const double* points, int64_t count, double* values, double* scratch);
namespace baseline { Evaluate evaluate; }
namespace avx2 { Evaluate evaluate; }
namespace avx512 { Evaluate evaluate; }

}  // namespace mmes::problems
