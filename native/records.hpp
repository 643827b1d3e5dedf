// The records of mmes/kernels/protocol.py as C++ reads them: tuples, a field at a time, by its name.
//
// The places of the fields are those listed here. The module lists them too (`RECORDS`), and mmes/kernels/native.py
// compares them with the records of Python when it is imported, so that a call need not.
#pragma once

#include "binding.hpp"

namespace mmes {

#define MMES_RECORD(Name, ...)                              \
    struct Name {                                           \
        enum Field : std::size_t { __VA_ARGS__, number };   \
        static constexpr const char* fields = #__VA_ARGS__; \
    };

MMES_RECORD(DrawnRows, cumulative, order, used, factor)
MMES_RECORD(StepLaw, isotropic, rows, factors, noise, scale, scale_rows, isotropic_each, drawn)
MMES_RECORD(SampleCall, population, draws, mean, sigma, directions, law, box, seed, generation, rows, keep_noise)
MMES_RECORD(RecombineCall, population, parents, weights, mean, path, decay, gain, archive_row, ranking)
MMES_RECORD(Lessons, path, decay, gain, factor, slope, threshold, fastest)
MMES_RECORD(ScaleCall, scale, weights, rate, noise, seed, generation, lessons)
MMES_RECORD(NoiseWithin, population, weights, draws, mean, scale, size, box, noise, seed, generation)

#undef MMES_RECORD

// A record of one kind; a field of another kind is refused by the compiler.
template <class Kind>
struct Record {
    nb::tuple entries;

    explicit Record(nb::tuple tuple) : entries(std::move(tuple)) {
        require(entries.size() == Kind::number, "a record has too few or too many fields");
    }
    explicit Record(const nb::handle& entry) : Record(nb::cast<nb::tuple>(entry)) {}

    nb::handle operator[](typename Kind::Field field) const { return entries[static_cast<std::size_t>(field)]; }

    template <class T>
    T get(typename Kind::Field field) const {
        return nb::cast<T>((*this)[field]);
    }
    template <class T, std::size_t dims>
    Array<T, dims> array(typename Kind::Field field) const {
        return nb::cast<Array<T, dims>>((*this)[field], false);
    }
    // The array of a field; nothing where it is None.
    template <class T, std::size_t dims>
    std::optional<Array<T, dims>> optional_array(typename Kind::Field field) const {
        if ((*this)[field].is_none()) return std::nullopt;
        return array<T, dims>(field);
    }
};

// The fields of each record, in their order.
inline nb::dict record_fields() {
    nb::dict fields;
    fields["DrawnRows"] = DrawnRows::fields;
    fields["StepLaw"] = StepLaw::fields;
    fields["SampleCall"] = SampleCall::fields;
    fields["RecombineCall"] = RecombineCall::fields;
    fields["Lessons"] = Lessons::fields;
    fields["ScaleCall"] = ScaleCall::fields;
    fields["NoiseWithin"] = NoiseWithin::fields;
    return fields;
}

}  // namespace mmes
