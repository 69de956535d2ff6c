// How text and JSON say that a function is not complete (RecordedStates).
#pragma once

#include <span>
#include <string>

#include "reader/analysis/recorded_state.hpp"
#include "reader/streams/json_writer.hpp"

namespace arctrace::reader {

// " [until 12.0 ms]", " [partly]", " [partly from 500 ms to 700 ms]": moments since the
// recording began. Empty for a function that is complete.
std::string recorded_note(const RecordedState& state);
// What filters left out of which no function has a row: "left out by -Z 100: functions
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

}  // namespace arctrace::reader
