// What the parts of the extension module share: array types, checks, and the splitting of coordinates among threads.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "reductions.hpp"

namespace mmes {

namespace nb = nanobind;

template <class T, std::size_t dims>
using Array = nb::ndarray<T, nb::ndim<dims>, nb::c_contig, nb::device::cpu>;

// The SIMD levels of this processor, best first.
std::vector<std::string> simd_levels();

// The functions of one SIMD level, found once for each kernel object.
struct Level {
    const KernelTable* kernels = &baseline::table;
    const ReductionTable* reductions = &baseline::reductions;
    explicit Level(const std::string& name);
};

void bind_reductions(nb::module_& m);
void bind_short(nb::module_& m);

// The sum, rounded once, as Python's math.fsum has it.
double exact_sum(const std::vector<double>& terms);

// What `recombine` and `step_squares` are called with, a RecombineCall, checked; the population is null without one.
RecombineArguments recombine_arguments(const nb::tuple& record);

inline void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

// Runs work(begin, end) over [0, n) in ranges of whole tiles, one thread each.
template <class Work>
void over_coordinates(std::size_t n, int threads, Work work) {
    const std::size_t tiles = (n + kTile - 1) / kTile;
    const std::size_t parts = std::min<std::size_t>(static_cast<std::size_t>(std::max(threads, 1)), tiles);
    if (parts <= 1) return work(std::size_t{0}, n);
    const auto edge = [&](std::size_t part) { return std::min(n, tiles * part / parts * kTile); };
    std::vector<std::jthread> crew;
    for (std::size_t part = 1; part < parts; ++part) crew.emplace_back(work, edge(part), edge(part + 1));
    work(std::size_t{0}, edge(1));
}

template <class T>
T* data_or_null(const std::optional<Array<T, 1>>& array, std::size_t n, const char* what) {
    if (!array) return nullptr;
    require(array->shape(0) == n, what);
    return array->data();
}

// Checks memory for the noise of some draws.
inline KeptNoise kept_noise(const std::optional<Array<float, 2>>& kept, std::size_t draws, std::size_t n) {
    if (!kept) return {};
    require(kept->shape(0) == draws && kept->shape(1) % kBlock == 0 && kept->shape(1) >= n &&
                reinterpret_cast<std::uintptr_t>(kept->data()) % 64 == 0,
            "kept noise must have one line per draw, with room for whole blocks of coordinates");
    return {kept->data(), kept->shape(1)};
}

}  // namespace mmes
