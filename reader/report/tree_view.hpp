// The view "tree": call trees, one for each thread or process, or one for all.
#pragma once

#include <memory>

#include "reader/report/view.hpp"

namespace arctrace::reader {

// Columns: level, recursion level, calls, shares and times of the function itself (self)
// and with all it called (total), and the name, indented by level.
//
// JSON: member "threads", "processes" or "all", an array: for each tree pid, tid, name,
// and root, an object of name, calls, base_ns, cum_ns and children, or null if the
// options hide even the root.
std::unique_ptr<View> make_tree_view(const ViewSettings& settings);

}  // namespace arctrace::reader
