#include "reader/render/labels.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "reader/analysis/tree_groups.hpp"
#include "reader/render/left_out.hpp"
#include "reader/render/text_style.hpp"
#include "reader/replay/listener.hpp"
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
    append_escaped(found.text, replay_.shown_names()[function]);
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

namespace {

std::vector<FunctionId> path_of(const CallTree& tree, NodeIndex node) {
  std::vector<FunctionId> path;
  for (; node != kNoNode && tree[node].parent != kNoNode; node = tree[node].parent) {
    if (path.size() == kPathFunctionsMax) break;
    path.push_back(tree[node].function);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

std::string thread_title(const Definitions& definitions, ThreadIndex thread) {
  const Thread* facts = definitions.thread(thread);
  return absl::StrCat(escaped(thread_label(definitions, thread)), " ",
                      definitions.pid_of(thread), "/", facts == nullptr ? 0 : facts->tid);
}

std::string thread_ids_text(const Definitions& definitions, ThreadIndex thread) {
  const Thread* facts = definitions.thread(thread);
  if (facts == nullptr) return "-";
  return absl::StrCat(definitions.pid_of(thread), "/", facts->tid);
}

void write_thread_ids_json(const Definitions& definitions, ThreadIndex thread,
                           JsonWriter& json) {
  const Thread* facts = definitions.thread(thread);
  if (facts == nullptr) return;
  json.member("pid", definitions.pid_of(thread));
  json.member("tid", facts->tid);
}

std::string path_text(const CallTree& tree, NodeIndex node, FunctionLabels& labels) {
  std::string text;
  for (const FunctionId function : path_of(tree, node)) {
    if (!text.empty()) text += " > ";
    text += labels.text(function);
  }
  return text;
}

void write_path_json(const CallTree& tree, NodeIndex node, FunctionLabels& labels,
                     JsonWriter& json) {
  json.begin_array();
  for (const FunctionId function : path_of(tree, node)) json.value(labels[function].name);
  json.end();
}

namespace {

template <class Escape>
std::string bounded(std::string_view text, const Escape& escape) {
  if (text.size() <= kSafeNameMax) return escape(text);
  // The cut may fall into a character, whose first bytes are escaped then.
  return absl::StrCat(escape(text.substr(0, kSafeNameMax)), "...#",
                      absl::Hex(std::hash<std::string_view>()(text)));
}

}  // namespace

std::string safe_name(std::string_view name) { return bounded(name, escaped); }

std::string safe_text(std::string_view text) { return bounded(text, printable); }

namespace {

struct FrameMark {
  const char* key;                // in JSON
  uint16_t flag;                  // enum FrameFlag; 0: no flag of calls
  const char* call_text;          // after the name of a call that has the flag
  uint64_t NodeMarks::*count;     // nullptr: not counted by node
  const char* node_text;          // after the name of a node with such calls
  uint64_t ReplayTotals::*total;  // nullptr: not counted over the trace
  const char* total_text;         // after the number over the trace
};

// The entries are in the order in which marks of nodes and sums are written; flags are
// written in the order of their bits.
constexpr FrameMark kFrameMarks[] = {
    {"open", kFrameOpen, "open at the end", &NodeMarks::open, "open", &ReplayTotals::open,
     "open at the end"},
    {"unwound", kFrameUnwound, "unwound", &NodeMarks::unwound, "unwound",
     &ReplayTotals::unwound, "unwound"},
    {"entered_before", kFrameEnteredBefore, "entered before tracing",
     &NodeMarks::entered_before, "entered before tracing", &ReplayTotals::entered_before,
     "entered before tracing"},
    {"inherited", kFrameInherited, "inherited by fork", &NodeMarks::inherited,
     "inherited by fork", &ReplayTotals::inherited, "inherited by fork"},
    {"guessed", kFrameGuessed, "guessed", &NodeMarks::guessed, "guessed",
     &ReplayTotals::guessed, "of these guessed"},
    {"entry_lost", kFrameEntryLost, "entry lost", &NodeMarks::entry_lost, "entry lost",
     &ReplayTotals::entry_lost, "without their entry"},
    {"exit_lost", kFrameExitLost, "exit lost", &NodeMarks::exit_lost, "exit lost",
     &ReplayTotals::exit_lost, "without their exit"},
    {"lost_records", 0, nullptr, &NodeMarks::lost_records, "records lost", nullptr,
     nullptr},
    {"orphan_exits", 0, nullptr, &NodeMarks::orphan_exits, "orphan exits",
     &ReplayTotals::orphans, "orphan exits"},
    {"at_most", 0, nullptr, &NodeMarks::at_most, "at most", nullptr, nullptr},
    {"resumed", kFrameResumed, "resumed after vfork", nullptr, nullptr, nullptr, nullptr},
    {"cut_start", kFrameCutStart, "started before the range", nullptr, nullptr, nullptr,
     nullptr},
    {"cut_stop", kFrameCutStop, "stopped after the range", nullptr, nullptr, nullptr,
     nullptr},
    {"across_gap", kFrameAcrossGap, "across a gap", nullptr, nullptr, nullptr, nullptr},
};

// Calls `visit` for the marks whose flags are set, lowest bit first.
template <class Visit>
void for_flags(uint16_t flags, const Visit& visit) {
  for (unsigned bit = 1; bit <= flags; bit <<= 1) {
    if ((flags & bit) == 0) continue;
    for (const FrameMark& mark : kFrameMarks) {
      if (mark.flag == bit) visit(mark);
    }
  }
}

}  // namespace

std::string flags_text(uint16_t flags) {
  std::string text;
  for_flags(flags, [&](const FrameMark& mark) {
    absl::StrAppend(&text, text.empty() ? " [" : ", ", mark.call_text);
  });
  if (!text.empty()) text += ']';
  return text;
}

void write_flags_json(uint16_t flags, JsonWriter& json) {
  if (flags == 0) return;
  json.key("flags").begin_array();
  for_flags(flags, [&](const FrameMark& mark) { json.value(mark.key); });
  json.end();
}

std::string marks_text(const NodeMarks& marks) {
  std::string text;
  for (const FrameMark& mark : kFrameMarks) {
    const uint64_t count = mark.count == nullptr ? 0 : marks.*mark.count;
    if (count == 0) continue;
    absl::StrAppend(&text, text.empty() ? " [" : ", ", mark.node_text);
    if (count > 1) absl::StrAppend(&text, " ", count);
  }
  if (!text.empty()) text += ']';
  return text + not_known_text(marks.unknown_ns) + within_text(marks.within_ns());
}

bool is_signal(const Function& function) {
  return function.name.starts_with("K:signal ");
}

std::string signals_text(const CallTree& tree, NodeIndex node,
                         const Functions& functions) {
  std::string text;
  for (NodeIndex at = tree[node].first_child; at != kNoNode; at = tree[at].next_sibling) {
    const Function& function = functions[tree[at].function];
    if (!is_signal(function)) continue;
    absl::StrAppend(&text, text.empty() ? " [" : ", ", function.name.substr(2));
    if (tree[at].calls > 1) absl::StrAppend(&text, " ", grouped_text(tree[at].calls));
  }
  return text.empty() ? text : text + "]";
}

std::string not_known_text(uint64_t unknown_ns) {
  if (unknown_ns == 0) return {};
  return absl::StrCat(" [state not known for ", duration_text(unknown_ns), "]");
}

std::string within_text(uint64_t within_ns) {
  if (within_ns == 0) return {};
  return absl::StrCat(" [up to ", duration_text(within_ns), " less]");
}

void write_marks_json(const NodeMarks& marks, JsonWriter& json) {
  bool is_open = false;
  for (const FrameMark& mark : kFrameMarks) {
    const uint64_t count = mark.count == nullptr ? 0 : marks.*mark.count;
    if (count == 0) continue;
    if (!is_open) json.key("marks").begin_object();
    is_open = true;
    json.member(mark.key, count);
  }
  for (const auto& [key, time_ns] : {std::pair("not_known_ns", marks.unknown_ns),
                                     {"end_within_ns", marks.end_within_ns},
                                     {"begin_within_ns", marks.begin_within_ns}}) {
    if (time_ns == 0) continue;
    if (!is_open) json.key("marks").begin_object();
    is_open = true;
    json.member(key, time_ns);
  }
  if (is_open) json.end();
}

std::string frame_totals_text(const ReplayTotals& totals) {
  std::string text;
  for (const FrameMark& mark : kFrameMarks) {
    const uint64_t count = mark.total == nullptr ? 0 : totals.*mark.total;
    if (count == 0) continue;
    absl::StrAppend(&text, text.empty() ? "frames: " : ", ", count, " ", mark.total_text);
  }
  return text;
}

void write_frame_totals_json(const ReplayTotals& totals, JsonWriter& json) {
  json.key("frames").begin_object();
  for (const FrameMark& mark : kFrameMarks) {
    // Orphan exits are no frames: the summary has them beside this object.
    if (mark.total != nullptr && mark.flag != 0) {
      json.member(mark.key, totals.*mark.total);
    }
  }
  json.end();
}

const char* run_state_text(const StateInfo& state) {
  if (state.state == RunState::kNotKnown) return "not known";
  if (state.state == RunState::kRunning) return "running";
  if (state.state == RunState::kReady) {
    if (state.interrupted) return "ready: interrupted";
    return state.preempted ? "ready: preempted" : "ready: woken";
  }
  // task_state has the kernel's TASK_* bits.
  if (state.task_state == ARCTRACE_SWITCH_UNKNOWN) return "blocked";
  if ((state.task_state & ARCTRACE_SWITCH_IO) != 0) return "blocked: waits for a disk";
  if ((state.task_state & 1) != 0) return "blocked: sleeps";
  if ((state.task_state & 2) != 0) return "blocked: sleeps uninterruptibly";
  if ((state.task_state & 4) != 0) return "blocked: stopped";
  if ((state.task_state & 8) != 0) return "blocked: traced";
  return "blocked: gone";
}

}  // namespace arctrace::reader
