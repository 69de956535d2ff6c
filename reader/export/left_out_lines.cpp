#include "reader/export/left_out_lines.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/analysis/recorded_state.hpp"
#include "reader/render/left_out_events.hpp"
#include "reader/render/losses.hpp"
#include "reader/render/recorded_notes.hpp"
#include "reader/render/text_style.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kLeftOutLinesMax = 1000;

}  // namespace

std::vector<LeftOutLine> left_out_lines(Replay& replay, ExportNames& names,
                                        const EventFilter* events) {
  std::vector<LeftOutLine> lines;
  uint64_t more = 0;
  int64_t begin_ns = INT64_MAX;
  for (const ThreadTree& thread : replay.threads()) {
    begin_ns = std::min(begin_ns, thread.start_ns);
  }
  if (replay.threads().empty()) begin_ns = 0;
  RecordedStates(replay).for_each([&](FunctionId function, const LeftOut& what) {
    if (lines.size() == kLeftOutLinesMax) {
      ++more;
      return;
    }
    lines.push_back(
        {what.from_ns.value_or(begin_ns),
         absl::StrCat(function == kRootFunction ? "functions"
                                                : "calls of " + names.function(function),
                      " left out: ", safe_text(left_out_text(what)))});
  });
  if (more != 0) lines.push_back({begin_ns, absl::StrCat("and ", more, " more")});
  if (events != nullptr && events->is_set()) {
    lines.push_back({begin_ns, safe_text(left_out_events_text(*events))});
  }
  return lines;
}

std::string missing_line(const Summary* summary, const Definitions& definitions) {
  std::string text;
  if (summary != nullptr) {
    if (summary->lost != 0) {
      absl::StrAppend(&text, ", ", grouped_text(summary->lost), " lost (",
                      losses_text(summary->lost_by_cause), ")");
    }
    text += other_missing_text(*summary);
  }
  if (const size_t joined = definitions.programs_joined_running(); joined == 1) {
    text += ", those of a program before it was joined";
  } else if (joined > 1) {
    absl::StrAppend(&text, ", those of ", joined, " programs before each was joined");
  }
  if (text.empty()) return text;
  return absl::StrCat("records missing: ", text.substr(2));
}

}  // namespace arctrace::reader
