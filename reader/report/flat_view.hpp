// The view "flat": a line for each function.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// JSON: member "functions", an array of name, module, recorded (if some calls were left
// out), calls, base_ns, cum_ns, and of their calls avg_ns, min_ns, max_ns, p50_ns,
// p90_ns, p99_ns, p999_ns, which are null where there are too few. For several groups:
// member "threads" or "processes", an array with "functions" in each element.
std::unique_ptr<View> make_flat_view(const ViewSettings& settings);

}  // namespace arctrace::reader
