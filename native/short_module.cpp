// The extension module's loops over short arrays, with one entry per candidate or direction: mmes.kernels.short in C++.
#include "binding.hpp"

namespace mmes {

// Shewchuk (1997): `partials` never overlap.
double exact_sum(const std::vector<double>& terms) {
    std::vector<double> partials;
    for (double x : terms) {
        std::size_t used = 0;
        for (double y : partials) {
            if (std::abs(x) < std::abs(y)) std::swap(x, y);
            const double high = x + y, low = y - (high - x);
            if (low != 0.0) partials[used++] = low;
            x = high;
        }
        partials.resize(used);
        partials.push_back(x);
    }
    double high = 0.0, low = 0.0;
    std::size_t left = partials.size();
    if (left > 0) high = partials[--left];
    while (left > 0) {
        const double x = high, y = partials[--left];
        high = x + y;
        low = y - (high - x);
        if (low != 0.0) break;
    }
    // Half-way cases are decided by the sign of what is left.
    if (left > 0 && (low < 0.0) == (partials[left - 1] < 0.0) && low != 0.0 && partials[left - 1] != 0.0) {
        const double twice = 2.0 * low, up = high + twice;
        if (twice == up - high) high = up;
    }
    return high;
}

}  // namespace mmes

using namespace mmes;

namespace {

std::int64_t renew(Array<std::int64_t, 1> order, Array<const std::int64_t, 1> stamps, double spacing) {
    const std::size_t count = order.shape(0);
    require(count > 0, "the archive is empty");
    std::int64_t* rows = order.data();
    for (std::size_t k = 0; k < count; ++k)
        require(rows[k] >= 0 && static_cast<std::size_t>(rows[k]) < stamps.shape(0), "a row lies outside the archive");
    std::size_t place = 0;
    if (count > 1) {
        std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
        for (std::size_t k = 1; k < count; ++k) {
            const std::int64_t gap = stamps.data()[rows[k]] - stamps.data()[rows[k - 1]];
            if (gap < smallest) smallest = gap, place = k;
        }
        if (static_cast<double>(smallest) > spacing) place = 0;
    }
    std::rotate(rows + place, rows + place + 1, rows + count);
    return rows[count - 1];
}

double success_share(Array<const double, 1> best, Array<const double, 1> previous, Array<const double, 1> weights) {
    const std::size_t count = weights.shape(0);
    require(best.shape(0) == count && previous.shape(0) == count, "values and weights differ in number");
    std::vector<double> terms;
    terms.reserve(count);
    for (std::size_t k = 0; k < count; ++k) {
        const double now = best.data()[k], before = previous.data()[k], weight = weights.data()[k];
        if (now <= before) terms.push_back(now < before ? weight : 0.5 * weight);
    }
    return exact_sum(terms);
}

// The candidates of a ranking, checked: each at most once, and none but draws and mirror images of draws.
void require_ranking(const Array<const std::int64_t, 1>& ranking, std::size_t draws) {
    const std::size_t count = ranking.shape(0);
    require(draws <= count && count <= 2 * draws, "candidates are neither draws nor mirror images of draws");
    for (std::size_t rank = 0; rank < count; ++rank)
        require(ranking.data()[rank] >= 0 && static_cast<std::size_t>(ranking.data()[rank]) < count,
                "the ranking names an unknown candidate");
}

void add_by_draw(Array<double, 1> total, Array<const std::int64_t, 1> ranking, Array<const double, 1> by_rank) {
    const std::size_t draws = total.shape(0);
    require_ranking(ranking, draws);
    require(by_rank.shape(0) == ranking.shape(0), "ranks and weights differ in number");
    for (std::size_t rank = 0; rank < ranking.shape(0); ++rank)
        total.data()[static_cast<std::size_t>(ranking.data()[rank]) % draws] += by_rank.data()[rank];
}

double opposition(Array<const std::int64_t, 1> ranking, std::size_t draws) {
    require_ranking(ranking, draws);
    const std::size_t count = ranking.shape(0);
    const double middle = static_cast<double>(count - 1) / 2;
    std::vector<double> ranks(count);
    for (std::size_t rank = 0; rank < count; ++rank)
        ranks[static_cast<std::size_t>(ranking.data()[rank])] = static_cast<double>(rank) - middle;
    std::vector<double> products;
    for (std::size_t image = draws; image < count; ++image) products.push_back(ranks[image - draws] * ranks[image]);
    return exact_sum(products);
}

}  // namespace

void mmes::bind_short(nb::module_& m) {
    m.def("renew", &renew, nb::arg("order").noconvert(), nb::arg("stamps"), nb::arg("spacing"));
    m.def("add_by_draw", &add_by_draw, nb::arg("total").noconvert(), nb::arg("ranking"), nb::arg("by_rank"));
    m.def("opposition", &opposition, nb::arg("ranking"), nb::arg("draws"));
    m.def("success_share", &success_share, nb::arg("best"), nb::arg("previous"), nb::arg("weights"));
}
