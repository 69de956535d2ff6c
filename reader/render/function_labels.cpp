#include "reader/render/function_labels.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <span>

#include "reader/render/recorded_notes.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {

FunctionLabels::Known& FunctionLabels::known(FunctionId function) {
  if (function >= known_.size()) known_.resize(replay_.functions().size());
  return known_[function];
}

const std::string& FunctionLabels::line(FunctionId function) {
  Known& found = known(function);
  if (lines_ && !found.line_made) found.line = replay_.resolver().source_line(function);
  found.line_made = true;
  return found.line;
}

const std::string& FunctionLabels::text(FunctionId function) {
  Known& found = known(function);
  if (!found.made) {
    found.made = true;
    append_escaped(found.text, replay_.functions()[function].name);
    if (const std::string& where = line(function); !where.empty()) {
      found.text += " (";
      append_escaped(found.text, where);
      found.text += ')';
    }
  }
  return found.text;
}

std::string FunctionLabels::module_text(FunctionId function) const {
  const std::string_view path = replay_.functions()[function].module;
  return escaped(path.substr(path.rfind('/') + 1));
}

const RecordedStates& FunctionLabels::recorded() {
  if (!recorded_.has_value()) recorded_.emplace(replay_);
  return *recorded_;
}

std::string FunctionLabels::recorded_note(FunctionId function) {
  std::string note = reader::recorded_note(recorded().of(function));
  has_recorded_note_ |= !note.empty();
  return note;
}

std::string FunctionLabels::recorded_legend() {
  return reader::recorded_legend(recorded(), has_recorded_note_);
}

std::string left_out_list_text(Replay& replay, bool lines) {
  constexpr size_t kFunctionsListed = 10;
  FunctionLabels labels(replay, lines);
  const std::span<const FunctionId> incomplete = labels.recorded().incomplete();
  std::string text;
  for (size_t i = 0; i < std::min(incomplete.size(), kFunctionsListed); ++i) {
    const FunctionId function = incomplete[i];
    const std::string module = labels.module_text(function);
    absl::StrAppend(&text, "  ", labels.text(function), module.empty() ? "" : " in ",
                    module, labels.recorded_note(function), "\n");
  }
  if (incomplete.size() > kFunctionsListed) {
    absl::StrAppend(&text, "  (", incomplete.size() - kFunctionsListed,
                    " more functions)\n");
  }
  text += labels.recorded_legend();
  if (text.empty()) return text;
  return "\nCalls that were left out, and are in no row:\n" + text;
}

}  // namespace arctrace::reader
