// The view "kinds": time by kind of library function: locks, I/O, allocation and so on.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// A line for each kind, and below it one for each of its functions.
//
// JSON: member "kinds", an array of name, calls, base_ns, cum_ns, and functions as in
// the flat view. For several groups: member "threads" or "processes", an array with
// "kinds" in each element.
std::unique_ptr<View> make_kinds_view(const ViewSettings& settings);

}  // namespace arctrace::reader
