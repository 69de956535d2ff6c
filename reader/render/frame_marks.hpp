// The marks of frames: what was unusual with a call (still open, unwound, its exit lost
// ...). One table has the names of each mark, for a single call, the calls of a node of
// the call tree, and the sums over a trace, in text and in JSON.
#pragma once

#include <cstdint>
#include <string>

#include "reader/replay/call_tree.hpp"
#include "reader/replay/replay_state.hpp"
#include "reader/streams/json_writer.hpp"

namespace arctrace::reader {

// " [unwound, open at the end]" for the flags (enum FrameFlag) of a call; empty for none.
std::string flags_text(uint16_t flags);
// Member "flags": an array of the names of those that are set, if there are any.
void write_flags_json(uint16_t flags, JsonWriter& json);

// " [open, unwound 2]" for the calls of a node; empty for none.
std::string marks_text(const NodeMarks& marks);
// Whether a function stands for the delivery of a signal, which is no call.
bool is_signal(const Function& function);
// " [signal 11, signal 10 3]" for the signals that came upon a node; empty for none.
std::string signals_text(const CallTree& tree, NodeIndex node,
                         const Functions& functions);
// " [state not known for 9.500 ms]" for a time of which the kernel's records do not tell
// whether it was on a CPU; empty for 0. marks_text() includes it.
std::string not_known_text(uint64_t unknown_ns);
// " [up to 9.500 ms less]" for a time of which so much may have come before threads began
// or after they ended; empty for 0. marks_text() includes it.
std::string within_text(uint64_t within_ns);
// Member "marks": an object of those that are not 0, if there are any.
void write_marks_json(const NodeMarks& marks, JsonWriter& json);

// "frames: 1 open at the end, 2 unwound", without those that are 0; empty if all are.
std::string frame_totals_text(const ReplayTotals& totals);
// Member "frames": an object with the number of frames that have each mark.
void write_frame_totals_json(const ReplayTotals& totals, JsonWriter& json);

}  // namespace arctrace::reader
