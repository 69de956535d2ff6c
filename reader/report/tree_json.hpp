// Call trees in JSON: nodes within nodes, as far as parsers of JSON go along.
#pragma once

#include "reader/analysis/tree_groups.hpp"
#include "reader/render/function_labels.hpp"
#include "reader/render/view_options.hpp"
#include "reader/streams/json_writer.hpp"

namespace arctrace::reader {

// Member `key`: the root's name, calls, base_ns, cum_ns and children, or null if the
// options hide even the root. Nodes are nested 200 levels deep; what is further in stands
// in a member "deeper" of the object that is open, in rows that name their parents.
void write_tree_json(const char* key, const TreeGroup& group, const ViewOptions& options,
                     const Replay& replay, FunctionLabels& labels, JsonWriter& json);

// Member "threads", "processes" or "all", an array: for each tree what says which it is,
// and its "root".
void write_trees_json(const TreeGroups& groups, const ViewOptions& options,
                      const Replay& replay, FunctionLabels& labels, JsonWriter& json);

}  // namespace arctrace::reader
