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

Level::Level(const std::string& name) {
    const auto levels = simd_levels();
    if (std::find(levels.begin(), levels.end(), name) == levels.end())
        throw std::invalid_argument("simd level '" + name + "' is not one this processor has");
#if defined(__x86_64__)
    if (name == "avx512") kernels = &avx512::table, reductions = &avx512::reductions;
    if (name == "avx2") kernels = &avx2::table, reductions = &avx2::reductions;
#endif
}

// `call` holds the fields of mmes.kernels.protocol.RecombineCall in its order.
RecombineArguments recombine_arguments(const nb::tuple& call) {
    const auto population = nb::cast<Array<const double, 2>>(call[0], false);
    const auto parents = nb::cast<Array<const std::int64_t, 1>>(call[1], false);
    const auto weights = nb::cast<Array<const double, 1>>(call[2], false);
    const auto mean = nb::cast<Array<double, 1>>(call[3], false);
    const auto path = nb::cast<Array<double, 1>>(call[4], false);
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
    a.decay = nb::cast<double>(call[5]);
    a.gain = nb::cast<double>(call[6]);
    if (!call[7].is_none()) {
        const auto row = nb::cast<Array<float, 1>>(call[7], false);
        require(row.shape(0) == a.n, "archive row and population differ in dimension");
        a.archive_row = row.data();
    }
    return a;
}

}  // namespace mmes

using namespace mmes;

namespace {

// Populations of more bytes than this leave the caches before they are evaluated.
constexpr std::size_t kCached = std::size_t{16} << 20;

void words(const Level& level, Array<std::uint32_t, 1> out, std::uint64_t seed, std::uint32_t stream,
           std::uint32_t generation, std::uint32_t candidate) {
    level.kernels->words(out.data(), out.shape(0), {seed, stream, generation, candidate});
}

void uniforms(const Level& level, Array<double, 1> out, std::uint64_t seed, std::uint32_t stream,
              std::uint32_t generation, std::uint32_t candidate) {
    level.kernels->uniforms(out.data(), out.shape(0), {seed, stream, generation, candidate});
}

void normals(const Level& level, Array<float, 1> out, std::uint64_t seed, std::uint32_t stream,
             std::uint32_t generation, std::uint32_t candidate) {
    level.kernels->normals(out.data(), out.shape(0), {seed, stream, generation, candidate});
}

// The array behind an entry of a call record; null where the entry is None.
template <class T, std::size_t dims>
std::optional<Array<T, dims>> optional_array(const nb::handle& entry) {
    if (entry.is_none()) return std::nullopt;
    return nb::cast<Array<T, dims>>(entry, false);
}

template <class T, std::size_t dims>
Array<T, dims> array_of(const nb::handle& entry) {
    return nb::cast<Array<T, dims>>(entry, false);
}

// The fields of mmes.kernels.protocol.DrawnRows, in its order.
struct Drawn {
    Array<const double, 1> cumulative;
    Array<const std::int64_t, 1> order;
    std::size_t used;
    float factor;

    explicit Drawn(const nb::tuple& record)
        : cumulative(array_of<const double, 1>(record[0])),
          order(array_of<const std::int64_t, 1>(record[1])),
          used(nb::cast<std::size_t>(record[2])),
          factor(static_cast<float>(nb::cast<double>(record[3]))) {
        require(cumulative.shape(0) > 0, "the law of the ages is empty");
    }

    // The first age whose cumulative probability is above u. Without branches, which would be guessed wrongly.
    std::int64_t age_of(double u) const {
        const double* first = cumulative.data();
        std::size_t left = cumulative.shape(0) - 1;
        while (left > 0) {
            const std::size_t half = (left + 1) / 2;
            first += first[half - 1] <= u ? half : 0;
            left -= half;
        }
        return first - cumulative.data();
    }

