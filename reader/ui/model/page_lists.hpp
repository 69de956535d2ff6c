// Lists of the page, as JSON: the tree of processes, the slowest calls of functions.
#pragma once

#include <cstddef>
#include <span>

#include "reader/analysis/slowest_of_each.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/ui/model/page_critical.hpp"

namespace arctrace::reader {

// Writes processes: an array of objects in the order of the tree, each after the one that
// started it, with depth, pid, name, command (its command line; empty if it is not
// known), threads, wall_ns (null: its end is not known), cpu_ns (0 without the kernel's
// records), exit, and lane, that of its main thread (null: none). And process_count, that
// of all processes, of which only those that lasted longest are in the list.
void write_processes_json(const Replay& replay, LaneNumber number, JsonWriter& json);

// Writes the slowest calls of a function as elements of the array that is open: arrays of
// lane, level, begin, end, off_ns, not_known_ns and flags. Calls without a lane are left
// out.
void write_slowest_json(std::span<const PlacedCall> calls, LaneNumber number,
                        JsonWriter& json);

}  // namespace arctrace::reader
