// The call trees of a finished replay as stacks with weights: folded stacks, pprof and
// callgrind are made of them.
#pragma once

#include <absl/functional/function_ref.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "reader/analysis/tree_groups.hpp"
#include "reader/export/export_names.hpp"
#include "reader/export/exporter.hpp"

namespace arctrace::reader {

// The weight of a node itself: its time without that of the calls in it, or its calls.
uint64_t own_weight(const CallTree& tree, NodeIndex node, ExportWeight weight);

// "wall_ns", "cpu_ns", "off_cpu_ns", "calls"
const char* weight_name(ExportWeight weight);

// The name at the bottom of a group's stacks: "lua 100/101", "lua 100", "all". Safe, as
// safe_name() has it.
std::string group_name(const TreeGroup& group, Grouping grouping);

// Calls `visit` for each node of a group's tree, parents first, with the nodes from the
// group's root to it; until it returns false. Needs no recursion.
void for_each_node(
    const TreeGroup& group,
    absl::FunctionRef<bool(NodeIndex node, std::span<const NodeIndex> path)> visit);

// The most functions that a stack names. A format that writes each stack in full would
// take the square of the depth for a deep recursion.
inline constexpr size_t kStackFunctionsMax = 512;
// Stands for the functions of a deeper stack between the outermost ones and the
// innermost.
inline constexpr const char* kLeftOutName = "[functions left out]";

struct WeightedStack {
  // From the group's root, at most kStackFunctionsMax after it.
  std::span<const NodeIndex> path;
  // The innermost function of a deeper stack, after functions that are left out; none:
  // `path` is the whole stack. Stacks that are the same then are one.
  std::optional<FunctionId> innermost;
  std::span<const uint64_t> values;  // in the order of the weights; not all are 0
};

// Calls `visit` for each stack that weighs something, until it returns false.
void for_each_stack(const TreeGroup& group, std::span<const ExportWeight> weights,
                    absl::FunctionRef<bool(const WeightedStack& stack)> visit);

}  // namespace arctrace::reader
