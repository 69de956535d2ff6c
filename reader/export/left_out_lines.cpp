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

int64_t begin_of(const Replay& replay) {
  int64_t begin_ns = replay.threads().empty() ? 0 : INT64_MAX;
  for (const ThreadTree& thread : replay.threads()) {
    begin_ns = std::min(begin_ns, thread.start_ns);
  }
  return begin_ns;
}

}  // namespace

std::vector<LeftOutLine> left_out_lines(Replay& replay, ExportNames& names) {
  std::vector<LeftOutLine> lines;
  uint64_t more = 0;
  const int64_t begin_ns = begin_of(replay);
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
  return lines;
}

std::vector<LeftOutLine> left_out_lines_with_events(Replay& replay, ExportNames& names,
                                                    const ExportSettings& settings) {
  std::vector<LeftOutLine> lines = left_out_lines(replay, names);
  const int64_t begin_ns = begin_of(replay);
  if (settings.filters_events()) {
    lines.push_back({begin_ns, safe_text(left_out_events_text(*settings.events))});
  }
  if (const uint64_t count = settings.filtered_out(); count != 0) {
    lines.push_back({begin_ns, filtered_out_text(count)});
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
