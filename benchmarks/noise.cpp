// What the random numbers of the native kernel cost alone: nanoseconds per number, the lowest twentieth of many calls.
//
//     g++ -std=gnu++20 -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -mavx2 -mfma -DMMES_LEVEL=avx2 -I native
//         benchmarks/noise.cpp -o build/noise && build/noise
#include "noise.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

using namespace mmes;
using namespace mmes::MMES_LEVEL;

namespace {

constexpr std::size_t kCount = 1024, kDraws = 12;
alignas(64) float numbers[kCount];
alignas(64) std::uint32_t raw[kCount];

template <class Work>
double nanoseconds(Work work) {
    using Clock = std::chrono::steady_clock;
    std::vector<double> taken;
    for (std::uint32_t generation = 0; generation < 20000; ++generation) {
        const auto began = Clock::now();
        for (std::uint32_t draw = 0; draw < kDraws; ++draw) work(Address{1, kIsotropic, generation, draw});
        taken.push_back(std::chrono::duration<double, std::nano>(Clock::now() - began).count());
        asm volatile("" ::: "memory");
    }
    std::sort(taken.begin(), taken.end());
    return taken[taken.size() / 20] / (kCount * kDraws);
}

}  // namespace

int main() {
    const double words = nanoseconds([](Address at) {
        const Philox stream(at);
        for (std::size_t i = 0; i < kCount; i += kAtOnce) philox_chunks(raw + i, i / kChunk, stream);
    });
    const double normals = nanoseconds([](Address at) { fill_noise(numbers, 0, kCount, Noise::normal, at); });
    std::printf("random words %.2f ns, normals %.2f ns\n", words, normals);
}
