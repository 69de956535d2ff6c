#include "reader/export/left_out_lines.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "reader/analysis/recorded_state.hpp"
#include "reader/render/losses.hpp"
#include "reader/render/recorded_notes.hpp"
#include "reader/render/text_style.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kLeftOutLinesMax = 1000;

}  // namespace

std::vector<LeftOutLine> left_out_lines(Replay& replay, ExportNames& names) {
  std::vector<LeftOutLine> lines;
  uint64_t more = 0;
  int64_t begin_ns = INT64_MAX;
  for (const ThreadTree& thread : replay.threads()) {
    begin_ns = std::min(begin_ns, thread.start_ns);
  }
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

std::string missing_line(const Summary* summary, const Definitions& definitions) {
  std::vector<std::string> parts;
  const auto add = [&](uint64_t count, const std::string& what) {
    if (count != 0) parts.push_back(absl::StrCat(grouped_text(count), " ", what));
  };
  if (summary != nullptr) {
    add(summary->lost, absl::StrCat("lost (", losses_text(summary->lost_by_cause), ")"));
    add(summary->overwritten, "overwritten");
    add(summary->elsewhere, "in another file");
    add(summary->torn, "torn");
    add(summary->unfinished, "unfinished");
  }
  const auto processes = definitions.processes();
  const auto joined =
      std::count_if(processes.begin(), processes.end(),
                    [](const Process& process) { return process.ran_before; });
  if (joined == 1) parts.emplace_back("those of a program before it was joined");
  if (joined > 1) {
    parts.push_back(
        absl::StrCat("those of ", joined, " programs before each was joined"));
  }
  if (parts.empty()) return "";
  return absl::StrCat("records missing: ", absl::StrJoin(parts, ", "));
}

}  // namespace arctrace::reader
