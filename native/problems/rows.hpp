// The basic problems: sums over the variables of a point, streamed row by row without buffers.
#pragma once

#include <stdint.h>

namespace mmes::problems {

// The numbers of functions.py. Coefficients: of the first square and of all others; of each square; of no kind; the
// exponent of each variable.
enum class Kind : int32_t { squares, ellipsoid, rosenbrock, powers, count };

// Writes the values of `count` points, rows of `dimension` doubles.
using EvaluateRows = void(Kind, const double* coefficients, const double* points, int64_t count, int64_t dimension,
                          double* values);
namespace baseline { EvaluateRows evaluate_rows; }
namespace avx2 { EvaluateRows evaluate_rows; }
namespace avx512 { EvaluateRows evaluate_rows; }

}  // namespace mmes::problems
