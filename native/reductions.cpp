// Scalar products and weighted sums, compiled once for every SIMD level into the namespace MMES_LEVEL.
//
// N.B. as in kernels.cpp, no standard library header with inline functions belongs here.
#include "reductions.hpp"

#include "lanes.hpp"

namespace mmes::MMES_LEVEL {
namespace {

// The isotropic part of a draw from `begin` on: as it was kept, or made in z.
inline const float* isotropic_part(float* z, const KeptNoise& kept, const NoiseArguments& noise, std::size_t draw,
                                   std::size_t begin, std::size_t count) {
    if (kept.data != nullptr) return kept.row(draw) + begin;
    fill_noise(z, begin, count, noise.noise, isotropic_address(noise, draw));
    return z;
}

void noise_sum(const NoiseSumArguments& a, std::size_t begin, std::size_t end) {
    alignas(64) float z[kTile];
    for (; begin < end; begin += kTile) {
        const std::size_t count = end - begin < kTile ? end - begin : kTile;
        double* __restrict sum = a.sum + begin;
        for (std::size_t i = 0; i < count; ++i) sum[i] = 0.0;
        for (std::size_t draw = 0; draw < a.draws; ++draw) {
            const double weight = a.weights[draw];
            if (weight == 0.0) continue;
            const float* own = isotropic_part(z, a.kept, a.noise, draw, begin, count);
            for (std::size_t i = 0; i < count; ++i) sum[i] = fused(weight, static_cast<double>(own[i]), sum[i]);
        }
    }
}

// As much of a part as fits into the step that was evaluated; all of it for a point inside the box.
inline double part_within(double part, double x, double lower, double upper, double evaluated) {
    const double forward = evaluated > 0.0 ? evaluated : 0.0, backward = evaluated < 0.0 ? evaluated : 0.0;
    const double fitting = part > 0.0 ? (part < forward ? part : forward) : (part > backward ? part : backward);
    return x > lower && x < upper ? part : fitting;
}

void add_parts_within(double* together, const NoiseWithinArguments& a, const float* z, double sign, std::size_t candidate,
                      std::size_t begin, std::size_t count) {
    const double* __restrict x = a.population + candidate * a.n + begin;
    const double weight = a.weights[candidate];
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = begin + i;
        const double size = a.scale == nullptr ? a.size : a.size * a.scale[at];
        const double part = sign * static_cast<double>(z[i]);
        const double within = part_within(part, x[i], a.lower[at], a.upper[at], (x[i] - a.mean[at]) / size);
        together[i] = fused(weight, within, together[i]);
    }
}

// Eight sums side by side, so that the order of adding is the same on every processor.
double sum_of_tile(const double* terms) {
    double lane[8] = {};
    for (std::size_t i = 0; i < kTile; i += 8)
        for (std::size_t k = 0; k < 8; ++k) lane[k] += terms[i + k];
    for (std::size_t half = 4; half > 0; half /= 2)
        for (std::size_t k = 0; k < half; ++k) lane[k] += lane[half + k];
    return lane[0];
}

void noise_within(const NoiseWithinArguments& a, double* squares, std::size_t begin, std::size_t end) {
    alignas(64) float z[kTile];
    alignas(64) double together[kTile], left[kTile], drawn[kTile];
    for (; begin < end; begin += kTile) {
        const std::size_t count = end - begin < kTile ? end - begin : kTile;
        double* __restrict sum = a.sum + begin;
        for (std::size_t i = 0; i < count; ++i) sum[i] = 0.0;
        for (std::size_t i = 0; i < kTile; ++i) left[i] = drawn[i] = 0.0;
        for (std::size_t draw = 0; draw < a.draws; ++draw) {
            const std::size_t image = a.draws + draw;
            const bool own = a.weights[draw] != 0.0, mirrored = image < a.count && a.weights[image] != 0.0;
            if (!own && !mirrored) continue;
            const float* part = isotropic_part(z, a.kept, a.noise, draw, begin, count);
            for (std::size_t i = 0; i < count; ++i) together[i] = 0.0;
            if (own) add_parts_within(together, a, part, 1.0, draw, begin, count);
            if (mirrored) add_parts_within(together, a, part, -1.0, image, begin, count);
            const double weight = a.weights[draw] - (image < a.count ? a.weights[image] : 0.0);
            for (std::size_t i = 0; i < count; ++i) {
                const double free = weight * static_cast<double>(part[i]);
                sum[i] += together[i];
                left[i] = fused(together[i], together[i], left[i]);
                drawn[i] = fused(free, free, drawn[i]);
            }
        }
        squares[0] += sum_of_tile(left);
        squares[1] += sum_of_tile(drawn);
    }
}

void step_squares(const RecombineArguments& a, double* total, std::size_t begin, std::size_t end) {
    for (; begin < end; begin += kTile) {
        const std::size_t count = end - begin < kTile ? end - begin : kTile;
        double* __restrict sum = total + begin;
        const double* __restrict mean = a.mean + begin;
        const double factor = a.gain;
        for (std::size_t i = 0; i < count; ++i) sum[i] = 0.0;
        for (std::size_t k = 0; k < a.mu; ++k) {
            const double* __restrict x = a.population + static_cast<std::size_t>(a.parents[k]) * a.stride + begin;
            const double weight = a.weights[k];
            for (std::size_t i = 0; i < count; ++i) {
                const double step = factor * (x[i] - mean[i]);
                sum[i] = fused(weight, step * step, sum[i]);
            }
        }
    }
}

double dot(const double* a, const double* b, std::size_t count) {
    DoubleLanes sums;
    std::size_t i = 0;
    for (; i + DoubleLanes::lanes <= count; i += DoubleLanes::lanes)
        sums.add_product(DoubleLanes::load(a + i), DoubleLanes::load(b + i));
    if (i < count) sums.add_product(DoubleLanes::load_rest(a + i, count - i), DoubleLanes::load_rest(b + i, count - i));
    return total(sums);
}

// The scalar products of one vector with several, four at a time so that it is read once for four.
template <class Lanes>
struct Products {
    const float* a;
    std::size_t count;
    const float* held[4];
    double* places[4];
    int waiting = 0;

