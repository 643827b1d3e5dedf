// Scalar products and weighted sums, compiled once for every SIMD level into the namespace MMES_LEVEL.
//
// N.B. as in kernels.cpp, no standard library header with inline functions belongs here.
#include "reductions.hpp"

#include "lanes.hpp"

namespace mmes::MMES_LEVEL {
namespace {

void noise_sum(const NoiseSumArguments& a, std::size_t begin, std::size_t end) {
    alignas(64) float z[kTile];
    for (; begin < end; begin += kTile) {
        const std::size_t count = end - begin < kTile ? end - begin : kTile;
        double* __restrict sum = a.sum + begin;
        for (std::size_t i = 0; i < count; ++i) sum[i] = 0.0;
        for (std::size_t draw = 0; draw < a.draws; ++draw) {
            const double weight = a.weights[draw];
            if (weight == 0.0) continue;
            fill_noise(z, begin, count, a.noise.noise, isotropic_address(a.noise, draw));
            for (std::size_t i = 0; i < count; ++i) sum[i] = fused(weight, static_cast<double>(z[i]), sum[i]);
        }
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

const ReductionTable reductions = {noise_sum, step_squares, dot, project, gram, accumulate, combine, deflate};

}  // namespace mmes::MMES_LEVEL
