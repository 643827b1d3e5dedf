// The extension module: checks the arrays, picks the SIMD level, splits coordinates among threads.
#include "records.hpp"

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

RecombineArguments recombine_arguments(const nb::tuple& record) {
    using Field = RecombineCall;
    const Record<Field> call(record);
    const auto population = call.optional_array<const double, 2>(Field::population);
    const auto parents = call.array<const std::int64_t, 1>(Field::parents);
    const auto weights = call.array<const double, 1>(Field::weights);
    const auto mean = call.array<double, 1>(Field::mean);
    const auto path = call.array<double, 1>(Field::path);
    RecombineArguments a{};
    a.n = a.stride = mean.shape(0);
    a.parents = parents.data();
    a.mu = parents.shape(0);
    a.weights = weights.data();
    require(weights.shape(0) == a.mu, "parents and weights differ in number");
    require(path.shape(0) == a.n, "path and mean differ in dimension");
    if (population) {
        require(population->shape(1) == a.n, "mean and population differ in dimension");
        a.population = population->data();
        for (std::size_t k = 0; k < a.mu; ++k)
            require(a.parents[k] >= 0 && a.parents[k] < static_cast<std::int64_t>(population->shape(0)),
                    "a parent lies outside the population");
    }
    a.mean = mean.data();
    a.path = path.data();
    a.decay = call.get<double>(Field::decay);
    a.gain = call.get<double>(Field::gain);
    const auto row = call.optional_array<float, 1>(Field::archive_row);
    a.archive_row = data_or_null(row, a.n, "archive row and mean differ in dimension");
    return a;
}

}  // namespace mmes

using namespace mmes;

namespace {

// Populations of more bytes than this leave the caches before they are evaluated.
constexpr std::size_t kCached = std::size_t{16} << 20;
// Parents that are made again take at most so many bytes at a time, so that they stay in the second-level cache.
constexpr std::size_t kStaged = std::size_t{512} << 10;

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

// The fields of DrawnRows, and what is drawn by them.
struct Drawn {
    Array<const double, 1> cumulative;
    Array<const std::int64_t, 1> order;
    std::size_t used;
    float factor;

    explicit Drawn(const Record<DrawnRows>& record)
        : cumulative(record.array<const double, 1>(DrawnRows::cumulative)),
          order(record.array<const std::int64_t, 1>(DrawnRows::order)),
          used(record.get<std::size_t>(DrawnRows::used)),
          factor(static_cast<float>(record.get<double>(DrawnRows::factor))) {
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
    const Drawn drawn{Record<DrawnRows>(record)};
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
        const auto array_of = [&box](const char* name) {
            return nb::cast<Array<const double, 1>>(box.attr(name), false);
        };
        lower = array_of("lower");
        upper = array_of("upper");
        arguments.lower = data_or_null(lower, n, "lower bounds and points differ in dimension");
        arguments.upper = data_or_null(upper, n, "upper bounds and points differ in dimension");
        if (arguments.treatment == Box::smooth) {
            knee = array_of("knee");
            arguments.knee = data_or_null(knee, n, "knees and points differ in dimension");
        }
    }
};

// A SampleCall, checked; its arrays live as long as this. Row k of a population is to hold candidate wanted[k], or
// candidate k.
struct Sampling {
    Record<StepLaw> law;
    Array<const double, 1> mean;
    std::optional<Array<const float, 2>> directions, factors;
    std::optional<Array<const std::int64_t, 2>> rows;
    std::optional<Array<const double, 1>> scale;
    std::optional<Array<const float, 1>> isotropic_each;
    BoxArrays box;
    std::vector<std::int64_t> places, own_rows;
    std::vector<float> own_factors;
    SampleArguments arguments{};

