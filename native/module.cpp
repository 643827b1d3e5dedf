// The extension module: checks the arrays, picks the SIMD level, splits coordinates among threads.
#include "binding.hpp"

namespace mmes {

std::vector<std::string> simd_levels() {
    std::vector<std::string> levels;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        levels.push_back("avx512");
    if (avx2) levels.push_back("avx2");
#endif
    levels.push_back("baseline");
    return levels;
}

}  // namespace mmes

using namespace mmes;

namespace {

const KernelTable& table_of(const std::string& level) {
    require_level(level);
#if defined(__x86_64__)
    if (level == "avx512") return avx512::table;
    if (level == "avx2") return avx2::table;
#endif
    return baseline::table;
}

void words(const std::string& level, Array<std::uint32_t, 1> out, std::uint64_t seed, std::uint32_t stream,
           std::uint32_t generation, std::uint32_t candidate) {
    table_of(level).words(out.data(), out.shape(0), {seed, stream, generation, candidate});
}

void normals(const std::string& level, Array<float, 1> out, std::uint64_t seed, std::uint32_t stream,
             std::uint32_t generation, std::uint32_t candidate) {
    table_of(level).normals(out.data(), out.shape(0), {seed, stream, generation, candidate});
}

// The place of each uniform word in a cumulative distribution: the first entry above it.
void mixture_draws(const std::string& level, Array<std::int64_t, 2> ages, Array<float, 2> normals_out,
                   Array<const double, 1> cumulative, std::uint64_t seed, std::uint32_t generation,
                   std::uint32_t index_stream, std::uint32_t normal_stream) {
    const KernelTable& kernel = table_of(level);
    const std::size_t draws = ages.shape(0), used = ages.shape(1);
    require(normals_out.shape(0) == draws && normals_out.shape(1) == used, "ages and normals differ in shape");
    std::vector<std::uint32_t> raw(used);
    const double* first = cumulative.data();
    const double* last = first + cumulative.shape(0);
    for (std::size_t draw = 0; draw < draws; ++draw) {
        const auto candidate = static_cast<std::uint32_t>(draw);
        kernel.words(raw.data(), used, {seed, index_stream, generation, candidate});
        kernel.normals(normals_out.data() + draw * used, used, {seed, normal_stream, generation, candidate});
        for (std::size_t k = 0; k < used; ++k) {
            const double u = (static_cast<double>(raw[k]) + 0.5) * 0x1p-32;
            ages.data()[draw * used + k] =
                std::min<std::int64_t>(std::upper_bound(first, last, u) - first, last - first - 1);
        }
    }
}

void sample(const std::string& level, int threads, Array<double, 2> population, std::size_t draws,
            Array<const double, 1> mean, double sigma, std::optional<Array<const double, 1>> scale,
            std::optional<Array<const float, 2>> archive, Array<const std::int64_t, 2> rows,
            Array<const float, 2> factors, float isotropic,
            std::optional<Array<const float, 1>> isotropic_each, bool scale_rows, int noise, std::uint64_t seed,
            std::uint32_t generation, std::uint32_t stream, std::uint32_t angle_stream, int box, std::optional<Array<const double, 1>> lower,
            std::optional<Array<const double, 1>> upper) {
    SampleArguments a{};
    a.population = population.data();
    a.candidates = population.shape(0);
    a.draws = draws;
    a.n = population.shape(1);
    require(draws <= a.candidates && 2 * draws >= a.candidates, "draws must lie between lambda / 2 and lambda");
    require(mean.shape(0) == a.n, "mean and population differ in dimension");
    a.mean = mean.data();
    a.sigma = sigma;
    a.scale = data_or_null(scale, a.n, "scale and population differ in dimension");
    a.used = rows.shape(1);
    require(a.used == 0 || (rows.shape(0) == draws && factors.shape(0) == draws && factors.shape(1) == a.used),
            "rows and factors must have one line a draw");
    a.rows = rows.data();
    a.factors = factors.data();
    if (archive) {
        require(archive->shape(1) == a.n, "archive and population differ in dimension");
        a.archive = archive->data();
    }
    const std::int64_t limit = archive ? static_cast<std::int64_t>(archive->shape(0)) : 0;
    for (std::size_t k = 0; k < a.used * draws; ++k) require(a.rows[k] < limit, "a row lies outside the archive");
    a.isotropic = isotropic;
    a.isotropic_each = data_or_null(isotropic_each, draws, "isotropic_each must have one factor a draw");
    a.scale_rows = scale_rows;
    a.noise = static_cast<Noise>(noise);
    a.seed = seed;
    a.generation = generation;
    a.stream = stream;
    a.angle_stream = angle_stream;
    a.box = static_cast<Box>(box);
    a.lower = data_or_null(lower, a.n, "lower and population differ in dimension");
    a.upper = data_or_null(upper, a.n, "upper and population differ in dimension");
    require(a.box == Box::none || (a.lower != nullptr && a.upper != nullptr), "a box needs both bounds");
    const auto run = table_of(level).sample;
    nb::gil_scoped_release unlocked;
    over_coordinates(a.n, threads, [&a, run](std::size_t begin, std::size_t end) { run(a, begin, end); });
}

void recombine(const std::string& level, int threads, Array<const double, 2> population,
               Array<const std::int64_t, 1> parents, Array<const double, 1> weights, Array<double, 1> mean,
               Array<double, 1> path, double decay, double gain, std::optional<Array<float, 1>> archive_row) {
    RecombineArguments a{};
    a.population = population.data();
    a.n = population.shape(1);
    a.parents = parents.data();
    a.mu = parents.shape(0);
    a.weights = weights.data();
    require(weights.shape(0) == a.mu, "parents and weights differ in number");
    for (std::size_t k = 0; k < a.mu; ++k)
        require(a.parents[k] >= 0 && a.parents[k] < static_cast<std::int64_t>(population.shape(0)),
                "a parent lies outside the population");
    require(mean.shape(0) == a.n && path.shape(0) == a.n, "mean, path and population differ in dimension");
    a.mean = mean.data();
    a.path = path.data();
    a.decay = decay;
    a.gain = gain;
    a.archive_row = data_or_null(archive_row, a.n, "archive row and population differ in dimension");
    const auto run = table_of(level).recombine;
    nb::gil_scoped_release unlocked;
    over_coordinates(a.n, threads, [&a, run](std::size_t begin, std::size_t end) { run(a, begin, end); });
}

void scale_increments(const std::string& level, int threads, Array<double, 1> increments,
                      Array<const double, 1> weights, double rate, double limit, int noise, std::uint64_t seed,
                      std::uint32_t generation, std::uint32_t stream, std::uint32_t angle_stream) {
    const ScaleArguments a{increments.data(),       increments.shape(0), weights.data(),
                           weights.shape(0),        rate,                limit,
                           static_cast<Noise>(noise), seed,              generation,
                           stream,                  angle_stream};
    const auto run = table_of(level).scale_increments;
    nb::gil_scoped_release unlocked;
    over_coordinates(a.n, threads, [&a, run](std::size_t begin, std::size_t end) { run(a, begin, end); });
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "Compiled kernels of mmes: arrays in, arrays out.";
    m.def("simd_levels", &simd_levels);
    m.def("words", &words);
    m.def("normals", &normals);
    m.def("mixture_draws", &mixture_draws);
    m.def("sample", &sample);
    m.def("recombine", &recombine);
    m.def("scale_increments", &scale_increments);
    bind_reductions(m);
}
