// The view "arcs": each function with its callers and its callees.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// For each function its parents, itself, and its children, a line each.
//
// JSON: member "arcs", an array of functions as the flat view has them, each with parents
// and children. For several groups: member "threads" or "processes", an array with "arcs"
// in each element.
std::unique_ptr<View> make_arcs_view(const ViewSettings& settings);

}  // namespace arctrace::reader