    Sampling(const KernelTable& kernel, const Record<SampleCall>& call, std::size_t count, const std::int64_t* wanted)
        : law(call[SampleCall::law]),
          mean(call.array<const double, 1>(SampleCall::mean)),
          directions(call.optional_array<const float, 2>(SampleCall::directions)),
          factors(law.optional_array<const float, 2>(StepLaw::factors)),
          rows(law.optional_array<const std::int64_t, 2>(StepLaw::rows)),
          scale(law.optional_array<const double, 1>(StepLaw::scale)),
          isotropic_each(law.optional_array<const float, 1>(StepLaw::isotropic_each)),
          box(call[SampleCall::box], mean.shape(0)) {
        SampleArguments& a = arguments;
        a.n = a.stride = mean.shape(0);
        a.draws = call.get<std::size_t>(SampleCall::draws);
        a.mean = mean.data();
        a.sigma = call.get<double>(SampleCall::sigma);
        a.scale = data_or_null(scale, a.n, "scale and mean differ in dimension");
        a.noise = {static_cast<Noise>(law.get<int>(StepLaw::noise)), call.get<std::uint64_t>(SampleCall::seed),
                   call.get<std::uint32_t>(SampleCall::generation)};
        a.isotropic = static_cast<float>(law.get<double>(StepLaw::isotropic));
        a.isotropic_each = data_or_null(isotropic_each, a.draws, "isotropic_each must have one factor per draw");
        a.scale_rows = law.get<bool>(StepLaw::scale_rows);
        a.box = box.arguments;
        place(count, wanted);
        mix(kernel);
    }

  private:
    void place(std::size_t count, const std::int64_t* wanted) {
        const std::size_t draws = arguments.draws;
        places.assign(2 * draws, -1);
        for (std::size_t k = 0; k < count; ++k) {
            const std::int64_t candidate = wanted != nullptr ? wanted[k] : static_cast<std::int64_t>(k);
            require(candidate >= 0 && static_cast<std::size_t>(candidate) < 2 * draws,
                    "a candidate is neither a draw nor the mirror image of one");
            std::int64_t& place = places[static_cast<std::size_t>(candidate)];
            require(place < 0, "a candidate is named twice");
            place = static_cast<std::int64_t>(k);
        }
        arguments.place = places.data();
        arguments.mirror_place = places.data() + draws;
    }

