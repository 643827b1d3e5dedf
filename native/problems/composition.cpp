// Evaluates a composition. Compiled once for every SIMD level.
//
// Full blocks of points go one point a lane: Number is then Lanes, and a buffer holds one vector for each variable.
// The few points left over go one at a time: Number is double, and a vector holds `width` neighbouring variables.
#include "composition.hpp"

#include "elementary.hpp"

namespace mmes::problems::MMES_LEVEL {

template <typename Number>
constexpr int lanes_per_variable = sizeof(Number) / sizeof(double);

// How many vectors the numbers of `size` variables fill
template <typename Number>
static inline int vector_count(int size) {
    return (size * lanes_per_variable<Number> + width - 1) / width;
}

// The points of a block: one for each lane of Number
struct Block {
    const double* rows[width];
};

// z = x[index] - shift

static void gather(const Block& block, const int32_t* index, const double* shift, int size, Lanes* z) {
    for (int i = 0; i < size; ++i) {
        Lanes x;
        for (int lane = 0; lane < width; ++lane) x[lane] = block.rows[lane][index[i]];
        z[i] = x - shift[i];
    }
}

static void gather(const Block& block, const int32_t* index, const double* shift, int size, double* z) {
    for (int i = 0; i < size; ++i) z[i] = block.rows[0][index[i]] - shift[i];
}

// z = y @ matrix, by `count` neighbouring columns, or vectors of columns, whose sums stay in registers

template <int count>
static inline void rotate_columns(const Lanes* y, const double* matrix, int size, Lanes* z) {
    Lanes sum[count] = {};
    for (int j = 0; j < size; ++j)
        for (int i = 0; i < count; ++i) sum[i] = fma(y[j], broadcast(matrix[(int64_t)j * size + i]), sum[i]);
    for (int i = 0; i < count; ++i) z[i] = sum[i];
}

static void rotate(const Lanes* y, const double* matrix, int size, Lanes* z) {
    int i = 0;
    for (; i + 10 <= size; i += 10) rotate_columns<10>(y, matrix + i, size, z + i);
    for (; i + 5 <= size; i += 5) rotate_columns<5>(y, matrix + i, size, z + i);
    for (; i < size; ++i) rotate_columns<1>(y, matrix + i, size, z + i);
}

template <int count>
static inline void rotate_column_vectors(const double* y, const double* matrix, int size, double* z) {
    Lanes sum[count] = {};
    for (int j = 0; j < size; ++j)
        for (int i = 0; i < count; ++i)
            sum[i] = fma(broadcast(y[j]), load(matrix + (int64_t)j * size + i * width), sum[i]);
    for (int i = 0; i < count; ++i) store(z + i * width, sum[i]);
}

static void rotate(const double* y, const double* matrix, int size, double* z) {
    int i = 0;
    for (; i + 6 * width <= size; i += 6 * width) rotate_column_vectors<6>(y, matrix + i, size, z + i);
    for (; i + width <= size; i += width) rotate_column_vectors<1>(y, matrix + i, size, z + i);
    for (; i < size; ++i) {
        z[i] = 0.0;
        for (int j = 0; j < size; ++j) z[i] = fma(y[j], matrix[(int64_t)j * size + i], z[i]);
    }
}

// The coefficients of vector number `i`

static inline Lanes coefficients_of(const double* c, int i, int, const Lanes*) { return broadcast(c[i]); }

static inline Lanes coefficients_of(const double* c, int i, int size, const double*) {
    if ((i + 1) * width <= size) return load(c + i * width);
    Lanes rest = {};
    for (int lane = 0; i * width + lane < size; ++lane) rest[lane] = c[i * width + lane];
    return rest;
}

// T_osz, then T_asy where asked for. T_osz yields the logarithm that T_asy needs.
template <bool with_asymmetry, typename Number>
static void transform(Number* z, const double* asymmetry, int size) {
    Lanes* const vectors = (Lanes*)z;
    for (int i = 0; i < vector_count<Number>(size); ++i) {
        const Lanes x = vectors[i];
        const Lanes absolute = magnitude(x);
        const Bits positive = x > 0.0;
        const Lanes h = logarithm(absolute);
        const Lanes waves = sine((positive ? broadcast(10.0) : broadcast(5.5)) * h) +
                            sine((positive ? broadcast(7.9) : broadcast(3.1)) * h);
        const Lanes log_value = fma(waves, broadcast(0.049), h);
        const Lanes oscillated = exponential(log_value);
        Lanes value = with_sign_of(oscillated, x);
        if constexpr (with_asymmetry) {
            const Lanes slope = coefficients_of(asymmetry, i, size, z);
            const Lanes power = fma(slope, square_root(oscillated), broadcast(1.0));
            value = positive ? exponential(log_value * power) : value;
        }
        vectors[i] = absolute < 0x1p-1022 ? broadcast(0.0) : value;  // subnormal numbers count as zero
    }
}

template <typename Number>
static inline Number square(Number x) {
    return x * x;
}

// sum c_i z_i^2; two running sums, because one addition must wait for the one before
template <typename Number, typename Coefficient>
static inline Number sum_of_squares(const Number* z, int size, Coefficient c) {
    Number even = {}, odd = {};
    int i = 0;
    for (; i + 2 <= size; i += 2) {
        even = fma(square(z[i]), Number{} + c(i), even);
        odd = fma(square(z[i + 1]), Number{} + c(i + 1), odd);
    }
    if (i < size) even = fma(square(z[i]), Number{} + c(i), even);
    return even + odd;
}

template <typename Number>
static Number sum_sphere(const Number* z, int size) {
    return sum_of_squares(z, size, [](int) { return 1.0; });
}

// sum of 1 - cos(2 pi z_i); the terms go to `waves`
template <typename Number>
static Number sum_waves(const Number* z, int size, Number* waves) {
    for (int i = 0; i < vector_count<Number>(size); ++i)
        ((Lanes*)waves)[i] = one_minus_cosine_of_turns(((const Lanes*)z)[i]);
    Number sum = {};
    for (int i = 0; i < size; ++i) sum += waves[i];
    return sum;
}

static inline Lanes to_lanes(Lanes x) { return x; }
static inline Lanes to_lanes(double x) { return broadcast(x); }
static inline void from_lanes(Lanes from, Lanes& to) { to = from; }
static inline void from_lanes(Lanes from, double& to) { to = from[0]; }

template <typename Number>
static Number value_of_ackley(const Number* z, int size, Number* waves) {
    const Lanes length = square_root(to_lanes(sum_sphere(z, size) / (double)size));
    const Lanes valley = 20.0 - 20.0 * exponential(-0.2 * length);
    const Lanes one = broadcast(1.0);
    const Lanes ripple = to_lanes(sum_waves(z, size, waves) / (double)size);
    Number value;
    from_lanes(valley + (exponential(one) - exponential(one - ripple)), value);
    return value;
}

template <typename Number>
static Number sum_schwefel(const Number* z, int size) {
    Number running = {}, sum = {};
    for (int i = 0; i < size; ++i) {
        running += z[i];
        sum = fma(running, running, sum);
    }
    return sum;
}

template <typename Number>
static Number sum_rosenbrock(const Number* z, int size) {
    Number valley = {}, slope = {};
    for (int i = 0; i + 1 < size; ++i) {
        valley += square(square(z[i]) - z[i + 1]);
        slope += square(z[i] - 1.0);
    }
    return 100.0 * valley + slope;
}

// The value of the base function at z; `spare` is as large as z
template <typename Number>
static Number value_of(const Composition& f, const Part& part, const Number* z, Number* spare) {
    const int size = part.size;
    const double* const weights = f.elliptic + part.start;
    switch (part.base) {
        case Base::elliptic: return sum_of_squares(z, size, [=](int i) { return weights[i]; });
        case Base::rastrigin: return 10.0 * sum_waves(z, size, spare) + sum_sphere(z, size);
        case Base::ackley: return value_of_ackley(z, size, spare);
        case Base::schwefel: return sum_schwefel(z, size);
        case Base::rosenbrock: return sum_rosenbrock(z, size);
        default: return sum_sphere(z, size);
    }
}

// The sum of all terms. `y` and `z` have room for the largest part, rounded up to whole vectors.
template <typename Number>
static Number sum_of_parts(const Composition& f, const Block& block, Number* y, Number* z) {
    Number total = {};
    for (int64_t p = 0; p < f.part_count; ++p) {
        const Part& part = f.parts[p];
        const int size = part.size;
        const int32_t* const index = f.index + part.start;
        const double* const shift = f.shift + part.start;
        if (part.matrix >= 0) {
            gather(block, index, shift, size, y);
            rotate(y, f.matrices + part.matrix, size, z);
        } else {
            gather(block, index, shift, size, z);
        }
        // What fills up the last vector is computed with, and must not be slow or trap; it is not used.
        for (int i = size; i * lanes_per_variable<Number> % width != 0; ++i) z[i] = Number{};
        if (part.has(Transform::asymmetric))
            transform<true>(z, f.asymmetry + part.start, size);
        else if (part.has(Transform::oscillate))
            transform<false>(z, nullptr, size);
        if (part.has(Transform::scale))
            for (int i = 0; i < size; ++i) z[i] *= f.scale[part.start + i];
        total += part.weight * value_of(f, part, z, y);
    }
    return total;
}

void evaluate(const Composition& f, const double* points, int64_t count, double* values, double* scratch) {
    double* const y = scratch;
    double* const z = scratch + widest_lanes * f.largest;
    int64_t first = 0;
    // Up to half a block, single points are cheaper than a block with spare lanes.
    for (; count - first > width / 2; first += width) {
        Block block;
        for (int lane = 0; lane < width; ++lane) {
            const int64_t row = first + lane < count ? first + lane : count - 1;  // spare lanes repeat the last point
            block.rows[lane] = points + row * f.dimension;
        }
        const Lanes block_values = sum_of_parts(f, block, (Lanes*)y, (Lanes*)z);
        for (int lane = 0; lane < width && first + lane < count; ++lane) values[first + lane] = block_values[lane];
    }
    for (; first < count; ++first) {
        Block block;
        block.rows[0] = points + first * f.dimension;
        values[first] = sum_of_parts(f, block, y, z);
    }
}

}  // namespace mmes::problems::MMES_LEVEL
