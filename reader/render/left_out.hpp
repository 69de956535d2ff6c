// How text and JSON tell what was left out: calls of functions that are not complete
// (RecordedStates), and events.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "reader/analysis/recorded_state.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/trace/event_fields.hpp"

namespace arctrace::reader {

// How text and JSON say that a function is not complete (RecordedStates).

// Returns " [until 12.0 ms]", " [partly]", " [partly from 500 ms to 700 ms]": times since
// the recording began. Empty for a function that is complete.
std::string recorded_note(const RecordedState& state);
// The text about filters whose functions have no row: "left out by -Z 100: functions
// without a row, whose time is their callers'". REQUIRES: no function is concerned.
std::string without_rows_text(const CallsLeftOut& cause);
// The lines below a table: what the notes mean, if it has some, and what has no rows.
std::string recorded_legend(const RecordedStates& states, bool has_notes);
// "ctl -N mem_* from 500 ms on", escaped.
std::string left_out_text(const LeftOut& what);

// Member "recorded" of a function that is not complete: until_ns, until_by, and partly,
// an array of by, from_ns and to_ns (null: from the beginning on, or to the end).
void write_recorded_json(const RecordedState& state, JsonWriter& json);
// Member "left_out": an array of by, from_ns, to_ns and functions, for each cause.
void write_left_out_json(std::span<const CallsLeftOut> causes, JsonWriter& json);

// How text and JSON tell what --where left out.

// "--where 'id >= 10' --where 'name ~ a*'", escaped.
std::string where_text(const EventFilter& filter);
// "2 events left out by --where 'id >= 10'", escaped; also if there were none. REQUIRES:
// the filter has conditions.
std::string left_out_events_text(const EventFilter& filter);

// "24 events, instants and counters left out by the recording's filter".
std::string filtered_out_text(uint64_t count);

// Writes what left_out_events_text() says as a line of JSON: an object of type LEFT_OUT
// with the time of the last record, and these members.
void write_left_out_line(const EventFilter& filter, int64_t time_ns, JsonWriter& json);

// Members "events_left_out" and "where", an array of the conditions, of the object that
// is open; none if the filter has no conditions.
void write_left_out_events_json(const EventFilter& filter, JsonWriter& json);

}  // namespace arctrace::reader
