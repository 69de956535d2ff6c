// The content of the page as JSON: members of the object that is open. Rows are flat
// arrays of numbers, because there are many of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reader/render/gap_list.hpp"
#include "reader/replay/resolver.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/trace/process_identities.hpp"
#include "reader/trace/session.hpp"
#include "reader/ui/model/page_parts.hpp"

namespace arctrace::reader {

// A finished replay, and what it collected. Null members are not known.
struct PageFacts {
  Replay& replay;
  PageParts& parts;
  const Session* session = nullptr;
  const Summary* summary = nullptr;
  const GapList* gaps = nullptr;
};

// The page's number of a function of a replay. `ids`: these numbers by FunctionId; empty:
// the replay is the page's own.
FunctionId id_on_page(FunctionId function, std::span<const FunctionId> ids);
// A member that is an array of lines of text.
void write_lines_json(const char* name, const std::vector<std::string>& lines,
                      JsonWriter& json);
// Member counts: an object with processes and threads.
void write_counts_json(const ProcessesAndThreads& counts, JsonWriter& json);
// Members off_ns, ready_ns and not_known_ns.
void write_off_json(const CpuTime& cpu, JsonWriter& json);

// The time in which the threads of a replay had a part.
struct Times {
  int64_t from_ns = 0, until_ns = 0;
};
// Returns the time later or earlier by so much; the last or first one there is if it is
// beyond.
int64_t plus(int64_t time_ns, uint64_t more_ns);
int64_t minus(int64_t time_ns, uint64_t less_ns);
// Returns `times` extended on both sides by its own length.
Times around(Times times);
Times times_of(const Replay& replay);

// Whether the trace knows what woke its threads.
bool has_wake_ups(const PageFacts& facts);

// is_whole (true), path, command, end, wall_ns, thread_ns, from_ns, until_ns, has_cpu,
// has_wake_ups, cpu_ns, off_ns, not_known_ns, records_text, records, lost, counts (those
// of the report's summary), facts, gaps.
void write_facts_json(const PageFacts& facts, JsonWriter& json);

// Writes elements of the array that is open, by FunctionId from `first` on: [name,
// module, waits, whole name], texts safe. `waits`: whether the function mostly waits. The
// last element is left out if the name is the whole one; then `waits` is, too, if false.
void write_names_json(FunctionResolver& resolver, size_t first, JsonWriter& json);

// name, pid, tid, program, coroutine, adopted, and key, by which the lane is found on
// another page of the trace.
void write_lane_name_json(const Definitions& definitions, const Lane& lane,
                          JsonWriter& json);
// lanes: an array of objects, in the order of Timeline::lanes(), with levels, calls,
// cpu_ns, work_ns, and parts, those of the process' life: arrays of function, begin and
// end.
void write_lanes_json(const PageFacts& facts, JsonWriter& json);

// groups: an array of objects with name, pid, tid and nodes, which are six numbers each,
// parents first: depth (0: the group), function, self_ns, the part of it off the CPU, the
// part in a state that is not known, and calls. Nodes too small to be seen are summed up
// in one node of function -1.
void write_flame_json(const PageFacts& facts, Grouping grouping,
                      std::span<const FunctionId> ids, size_t max_nodes,
                      JsonWriter& json);

// Gives the functions of a row of calls these numbers, by FunctionId.
void renumber(TimeRow& row, std::span<const FunctionId> ids);
// The rows of a lane in [from_ns, until_ns): an array of [level, stretches, crowds],
// where stretches are begin, duration, function and flags; and crowds, the density
// buckets, are begin, busy time, count and function. Each begin is relative to the one
// before it in the list, the first to from_ns.
void write_rows_json(const Timeline& timeline, const Lane& lane, int64_t from_ns,
                     int64_t until_ns, uint64_t pixel_ns, JsonWriter& json);
void write_row_json(uint32_t level, const TimeRow& seen, int64_t from_ns,
                    JsonWriter& json);

}  // namespace arctrace::reader
