#include "reader/render/frame_marks.hpp"

#include <absl/strings/str_cat.h>

#include <utility>

#include "reader/render/text_style.hpp"
#include "reader/replay/listener.hpp"

namespace arctrace::reader {
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

// In the order in which marks of nodes and sums are written; flags are written in the
// order of their bits.
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

}  // namespace arctrace::reader
