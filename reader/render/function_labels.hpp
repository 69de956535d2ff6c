// Names of functions as reports show them, each made once, and what rows of functions say
// if they are not complete.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reader/analysis/recorded_state.hpp"
#include "reader/replay/replay.hpp"

namespace arctrace::reader {

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

  // The next three want the replay to be finished.
  const RecordedStates& recorded();
  // The note of a row (recorded_notes.hpp); empty for a function that is complete.
  std::string recorded_note(FunctionId function);
  // The lines that explain the notes that were made, and what filters left out without a
  // row.
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

}  // namespace arctrace::reader
