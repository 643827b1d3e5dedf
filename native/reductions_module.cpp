// The extension module's scalar products and weighted sums: checks the arrays, splits coordinates among threads.
#include "records.hpp"

using namespace mmes;

namespace {

// Runs work(sums, begin, end) over [0, n) in at most 64 blocks that do not depend on the number of threads, and adds their
// sums up in order.
template <class Work>
void sum_over_coordinates(std::size_t n, int threads, double* sums, std::size_t size, Work work) {
    constexpr std::size_t kBlocks = 64;
    const std::size_t tiles = (n + kTile - 1) / kTile;
    const std::size_t per_block = (tiles + kBlocks - 1) / kBlocks;
    const std::size_t blocks = (tiles + per_block - 1) / per_block;
    std::vector<double> parts(blocks * size, 0.0);
    const auto run = [&](std::size_t first, std::size_t last) {
        for (std::size_t block = first; block < last; ++block)
            work(parts.data() + block * size, block * per_block * kTile, std::min(n, (block + 1) * per_block * kTile));
    };
    const std::size_t crew_size = std::min<std::size_t>(static_cast<std::size_t>(std::max(threads, 1)), blocks);
    {
        std::vector<std::jthread> crew;
        for (std::size_t k = 1; k < crew_size; ++k)
            crew.emplace_back(run, blocks * k / crew_size, blocks * (k + 1) / crew_size);
        run(0, blocks / crew_size);
    }
    std::fill(sums, sums + size, 0.0);
    for (std::size_t block = 0; block < blocks; ++block)
        for (std::size_t k = 0; k < size; ++k) sums[k] += parts[block * size + k];
}

void noise_sum(const Level& level, int threads, Array<double, 1> sum, Array<const double, 1> weights, int noise,
               std::uint64_t seed, std::uint32_t generation, std::optional<Array<float, 2>> kept) {
    const NoiseSumArguments a{sum.data(), weights.data(), weights.shape(0),
                              {static_cast<Noise>(noise), seed, generation},
                              kept_noise(kept, weights.shape(0), sum.shape(0))};
    const auto run = level.reductions->noise_sum;
    nb::gil_scoped_release unlocked;
    over_coordinates(sum.shape(0), threads, [&a, run](std::size_t begin, std::size_t end) { run(a, begin, end); });
}

// `record` is a NoiseWithin; `kept` is what `sample` kept of that generation.
double noise_within(const Level& level, int threads, Array<double, 1> sum, nb::tuple record,
                    std::optional<Array<float, 2>> kept) {
    const Record<NoiseWithin> call(record);
    const auto population = call.array<const double, 2>(NoiseWithin::population);
    const auto weights = call.array<const double, 1>(NoiseWithin::weights);
    const auto mean = call.array<const double, 1>(NoiseWithin::mean);
    const auto scale = call.optional_array<const double, 1>(NoiseWithin::scale);
    const auto lower = nb::cast<Array<const double, 1>>(call[NoiseWithin::box].attr("lower"), false);
    const auto upper = nb::cast<Array<const double, 1>>(call[NoiseWithin::box].attr("upper"), false);
    const std::size_t n = sum.shape(0), count = population.shape(0), draws = call.get<std::size_t>(NoiseWithin::draws);
    require(population.shape(1) == n && mean.shape(0) == n && lower.shape(0) == n && upper.shape(0) == n,
            "vectors and population differ in dimension");
    require(weights.shape(0) == count && draws <= count && count <= 2 * draws,
            "there must be one weight per candidate, which is a draw or the mirror image of one");
    const NoiseWithinArguments a{sum.data(),
                                 population.data(),
                                 n,
                                 weights.data(),
                                 count,
                                 draws,
                                 mean.data(),
                                 data_or_null(scale, n, "scale and population differ in dimension"),
                                 call.get<double>(NoiseWithin::size),
                                 lower.data(),
                                 upper.data(),
                                 {static_cast<Noise>(call.get<int>(NoiseWithin::noise)),
                                  call.get<std::uint64_t>(NoiseWithin::seed),
                                  call.get<std::uint32_t>(NoiseWithin::generation)},
                                 kept_noise(kept, draws, n)};
    const auto run = level.reductions->noise_within;
    double squares[2];
    nb::gil_scoped_release unlocked;
    sum_over_coordinates(n, threads, squares, 2,
                         [&a, run](double* part, std::size_t begin, std::size_t end) { run(a, part, begin, end); });
    return squares[1] > 0.0 ? squares[0] / squares[1] : 0.0;
}

void step_squares(const Level& level, int threads, Array<double, 1> sum, nb::tuple call) {
    const RecombineArguments a = recombine_arguments(call);
    require(a.population != nullptr, "there is no population");
    require(sum.shape(0) == a.n, "sum and population differ in dimension");
    double* total = sum.data();
    const auto run = level.reductions->step_squares;
    nb::gil_scoped_release unlocked;
    over_coordinates(a.n, threads, [&a, total, run](std::size_t begin, std::size_t end) { run(a, total, begin, end); });
}

double dot(const Level& level, Array<const double, 1> a, Array<const double, 1> b) {
    require(a.shape(0) == b.shape(0), "the vectors differ in dimension");
    return level.reductions->dot(a.data(), b.data(), a.shape(0));
}

void project(const Level& level, int threads, Array<double, 2> out, Array<const float, 2> vectors,
             Array<const std::int64_t, 2> rows, int noise, std::uint64_t seed, std::uint32_t generation) {
    const ProjectArguments a{vectors.data(), vectors.shape(1), rows.data(), rows.shape(0),
                             rows.shape(1),  {static_cast<Noise>(noise), seed, generation}};
    require(out.shape(0) == a.draws && out.shape(1) == a.used, "rows and their products differ in shape");
    const auto limit = static_cast<std::int64_t>(vectors.shape(0));
    for (std::size_t k = 0; k < a.draws * a.used; ++k) require(a.rows[k] < limit, "a row lies outside the vectors");
    const auto run = level.reductions->project;
    nb::gil_scoped_release unlocked;
    sum_over_coordinates(a.n, threads, out.data(), a.draws * a.used,
                         [&a, run](double* sums, std::size_t begin, std::size_t end) { run(a, sums, begin, end); });
}

void gram(const Level& level, int threads, Array<double, 2> out, Array<const float, 2> vectors, bool accurate) {
    const std::size_t m = vectors.shape(0), n = vectors.shape(1);
    require(out.shape(0) == m && out.shape(1) == m, "the Gram matrix must have one row and column per vector");
    const float* data = vectors.data();
    double* sums = out.data();
    const auto run = level.reductions->gram;
    nb::gil_scoped_release unlocked;
    sum_over_coordinates(n, threads, sums, m * m, [=](double* part, std::size_t begin, std::size_t end) {
        run(data, m, n, accurate, part, begin, end);
    });
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < i; ++j) sums[j * m + i] = sums[i * m + j];
}