    void take(const float* b, double* place) {
        held[waiting] = b;
        places[waiting++] = place;
        if (waiting < 4) return;
        double sums[4] = {};
        products<Lanes, 4>(a, held, count, sums);
        for (int k = 0; k < 4; ++k) *places[k] += sums[k];
        waiting = 0;
    }
    void finish() {
        for (int k = 0; k < waiting; ++k) products<Lanes, 1>(a, held + k, count, places[k]);
        waiting = 0;
    }
};

void project(const ProjectArguments& a, double* sums, std::size_t begin, std::size_t end) {
    alignas(64) float z[kTile];
    for (; begin < end; begin += kTile) {
        const std::size_t count = end - begin < kTile ? end - begin : kTile;
        for (std::size_t draw = 0; draw < a.draws; ++draw) {
            const std::int64_t* rows = a.rows + draw * a.used;
            bool needed = false;
            for (std::size_t k = 0; k < a.used; ++k) needed = needed || rows[k] >= 0;
            if (!needed) continue;
            fill_noise(z, begin, count, a.noise.noise, isotropic_address(a.noise, draw));
            Products<FloatLanes> with{z, count, {}, {}};
            for (std::size_t k = 0; k < a.used; ++k)
                if (rows[k] >= 0)
                    with.take(a.vectors + static_cast<std::size_t>(rows[k]) * a.n + begin, sums + draw * a.used + k);
            with.finish();
        }
    }
}

template <class Lanes>
void gram_tiles(const float* vectors, std::size_t m, std::size_t n, double* sums, std::size_t begin, std::size_t end) {
    for (; begin < end; begin += kTile) {
        const std::size_t count = end - begin < kTile ? end - begin : kTile;
        for (std::size_t i = 0; i < m; ++i) {
            Products<Lanes> with{vectors + i * n + begin, count, {}, {}};
            for (std::size_t j = 0; j <= i; ++j) with.take(vectors + j * n + begin, sums + i * m + j);
            with.finish();
        }
    }
}

void gram(const float* vectors, std::size_t m, std::size_t n, bool accurate, double* sums, std::size_t begin,
          std::size_t end) {
    (accurate ? gram_tiles<DoubleLanes> : gram_tiles<FloatLanes>)(vectors, m, n, sums, begin, end);
}

void accumulate(float* vectors, std::size_t m, std::size_t n, const double* decays, const double* gains,
                const double* step, std::size_t begin, std::size_t end) {
    for (; begin < end; begin += kTile) {
        const std::size_t count = end - begin < kTile ? end - begin : kTile;
        const double* __restrict s = step + begin;
        for (std::size_t k = 0; k < m; ++k) {
            float* __restrict v = vectors + k * n + begin;
            const double decay = decays[k], gain = gains[k];
            for (std::size_t i = 0; i < count; ++i)
                v[i] = static_cast<float>(fused(gain, s[i], decay * static_cast<double>(v[i])));
        }
    }
}

void combine(const CombineArguments& a, std::size_t begin, std::size_t end) {
    alignas(64) double tile[kTile];
    for (; begin < end; begin += kTile) {
        const std::size_t count = end - begin < kTile ? end - begin : kTile;
        for (std::size_t k = 0; k < a.count; ++k) {
            for (std::size_t i = 0; i < count; ++i) tile[i] = 0.0;
            for (std::size_t j = 0; j < a.m; ++j) {
                const double c = a.coefficients[k * a.m + j];
                if (c == 0.0) continue;
                const float* __restrict v = a.vectors + j * a.n + begin;
                for (std::size_t i = 0; i < count; ++i) tile[i] = fused(c, static_cast<double>(v[i]), tile[i]);
            }
            float* __restrict out = a.out + static_cast<std::size_t>(a.targets[k]) * a.n + begin;
            for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(tile[i]);
        }
    }
}

void deflate(float* vectors, std::size_t m, std::size_t n, double decay, double gain, double* u) {
    for (std::size_t k = 0; k < m; ++k) {
        float* q = vectors + k * n;
        DoubleLanes along, length;
        for (std::size_t begin = 0; begin < n; begin += kTile) {
            const std::size_t count = n - begin < kTile ? n - begin : kTile;
            float* __restrict tile = q + begin;
            const double* __restrict step = u + begin;
            for (std::size_t i = 0; i < count; ++i)
                tile[i] = static_cast<float>(fused(gain, step[i], decay * static_cast<double>(tile[i])));
            std::size_t i = 0;
            for (; i + DoubleLanes::lanes <= count; i += DoubleLanes::lanes) {
                const DoubleLanes direction = DoubleLanes::load(tile + i);
                along.add_product(direction, DoubleLanes::load(step + i));
                length.add_product(direction, direction);
            }
            if (i < count) {
                const DoubleLanes direction = DoubleLanes::load_rest(tile + i, count - i);
                along.add_product(direction, DoubleLanes::load_rest(step + i, count - i));
                length.add_product(direction, direction);
            }
        }
        const double squared = total(length);
        const double t = squared > 0.0 ? total(along) / squared : 0.0;
        const double shrink = 1.0 / __builtin_sqrt(1.0 + t * t);
        for (std::size_t i = 0; i < n; ++i) u[i] = shrink * fused(-t, static_cast<double>(q[i]), u[i]);
    }
}

}  // namespace

const ReductionTable reductions = {noise_sum, noise_within, step_squares, dot, project, gram, accumulate, combine, deflate};

}  // namespace mmes::MMES_LEVEL