    void mix(const KernelTable& kernel) {
        SampleArguments& a = arguments;
        if (!law[StepLaw::drawn].is_none()) {
            const Drawn drawn{Record<DrawnRows>(law[StepLaw::drawn])};
            a.used = drawn.used;
            own_rows.resize(a.draws * a.used);
            own_factors.resize(a.draws * a.used);
            drawn.draw(kernel, own_rows.data(), own_factors.data(), a.draws, a.noise.seed, a.noise.generation);
            a.rows = own_rows.data();
            a.factors = own_factors.data();
        } else if (rows && factors) {
            a.used = rows->shape(1);
            const bool fit = rows->shape(0) == a.draws && factors->shape(0) == a.draws && factors->shape(1) == a.used;
            require(a.used == 0 || fit, "rows and factors must have one line per draw");
            a.rows = rows->data();
            a.factors = factors->data();
        }
        if (directions) {
            require(directions->shape(1) == a.n, "directions and mean differ in dimension");
            a.directions = directions->data();
        }
        const std::int64_t limit = directions ? static_cast<std::int64_t>(directions->shape(0)) : 0;
        for (std::size_t k = 0; k < a.used * a.draws; ++k)
            require(a.rows[k] < limit, "a row lies outside the directions");
    }
};

// `record` is a SampleCall; `kept` receives the isotropic parts.
void sample(const Level& level, int threads, nb::tuple record, std::optional<Array<float, 2>> kept) {
    const Record<SampleCall> call(record);
    const auto population = call.array<double, 2>(SampleCall::population);
    const auto mean = call.array<const double, 1>(SampleCall::mean);
    const auto wanted = call.optional_array<const std::int64_t, 1>(SampleCall::rows);
    const std::size_t count = population.shape(0);
    require(population.shape(1) == mean.shape(0), "mean and population differ in dimension");
    require(!wanted || wanted->shape(0) == count, "rows must name one candidate per row of the population");
    Sampling sampling(*level.kernels, call, count, wanted ? wanted->data() : nullptr);
    SampleArguments& a = sampling.arguments;
    a.population = population.data();
    a.kept = kept_noise(kept, a.draws, a.n);
    a.past_caches = count * a.n * sizeof(double) > kCached;
    const auto run = level.kernels->sample;
    nb::gil_scoped_release unlocked;
    over_coordinates(a.n, threads, [&a, run](std::size_t begin, std::size_t end) { run(a, begin, end); });
}

void recombine(const Level& level, int threads, nb::tuple call) {
    const RecombineArguments a = recombine_arguments(call);
    require(a.population != nullptr, "there is no population");
    const auto run = level.kernels->recombine;
    nb::gil_scoped_release unlocked;
    over_coordinates(a.n, threads, [&a, run](std::size_t begin, std::size_t end) { run(a, begin, end); });
}

// A SampleCall and a RecombineCall, both without a population; the parents are candidates.
void sample_and_recombine(const Level& level, int threads, nb::tuple sampled, nb::tuple step) {
    RecombineArguments b = recombine_arguments(step);
    const Sampling sampling(*level.kernels, Record<SampleCall>(sampled), b.mu, b.parents);
    const SampleArguments& a = sampling.arguments;
    require(a.mean == b.mean, "both calls must be about the same mean");
    // The parents are the rows of a population that never exists as a whole.
    std::vector<std::int64_t> in_order(b.mu);
    for (std::size_t k = 0; k < b.mu; ++k) in_order[k] = static_cast<std::int64_t>(k);
    b.parents = in_order.data();
    const std::size_t fitting = kStaged / sizeof(double) / std::max<std::size_t>(b.mu, 1) / kBlock * kBlock;
    const std::size_t width = std::clamp(fitting, kBlock, kTile);
    const auto run = level.kernels->sample_and_recombine;
    nb::gil_scoped_release unlocked;
    over_coordinates(a.n, threads, [&](std::size_t begin, std::size_t end) {
        const std::unique_ptr<double[]> memory(new double[b.mu * width]);
        run(a, b, memory.get(), width, begin, end);
    });
}

// `record` is a ScaleCall; `kept` is what `sample` kept of that generation. Returns what `Kernel.adapt_scale` does.
double adapt_scale(const Level& level, int threads, nb::tuple record, double limit,
                   std::optional<Array<float, 2>> kept) {
    const Record<ScaleCall> call(record);
    const auto scale = call.array<double, 1>(ScaleCall::scale);
    const auto weights = call.array<const double, 1>(ScaleCall::weights);
    const bool learning = !call[ScaleCall::lessons].is_none();
    const std::size_t n = scale.shape(0);
    const double rate = call.get<double>(ScaleCall::rate), count = static_cast<double>(n);
    std::vector<double> sums((n + kTile - 1) / kTile), squares;
    const std::unique_ptr<double[]> increments(new double[n]);  // not filled
    const ScaleArguments a{increments.get(),
                           sums.data(),
                           weights.data(),
                           weights.shape(0),
                           learning ? 1.0 : rate,
                           learning ? std::numeric_limits<double>::infinity() : limit,
                           {static_cast<Noise>(call.get<int>(ScaleCall::noise)),
                            call.get<std::uint64_t>(ScaleCall::seed), call.get<std::uint32_t>(ScaleCall::generation)},
                           kept_noise(kept, weights.shape(0), n)};
    LessonArguments lessons{};
    if (learning) {
        const Record<Lessons> given(call[ScaleCall::lessons]);
        const auto path = given.array<double, 1>(Lessons::path);
        require(path.shape(0) == n, "path and scale differ in length");
        squares.resize(sums.size());
        lessons = {path.data(),
                   increments.get(),
                   sums.data(),
                   squares.data(),
                   0.0,
                   rate,
                   limit,
                   given.get<double>(Lessons::decay),
                   given.get<double>(Lessons::gain),
                   given.get<double>(Lessons::factor),
                   given.get<double>(Lessons::slope),
                   given.get<double>(Lessons::threshold),
                   given.get<double>(Lessons::fastest)};
    }
    double* entries = scale.data();
    const KernelTable& kernel = *level.kernels;
    nb::gil_scoped_release unlocked;
    over_coordinates(n, threads, [&](std::size_t begin, std::size_t end) { kernel.scale_increments(a, begin, end); });
    if (learning) {
        lessons.mean = exact_sum(sums) / count;
        over_coordinates(n, threads, [&](std::size_t begin, std::size_t end) { kernel.learn(lessons, begin, end); });
    }
    // Less the mean: the overall size belongs to sigma.
    const double mean = exact_sum(sums) / count;
    over_coordinates(n, threads, [&](std::size_t begin, std::size_t end) {
        kernel.grow(entries + begin, increments.get() + begin, mean, end - begin);
    });
    return exact_sum(squares);
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
    m.attr("RECORDS") = record_fields();
    m.def("simd_levels", &simd_levels);
    nb::class_<Level>(m, "Level").def(nb::init<const std::string&>());
    m.def("words", &words);
    m.def("uniforms", &uniforms);
    m.def("normals", &normals);
    m.def("drawn_rows", &drawn_rows);
    m.def("sample", &sample, nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
    m.def("recombine", &recombine);
    m.def("sample_and_recombine", &sample_and_recombine);
    m.def("adapt_scale", &adapt_scale, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
    m.def("confine", &confine);
    bind_reductions(m);
    bind_short(m);
}
