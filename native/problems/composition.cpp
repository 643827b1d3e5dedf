// Evaluates a composition on blocks of points, one point a lane. Compiled once for every SIMD level.
#include "composition.hpp"

#include "elementary.hpp"

namespace mmes::problems::MMES_LEVEL {

static inline Lanes square(Lanes x) { return x * x; }

// z = y[index] - shift, transposed so that a vector holds one variable of `width` points
static void gather(const double* const* rows, const int32_t* index, const double* shift, int size, Lanes* z) {
    for (int i = 0; i < size; ++i) {
        Lanes x;
        for (int lane = 0; lane < width; ++lane) x[lane] = rows[lane][index[i]];
        z[i] = x - shift[i];
    }
}

// `count` neighbouring columns of y @ matrix, their sums kept in registers
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

// T_osz, then T_asy and Lambda where asked for. T_osz yields the logarithm that T_asy needs.
template <bool with_asymmetry>
static void transform(Lanes* z, const double* asymmetry, int size) {
    for (int i = 0; i < size; ++i) {
        const Lanes x = z[i];
        const Lanes absolute = magnitude(x);
        const Bits positive = x > 0.0;
        const Lanes h = logarithm(absolute);
        const Lanes waves = sine((positive ? broadcast(10.0) : broadcast(5.5)) * h) +
                            sine((positive ? broadcast(7.9) : broadcast(3.1)) * h);
        const Lanes log_value = fma(waves, broadcast(0.049), h);
        const Lanes oscillated = exponential(log_value);
        Lanes value = with_sign_of(oscillated, x);
        if constexpr (with_asymmetry) {
            const Lanes power = fma(broadcast(asymmetry[i]), square_root(oscillated), broadcast(1.0));
            value = positive ? exponential(log_value * power) : value;
        }
        z[i] = absolute < 0x1p-1022 ? broadcast(0.0) : value;  // subnormal numbers count as zero
    }
}

static Lanes sum_of_squares(const Lanes* z, int size) {
    Lanes even = {}, odd = {};
    int i = 0;
    for (; i + 2 <= size; i += 2) {
        even = fma(z[i], z[i], even);
        odd = fma(z[i + 1], z[i + 1], odd);
    }
    if (i < size) even = fma(z[i], z[i], even);
    return even + odd;
}

static Lanes sum_elliptic(const Lanes* z, const double* weights, int size) {
    Lanes even = {}, odd = {};
    int i = 0;
    for (; i + 2 <= size; i += 2) {
        even = fma(square(z[i]), broadcast(weights[i]), even);
        odd = fma(square(z[i + 1]), broadcast(weights[i + 1]), odd);
    }
    if (i < size) even = fma(square(z[i]), broadcast(weights[i]), even);
    return even + odd;
}

static Lanes sum_waves(const Lanes* z, int size) {
    Lanes sum = {};
    for (int i = 0; i < size; ++i) sum += one_minus_cosine_of_turns(z[i]);
    return sum;
}

static Lanes value_of_ackley(const Lanes* z, int size) {
    const Lanes length = square_root(sum_of_squares(z, size) / (double)size);
    const Lanes valley = 20.0 - 20.0 * exponential(-0.2 * length);
    const Lanes one = broadcast(1.0);
    return valley + (exponential(one) - exponential(one - sum_waves(z, size) / (double)size));
}

static Lanes sum_schwefel(const Lanes* z, int size) {
    Lanes running = {}, sum = {};
    for (int i = 0; i < size; ++i) {
        running += z[i];
        sum = fma(running, running, sum);
    }
    return sum;
}

static Lanes sum_rosenbrock(const Lanes* z, int size) {
    Lanes valley = {}, slope = {};
    for (int i = 0; i + 1 < size; ++i) {
        valley += square(square(z[i]) - z[i + 1]);
        slope += square(z[i] - 1.0);
    }
    return fma(broadcast(100.0), valley, slope);
}

static Lanes value_of(const Composition& f, const Part& part, const Lanes* z) {
    switch (part.base) {
        case Base::elliptic: return sum_elliptic(z, f.elliptic + part.start, part.size);
        case Base::rastrigin: return fma(broadcast(10.0), sum_waves(z, part.size), sum_of_squares(z, part.size));
        case Base::ackley: return value_of_ackley(z, part.size);
        case Base::schwefel: return sum_schwefel(z, part.size);
        case Base::rosenbrock: return sum_rosenbrock(z, part.size);
        default: return sum_of_squares(z, part.size);
    }
}

// One term of `width` points. `y` and `z` hold `part.size` vectors each.
static Lanes term(const Composition& f, const Part& part, const double* const* rows, Lanes* y, Lanes* z) {
    const int size = part.size;
    if (part.matrix >= 0) {
        gather(rows, f.index + part.start, f.shift + part.start, size, y);
        rotate(y, f.matrices + part.matrix, size, z);
    } else {
        gather(rows, f.index + part.start, f.shift + part.start, size, z);
    }
    if (part.has(Transform::asymmetric))
        transform<true>(z, f.asymmetry + part.start, size);
    else if (part.has(Transform::oscillate))
        transform<false>(z, nullptr, size);
    if (part.has(Transform::scale))
        for (int i = 0; i < size; ++i) z[i] *= f.scale[part.start + i];
    return part.weight * value_of(f, part, z);
}

void evaluate(const Composition& f, const double* points, int64_t count, double* values, double* scratch) {
    Lanes* const y = (Lanes*)scratch;
    Lanes* const z = y + f.largest;
    for (int64_t first = 0; first < count; first += width) {
        const double* rows[width];
        for (int lane = 0; lane < width; ++lane) {
            const int64_t row = first + lane < count ? first + lane : count - 1;  // spare lanes repeat the last point
            rows[lane] = points + row * f.dimension;
        }
        Lanes total = {};
        for (int64_t p = 0; p < f.part_count; ++p) total += term(f, f.parts[p], rows, y, z);
        for (int lane = 0; lane < width && first + lane < count; ++lane) values[first + lane] = total[lane];
    }
}

}  // namespace mmes::problems::MMES_LEVEL