    // The rows that each draw takes, and their factors; an age beyond the stored rows is an empty slot.
    void draw(const KernelTable& kernel, std::int64_t* rows, float* factors, std::size_t draws, std::uint64_t seed,
              std::uint32_t generation) const {
        std::vector<std::uint32_t> raw(used * draws);
        const Address indices{seed, kMixtureIndex, generation, 0}, normals{seed, kMixtureFactor, generation, 0};
        if (used <= kLanes) {
            kernel.first_words(raw.data(), used, draws, indices);
            kernel.first_normals(factors, used, draws, normals);
        } else {
            for (std::size_t i = 0; i < draws; ++i) {
                kernel.words(raw.data() + i * used, used, indices.of(i));
                kernel.normals(factors + i * used, used, normals.of(i));
            }
        }
        const auto stored = static_cast<std::int64_t>(order.shape(0));
        for (std::size_t k = 0; k < used * draws; ++k) {
            const double u = (static_cast<double>(raw[k]) + 0.5) * 0x1p-32;
            const std::int64_t age = age_of(u);
            rows[k] = age < stored ? order.data()[stored - 1 - age] : -1;
            factors[k] *= factor;
        }
    }
};

void drawn_rows(const Level& level, Array<std::int64_t, 2> rows, Array<float, 2> factors, nb::tuple record,
                std::uint64_t seed, std::uint32_t generation) {
    const Drawn drawn(record);
    require(rows.shape(1) == drawn.used && factors.shape(1) == drawn.used && factors.shape(0) == rows.shape(0),
            "rows and factors must have one line per draw");
    drawn.draw(*level.kernels, rows.data(), factors.data(), rows.shape(0), seed, generation);
}

// A mmes.spaces.boxes.Box; its arrays live as long as this.
struct BoxArrays {
    std::optional<Array<const double, 1>> lower, upper, knee;
    BoxArguments arguments{};

