// The rows of views that show whole call trees: tree and log-rt.
#pragma once

#include <absl/functional/function_ref.h>

#include <cstdint>

#include "reader/analysis/tree_groups.hpp"
#include "reader/analysis/tree_walk.hpp"
#include "reader/render/view_options.hpp"

namespace arctrace::reader {

// Calls `row` for the nodes that `options` shows, until it returns false. Returns how
// many subtrees are hidden: those that are too small, and those met after the limit of
// rows.
uint64_t walk_rows(const TreeGroup& group, const Functions& functions,
                   const ViewOptions& options,
                   absl::FunctionRef<bool(const TreePosition&)> row);

}  // namespace arctrace::reader
