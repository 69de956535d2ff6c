// Time by what well-known functions do: locks, I/O, allocation and so on.
#pragma once

#include "reader/analysis/tree_groups.hpp"
#include "reader/render/json_writer.hpp"
#include "reader/render/view_options.hpp"
#include "reader/render/write_text.hpp"

namespace arctrace::reader {

// A line for each kind, and below it one for each of its functions.
void write_kinds_text(const TreeGroups& groups, Replay& replay,
                      const ViewOptions& options, const WriteText& write);

// Member "kinds" of the object that is open, an array: name, calls, base_ns, cum_ns,
// functions as of the flat view. Of several groups: member "threads" or "processes",
// with "kinds" in each.
void write_kinds_json(const TreeGroups& groups, Replay& replay,
                      const ViewOptions& options, JsonWriter& json);

}  // namespace arctrace::reader
