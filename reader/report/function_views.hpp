// Tables of functions: flat, and arcs, which has each one's callers and callees too.
#pragma once

#include "reader/analysis/tree_groups.hpp"
#include "reader/render/json_writer.hpp"
#include "reader/render/view_options.hpp"
#include "reader/render/write_text.hpp"

namespace arctrace::reader {

// One line for each function.
void write_flat_text(const TreeGroups& groups, Replay& replay, const ViewOptions& options,
                     const WriteText& write);

// Member "functions" of the object that is open, an array: name, module, calls, base_ns,
// cum_ns. Of several groups: member "threads" or "processes", with "functions" in each.
void write_flat_json(const TreeGroups& groups, Replay& replay, const ViewOptions& options,
                     JsonWriter& json);

// For each function its parents, itself, and its children.
void write_arcs_text(const TreeGroups& groups, Replay& replay, const ViewOptions& options,
                     const WriteText& write);

// As write_flat_json, member "arcs", each function with parents and children.
void write_arcs_json(const TreeGroups& groups, Replay& replay, const ViewOptions& options,
                     JsonWriter& json);

}  // namespace arctrace::reader
