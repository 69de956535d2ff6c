// Call trees, one for each thread or process, or one for all.
#pragma once

#include "reader/analysis/tree_groups.hpp"
#include "reader/render/json_writer.hpp"
#include "reader/render/view_options.hpp"
#include "reader/render/write_text.hpp"

namespace arctrace::reader {

// Columns: level, recursion level, calls, shares and times of the function itself (base)
// and with all it called (cum), and the name, indented by level.
void write_tree_text(const TreeGroups& groups, Replay& replay, const ViewOptions& options,
                     const WriteText& write);

// Member "threads", "processes" or "all" of the object that is open, an array: for each
// tree pid, tid, name, and root: name, calls, base_ns, cum_ns, children.
void write_tree_json(const TreeGroups& groups, Replay& replay, const ViewOptions& options,
                     JsonWriter& json);

// JPROF's columns: level, calls, calls made from it, base ns, dispatches and interrupts
// seen (0: not recorded), and the name, which is the rest of the line.
void write_log_rt_text(const TreeGroups& groups, Replay& replay,
                       const ViewOptions& options, const WriteText& write);

// Member "log_rt" of the object that is open: an array of the same rows.
void write_log_rt_json(const TreeGroups& groups, Replay& replay,
                       const ViewOptions& options, JsonWriter& json);

}  // namespace arctrace::reader
