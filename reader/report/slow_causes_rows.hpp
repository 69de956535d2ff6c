// How the view "slowest" shows why calls are slow.
#pragma once

#include <string>
#include <vector>

#include "reader/analysis/slow_causes.hpp"
#include "reader/render/function_labels.hpp"
#include "reader/render/view_options.hpp"
#include "reader/streams/json_writer.hpp"

namespace arctrace::reader {

// For each of the first functions a head, the difference by states, and the paths that
// make most of it. Empty if there are no comparisons.
std::string slow_causes_text(const std::vector<SlowComparison>& comparisons,
                             const Replay& replay, FunctionLabels& labels,
                             const ViewOptions& options);

// Member "why" (slowest_view.hpp). `has_states`: the kernel recorded them.
void write_slow_causes_json(const std::vector<SlowComparison>& comparisons,
                            bool has_states, FunctionLabels& labels, JsonWriter& json);

}  // namespace arctrace::reader
