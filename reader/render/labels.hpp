// The words of rows in reports and exports for functions, threads, frames and states:
// their names, also as other programs get them, what was unusual with calls, and what a
// thread did when it ran and when it did not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reader/analysis/recorded_state.hpp"
#include "reader/replay/call_tree.hpp"
#include "reader/replay/frame_stack.hpp"
#include "reader/replay/listener.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/json_writer.hpp"

namespace arctrace::reader {

// Names of functions as reports show them, each made once, and the notes of rows whose
// functions are not complete.
class FunctionLabels {
 public:
  // `lines`: with source lines. `replay` must outlive this object.
  FunctionLabels(Replay& replay, bool lines) : replay_(replay), lines_(lines) {}

  // The name, escaped, with its source line if that is asked for.
  const std::string& text(FunctionId function);
  // The last part of the module's path, escaped; empty if the function has no module.
  std::string module_text(FunctionId function) const;

  const Function& operator[](FunctionId function) const {
    return replay_.functions()[function];
  }
  // "file:line" if it is asked for and known, else empty. Raw bytes.
  const std::string& line(FunctionId function);

  // REQUIRES, as the next two functions: the replay is finished.
  const RecordedStates& recorded();
  // The note of a row (left_out.hpp); empty for a function that is complete.
  std::string recorded_note(FunctionId function);
  // The lines that explain the notes that were made, and that tell what filters left out
  // without a row.
  std::string recorded_legend();

 private:
  struct Known {
    bool made = false, line_made = false;
    std::string text, line;
  };
  Known& known(FunctionId function);

  Replay& replay_;
  const bool lines_;
  std::vector<Known> known_;  // by FunctionId
  std::optional<RecordedStates> recorded_;
  bool has_recorded_note_ = false;
};

// A list of the functions that are not complete, for views that do not say so at their
// rows, with a title; empty if all are. `replay` is finished.
std::string left_out_list_text(Replay& replay, bool lines);

// "lua 100/101": name, process and thread.
std::string thread_title(const Definitions& definitions, ThreadIndex thread);

// "100/101"; "-" for a thread that is not known.
std::string thread_ids_text(const Definitions& definitions, ThreadIndex thread);
// Members pid and tid; none for a thread that is not known.
void write_thread_ids_json(const Definitions& definitions, ThreadIndex thread,
                           JsonWriter& json);

// Paths show this many functions, the innermost ones, because recursion may go deep.
inline constexpr size_t kPathFunctionsMax = 64;

// The path to a node of the replay's tree, outermost function first, escaped:
// "main > f > K:read"; empty for a thread itself or kNoNode.
std::string path_text(const CallTree& tree, NodeIndex node, FunctionLabels& labels);

// Writes the same path as an array of names: the value of a key.
void write_path_json(const CallTree& tree, NodeIndex node, FunctionLabels& labels,
                     JsonWriter& json);

// Names as other programs get them: valid UTF-8 without control characters, of bounded
// length.

// A name is cut after this many bytes. Viewers show a few dozen; some of them fail on a
// megabyte.
inline constexpr size_t kSafeNameMax = 4096;

// `name`, escaped as on a terminal. If it is too long it ends with "..." and a number
// that tells it apart from other names with the same beginning.
std::string safe_name(std::string_view name);

// Does the same for a text whose parts are escaped already, as those of lines for a
// terminal are: its backslashes stay as they are.
std::string safe_text(std::string_view text);

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

// Returns what a thread does when it runs and when it does not: "running", "ready:
// preempted", "ready: interrupted", "ready: woken", "blocked: sleeps", "blocked:
// stopped", "not known".
const char* run_state_text(const StateInfo& state);

}  // namespace arctrace::reader
