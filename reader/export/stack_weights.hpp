// The call trees of a finished replay as stacks with a weight each: what folded stacks,
// pprof and callgrind are made of.
#pragma once

#include <absl/functional/function_ref.h>

#include <cstdint>
#include <span>
#include <string>

#include "reader/analysis/tree_groups.hpp"
#include "reader/export/export_names.hpp"
#include "reader/export/exporter.hpp"

namespace arctrace::reader {

// What a node itself weighs: its time without that of the calls in it, or its calls.
uint64_t own_weight(const CallTree& tree, NodeIndex node, ExportWeight weight);

// "wall_ns", "cpu_ns", "off_cpu_ns", "calls"
const char* weight_name(ExportWeight weight);

// What stands at the bottom of a group's stacks: "lua 100/101", "lua 100", "all". Safe,
// as export_name() has it.
std::string group_name(const TreeGroup& group, Grouping grouping);

// Calls `visit` for each node of a group's tree, parents first, with the nodes from the
// group's root to it; until it returns false. Needs no recursion.
void for_each_stack(
    const TreeGroup& group,
    absl::FunctionRef<bool(NodeIndex node, std::span<const NodeIndex> path)> visit);

}  // namespace arctrace::reader
