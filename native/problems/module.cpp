// mmes.problems._compiled: checks the arrays, chooses the SIMD level, releases the interpreter lock.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "composition.hpp"
#include "rows.hpp"

namespace nb = nanobind;
using namespace mmes::problems;

namespace {

template <typename T, int dimensions>
using Array = nb::ndarray<const T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

struct Level {
    const char* name;
    Evaluate* evaluate;
    EvaluateRows* evaluate_rows;
};

// What this machine can run, best first.
std::vector<Level> available_levels() {
    std::vector<Level> levels;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
        levels.push_back({"avx512", avx512::evaluate, avx512::evaluate_rows});
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        levels.push_back({"avx2", avx2::evaluate, avx2::evaluate_rows});
#endif
    levels.push_back({"baseline", baseline::evaluate, baseline::evaluate_rows});
    return levels;
}

const std::vector<Level>& levels() {
    static const std::vector<Level> found = available_levels();
    return found;
}

const Level& find_level(const std::string& name) {
    for (const Level& level : levels())
        if (name.empty() || name == level.name) return level;
    throw std::invalid_argument("level '" + name + "' is not one that this machine has");
}

struct Free {
    void operator()(double* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
};
using Scratch = std::unique_ptr<double[], Free>;

Scratch allocate(size_t count) {
    return Scratch(static_cast<double*>(::operator new[](count * sizeof(double), std::align_val_t{64})));
}

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

// The values as an array that frees them.
Values owned(std::unique_ptr<double[]>& values, size_t count) {
    nb::capsule owner(values.get(), [](void* memory) noexcept { delete[] static_cast<double*>(memory); });
    return Values(values.release(), {count}, owner);
}

// Everything that `evaluate` relies on; a wrong array must never become a wrong address.
std::vector<Part> checked_parts(const Array<int64_t, 2>& table, const Array<double, 1>& weights, int64_t total,
                                int64_t matrix_entries) {
    require(table.shape(1) == 5, "a part has 5 integers");
    require(weights.shape(0) == table.shape(0), "there must be one weight for each part");
    std::vector<Part> parts(table.shape(0));
    for (size_t i = 0; i < parts.size(); ++i) {
        const int64_t* row = table.data() + 5 * i;
        const int64_t base = row[0], transforms = row[1], start = row[2], size = row[3], matrix = row[4];
        require(base >= 0 && base < (int64_t)Base::count, "unknown base function");
        require(transforms == 0 || transforms == 1 || transforms == 3 || transforms == 7,
                "transformations must be none, T_osz, T_osz and T_asy, or all three");
        require(start >= 0 && size > 0 && size <= total && start <= total - size, "a part exceeds the arrays");
        require(matrix == -1 || (matrix >= 0 && size <= matrix_entries / size && matrix <= matrix_entries - size * size),
                "a matrix exceeds the array of matrices");
        parts[i] = {(Base)base, (int32_t)transforms, (int32_t)start, (int32_t)size, matrix, weights.data()[i]};
    }
    return parts;
}

// A composition whose arrays were checked once, since a single point is evaluated in less time than that takes.
class Prepared {
  public:
    Prepared(Array<int64_t, 2> table, Array<double, 1> weights, Array<int32_t, 1> variables,
             Array<double, 2> coefficients, Array<double, 1> matrices)
        : variables_(variables), coefficients_(coefficients), matrices_(matrices) {
        const int64_t total = (int64_t)variables.shape(0);
        require(coefficients.shape(0) == 4 && (int64_t)coefficients.shape(1) == total,
                "coefficients must be four rows as long as the variables");
        parts_ = checked_parts(table, weights, total, (int64_t)matrices.shape(0));
        for (int64_t i = 0; i < total; ++i) {
            require(variables.data()[i] >= 0, "there is a variable that the points do not have");
            needed_ = std::max<int64_t>(needed_, variables.data()[i] + int64_t{1});
        }
        for (const Part& part : parts_) largest_ = std::max<int64_t>(largest_, part.size);
    }

    Values evaluate(Array<double, 2> points, const std::string& level) const {
        const Level& chosen = find_level(level);
        const int64_t dimension = (int64_t)points.shape(1), total = (int64_t)variables_.shape(0);
        require(needed_ <= dimension, "there is a variable that the points do not have");
        const double* rows = coefficients_.data();
        const Composition composition{
            .parts = parts_.data(),
            .part_count = (int64_t)parts_.size(),
            .index = variables_.data(),
            .shift = rows,
            .elliptic = rows + total,
            .asymmetry = rows + 2 * total,
            .scale = rows + 3 * total,
            .matrices = matrices_.data(),
            .dimension = dimension,
            .largest = largest_,
        };
        const size_t count = points.shape(0);
        std::unique_ptr<double[]> values(new double[count]);
        {
            nb::gil_scoped_release unlocked;
            const Scratch scratch = allocate(2 * widest_lanes * largest_);
            chosen.evaluate(composition, points.data(), (int64_t)count, values.get(), scratch.get());
        }
        return owned(values, count);
    }

  private:
    Array<int32_t, 1> variables_;
    Array<double, 2> coefficients_;
    Array<double, 1> matrices_;
    std::vector<Part> parts_;
    int64_t needed_ = 0, largest_ = 0;
};

Values evaluate_rows(Array<double, 2> points, int kind, Array<double, 1> coefficients, const std::string& level) {
    const Level& chosen = find_level(level);
    const size_t count = points.shape(0), dimension = points.shape(1), given = coefficients.shape(0);
    require(kind >= 0 && kind < (int)Kind::count, "unknown kind of function");
    require(dimension >= (kind == (int)Kind::rosenbrock ? 2u : 1u), "the points have too few variables");
    const size_t needed = kind == (int)Kind::squares ? 2 : kind == (int)Kind::rosenbrock ? 0 : dimension;
    require(given == needed, "the number of coefficients does not fit the function");
    std::unique_ptr<double[]> values(new double[count]);
    {
        nb::gil_scoped_release unlocked;
        chosen.evaluate_rows((Kind)kind, coefficients.data(), points.data(), (int64_t)count, (int64_t)dimension,
                             values.get());
    }
    return owned(values, count);
}

}  // namespace

NB_MODULE(_compiled, m) {
    m.doc() = "Fast evaluation of the problems; mmes.problems.functions and .composition are the readable version.";
    // A problem that is still held when Python ends is no fault to be reported to the user.
    nb::set_leak_warnings(false);
    nb::class_<Prepared>(m, "Composition",
                         "Parts: base, transforms, start, size and matrix of each; coefficients: rows of shifts, "
                         "elliptic weights, asymmetries and scales.")
        .def(nb::init<Array<int64_t, 2>, Array<double, 1>, Array<int32_t, 1>, Array<double, 2>, Array<double, 1>>(),
             nb::arg("parts"), nb::arg("weights"), nb::arg("variables"), nb::arg("coefficients"), nb::arg("matrices"))
        .def("evaluate", &Prepared::evaluate, nb::arg("points"), nb::arg("level") = "",
             "Return the values of the points (rows).");
    m.def("evaluate_rows", &evaluate_rows, nb::arg("points"), nb::arg("kind"), nb::arg("coefficients"),
          nb::arg("level") = "", "Return the values of a basic problem at the points (rows).");
    m.def(
        "levels",
        [] {
            std::vector<std::string> names;
            for (const Level& level : levels()) names.emplace_back(level.name);
            return names;
        },
        "Return the names of the SIMD levels that this machine has, best first.");
}