    BoxArrays(const nb::handle& box, std::size_t n) {
        if (box.is_none()) return;
        const int code = nb::cast<int>(box.attr("code"));
        if (code < 0) return;  // a treatment of its own, which Python carries out
        arguments.treatment = static_cast<Box>(code);
        lower = array_of<const double, 1>(box.attr("lower"));
        upper = array_of<const double, 1>(box.attr("upper"));
        arguments.lower = data_or_null(lower, n, "lower bounds and points differ in dimension");
        arguments.upper = data_or_null(upper, n, "upper bounds and points differ in dimension");
        if (arguments.treatment == Box::smooth) {
            knee = array_of<const double, 1>(box.attr("knee"));
            arguments.knee = data_or_null(knee, n, "knees and points differ in dimension");
        }
    }
};

// Checks memory for the noise of some draws.
KeptNoise kept_noise(const std::optional<Array<float, 2>>& kept, std::size_t draws, std::size_t n) {
    if (!kept) return {};
    require(kept->shape(0) == draws && kept->shape(1) % kBlock == 0 && kept->shape(1) >= n &&
                reinterpret_cast<std::uintptr_t>(kept->data()) % 64 == 0,
            "kept noise must have one line per draw, with room for whole blocks of coordinates");
    return {kept->data(), kept->shape(1)};
}

// `call` holds the fields of mmes.kernels.protocol.SampleCall in its order, and its law those of StepLaw; `kept` receives
// the isotropic parts.
void sample(const Level& level, int threads, nb::tuple call, std::optional<Array<float, 2>> kept) {
    const KernelTable& kernel = *level.kernels;
    const auto population = array_of<double, 2>(call[0]);
    const auto mean = array_of<const double, 1>(call[2]);
    const auto directions = optional_array<const float, 2>(call[4]);
    const auto law = nb::cast<nb::tuple>(call[5]);
    const auto wanted = optional_array<const std::int64_t, 1>(call[9]);
    const auto rows = optional_array<const std::int64_t, 2>(law[1]);
    const auto factors = optional_array<const float, 2>(law[2]);
    const auto scale = optional_array<const double, 1>(law[4]);
    const auto isotropic_each = optional_array<const float, 1>(law[6]);

    SampleArguments a{};
    const std::size_t count = population.shape(0), draws = nb::cast<std::size_t>(call[1]);
    a.population = population.data();
    a.n = population.shape(1);
    a.draws = draws;
    require(mean.shape(0) == a.n, "mean and population differ in dimension");
    a.mean = mean.data();
    a.sigma = nb::cast<double>(call[3]);
    a.scale = data_or_null(scale, a.n, "scale and population differ in dimension");
    a.noise = {static_cast<Noise>(nb::cast<int>(law[3])), nb::cast<std::uint64_t>(call[7]),
               nb::cast<std::uint32_t>(call[8])};

    std::vector<std::int64_t> places(2 * draws, -1);
    for (std::size_t k = 0; k < count; ++k) {
        const std::int64_t candidate = wanted ? wanted->data()[k] : static_cast<std::int64_t>(k);
        require(candidate >= 0 && static_cast<std::size_t>(candidate) < 2 * draws,
                "a candidate is neither a draw nor the mirror image of one");
        places[static_cast<std::size_t>(candidate)] = static_cast<std::int64_t>(k);
    }
    require(!wanted || wanted->shape(0) == count, "rows must name one candidate per row of the population");
    a.place = places.data();
    a.mirror_place = places.data() + draws;

    std::vector<std::int64_t> own_rows;
    std::vector<float> own_factors;
    if (!law[7].is_none()) {
        const Drawn drawn(nb::cast<nb::tuple>(law[7]));
        a.used = drawn.used;
        own_rows.resize(draws * a.used);
        own_factors.resize(draws * a.used);
        drawn.draw(kernel, own_rows.data(), own_factors.data(), draws, a.noise.seed, a.noise.generation);
        a.rows = own_rows.data();
        a.factors = own_factors.data();
    } else if (rows && factors) {
        a.used = rows->shape(1);
        require(a.used == 0 || (rows->shape(0) == draws && factors->shape(0) == draws && factors->shape(1) == a.used),
                "rows and factors must have one line per draw");
        a.rows = rows->data();
        a.factors = factors->data();
    }
    if (directions) {
        require(directions->shape(1) == a.n, "directions and population differ in dimension");
        a.directions = directions->data();
    }
    const std::int64_t limit = directions ? static_cast<std::int64_t>(directions->shape(0)) : 0;
    for (std::size_t k = 0; k < a.used * draws; ++k) require(a.rows[k] < limit, "a row lies outside the directions");
    a.isotropic = static_cast<float>(nb::cast<double>(law[0]));
    a.isotropic_each = data_or_null(isotropic_each, draws, "isotropic_each must have one factor per draw");
    a.scale_rows = nb::cast<bool>(law[5]);
    const BoxArrays box(call[6], a.n);
    a.box = box.arguments;
    a.kept = kept_noise(kept, draws, a.n);
    a.past_caches = count * a.n * sizeof(double) > kCached;
    const auto run = kernel.sample;
    nb::gil_scoped_release unlocked;
    over_coordinates(a.n, threads, [&a, run](std::size_t begin, std::size_t end) { run(a, begin, end); });
}

void recombine(const Level& level, int threads, nb::tuple call) {
    const RecombineArguments a = recombine_arguments(call);
    const auto run = level.kernels->recombine;
    nb::gil_scoped_release unlocked;
    over_coordinates(a.n, threads, [&a, run](std::size_t begin, std::size_t end) { run(a, begin, end); });
}

// `call` holds the fields of mmes.kernels.protocol.ScaleCall in its order; `kept` is what `sample` kept of that generation.
void adapt_scale(const Level& level, int threads, nb::tuple call, double limit, std::optional<Array<float, 2>> kept) {
    const auto scale = array_of<double, 1>(call[0]);
    const auto weights = array_of<const double, 1>(call[1]);
    const std::size_t n = scale.shape(0);
    std::vector<double> sums((n + kTile - 1) / kTile);
    const std::unique_ptr<double[]> increments(new double[n]);  // not filled
    const ScaleArguments a{increments.get(),
                           sums.data(),
                           weights.data(),
                           weights.shape(0),
                           nb::cast<double>(call[2]),
                           limit,
                           {static_cast<Noise>(nb::cast<int>(call[3])), nb::cast<std::uint64_t>(call[4]),
                            nb::cast<std::uint32_t>(call[5])},
                           kept_noise(kept, weights.shape(0), n)};
    double* entries = scale.data();
    const KernelTable& kernel = *level.kernels;
    nb::gil_scoped_release unlocked;
    over_coordinates(n, threads, [&](std::size_t begin, std::size_t end) { kernel.scale_increments(a, begin, end); });
    // Less the mean: the overall size belongs to sigma.
    const double mean = exact_sum(sums) / static_cast<double>(n);
    over_coordinates(n, threads, [&](std::size_t begin, std::size_t end) {
        kernel.grow(entries + begin, increments.get() + begin, mean, end - begin);
    });
}

void confine(const Level& level, int threads, Array<double, 2> image, Array<const double, 2> points,
             nb::object box) {
    const std::size_t rows = points.shape(0), n = points.shape(1);
    require(image.shape(0) == rows && image.shape(1) == n, "image and points differ in shape");
    const BoxArrays arrays(box, n);
    double* to = image.data();
    const double* from = points.data();
    const auto run = level.kernels->confine;
    nb::gil_scoped_release unlocked;
    over_coordinates(n, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t row = 0; row < rows; ++row) run(to + row * n, from + row * n, arrays.arguments, begin, end);
    });
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "Compiled kernels of mmes: arrays in, arrays out.";
    // A kernel that is still held when Python ends is no fault to be reported to the user.
    nb::set_leak_warnings(false);
    m.def("simd_levels", &simd_levels);
    nb::class_<Level>(m, "Level").def(nb::init<const std::string&>());
    m.def("words", &words);
    m.def("uniforms", &uniforms);
    m.def("normals", &normals);
    m.def("drawn_rows", &drawn_rows);
    m.def("sample", &sample, nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
    m.def("recombine", &recombine);
    m.def("adapt_scale", &adapt_scale, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
    m.def("confine", &confine);
    bind_reductions(m);
    bind_short(m);
}
