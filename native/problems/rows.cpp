// The basic problems. Compiled once for every SIMD level.
#include "rows.hpp"

#include "elementary.hpp"

namespace mmes::problems::MMES_LEVEL {

// Sixteen running sums at every level, so that the order of additions does not depend on the width of a vector.
constexpr int sums = 16;
constexpr int vectors = sums / width;

// How a term reads its numbers: a whole vector, or the last few, filled up
struct Whole {
    Lanes operator()(const double* from, double) const { return load(from); }
};

struct Rest {
    int64_t count;

    Lanes operator()(const double* from, double fill) const {
        Lanes x = broadcast(fill);
        for (int64_t lane = 0; lane < count && lane < width; ++lane) x[lane] = from[lane];
        return x;
    }
};

// The sum of term(i) for i < count; a term gets its place and the way to read
template <typename Term>
static inline double sum_of(int64_t count, Term term) {
    Lanes sum[vectors] = {};
    int64_t i = 0;
    for (; i + sums <= count; i += sums)
        for (int k = 0; k < vectors; ++k) sum[k] += term(i + k * width, Whole{});
    for (int k = 0; k < vectors && i + k * width < count; ++k)
        sum[k] += term(i + k * width, Rest{count - (i + k * width)});
    double parts[sums];
    for (int k = 0; k < vectors; ++k) store(parts + k * width, sum[k]);
    for (int half = sums / 2; half > 0; half /= 2)
        for (int k = 0; k < half; ++k) parts[k] += parts[k + half];
    return parts[0];
}

static double sum_squares(const double* x, int64_t n) {
    return sum_of(n, [=](int64_t i, auto read) {
        const Lanes z = read(x + i, 0.0);
        return z * z;
    });
}

static double sum_ellipsoid(const double* x, int64_t n, const double* weights) {
    return sum_of(n, [=](int64_t i, auto read) {
        const Lanes z = read(x + i, 0.0);
        return z * read(weights + i, 0.0) * z;
    });
}

static double sum_rosenbrock(const double* x, int64_t n) {
    return sum_of(n - 1, [=](int64_t i, auto read) {
        const Lanes z = read(x + i, 1.0);
        const Lanes valley = z * z - read(x + i + 1, 1.0);
        const Lanes slope = z - 1.0;
        return 100.0 * (valley * valley) + slope * slope;
    });
}

// |x_i|^p_i = exp(p_i ln|x_i|)
static double sum_powers(const double* x, int64_t n, const double* exponents) {
    return sum_of(n, [=](int64_t i, auto read) {
        const Lanes z = magnitude(read(x + i, 0.0));
        const Lanes power = exponential(read(exponents + i, 0.0) * logarithm(z));
        return z < 0x1p-1022 ? broadcast(0.0) : power;  // subnormal numbers count as zero
    });
}

void evaluate_rows(Kind kind, const double* coefficients, const double* points, int64_t count, int64_t dimension,
                   double* values) {
    for (int64_t row = 0; row < count; ++row) {
        const double* const x = points + row * dimension;
        switch (kind) {
            case Kind::ellipsoid: values[row] = sum_ellipsoid(x, dimension, coefficients); break;
            case Kind::rosenbrock: values[row] = sum_rosenbrock(x, dimension); break;
            case Kind::powers: values[row] = sum_powers(x, dimension, coefficients); break;
            default:
                values[row] = coefficients[0] * (x[0] * x[0]) + coefficients[1] * sum_squares(x + 1, dimension - 1);
        }
    }
}

}  // namespace mmes::problems::MMES_LEVEL