void accumulate(const Level& level, int threads, Array<float, 2> vectors, Array<const double, 1> decays,
                Array<const double, 1> gains, Array<const double, 1> step) {
    const std::size_t m = vectors.shape(0), n = vectors.shape(1);
    require(decays.shape(0) == m && gains.shape(0) == m, "decays and gains must have one entry per vector");
    require(step.shape(0) == n, "step and vectors differ in dimension");
    float* data = vectors.data();
    const double *decay = decays.data(), *gain = gains.data(), *s = step.data();
    const auto run = level.reductions->accumulate;
    nb::gil_scoped_release unlocked;
    over_coordinates(n, threads,
                     [=](std::size_t begin, std::size_t end) { run(data, m, n, decay, gain, s, begin, end); });
}

void combine(const Level& level, int threads, Array<float, 2> out, Array<const std::int64_t, 1> targets,
             Array<const double, 2> coefficients, Array<const float, 2> vectors) {
    const CombineArguments a{out.data(),     targets.data(),   targets.shape(0), coefficients.data(),
                             vectors.data(), vectors.shape(0), vectors.shape(1)};
    require(out.shape(1) == a.n, "out and vectors differ in dimension");
    require(coefficients.shape(0) == a.count && coefficients.shape(1) == a.m,
            "coefficients must have one line per target and one column per vector");
    for (std::size_t k = 0; k < a.count; ++k)
        require(a.targets[k] >= 0 && a.targets[k] < static_cast<std::int64_t>(out.shape(0)), "a target lies outside");
    const auto run = level.reductions->combine;
    nb::gil_scoped_release unlocked;
    over_coordinates(a.n, threads, [&a, run](std::size_t begin, std::size_t end) { run(a, begin, end); });
}

void deflate(const Level& level, Array<float, 2> vectors, double decay, double gain, Array<double, 1> step) {
    const std::size_t m = vectors.shape(0), n = vectors.shape(1);
    require(step.shape(0) == n, "step and vectors differ in dimension");
    float* data = vectors.data();
    double* u = step.data();
    const auto run = level.reductions->deflate;
    nb::gil_scoped_release unlocked;
    run(data, m, n, decay, gain, u);
}

}  // namespace

void mmes::bind_reductions(nb::module_& m) {
    m.def("noise_sum", &noise_sum, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg().none());
    m.def("noise_within", &noise_within, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
    m.def("step_squares", &step_squares);
    m.def("dot", &dot);
    m.def("project", &project);
    m.def("gram", &gram);
    m.def("accumulate", &accumulate);
    m.def("combine", &combine);
    m.def("deflate", &deflate);
}
