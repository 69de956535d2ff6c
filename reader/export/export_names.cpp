#include "reader/export/export_names.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/analysis/recorded_state.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/left_out.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"

namespace arctrace::reader {

const std::string& ExportNames::make(FunctionId function) {
  if (function >= known_.size()) known_.resize(function + 1);
  known_[function] = {true, safe_name(shown_[function])};
  return known_[function].name;
}

std::string ExportNames::frame(FunctionId function, uint16_t flags) {
  return this->function(function) +
         flags_text(static_cast<uint16_t>(flags & kFrameCountedElsewhere));
}

std::string ExportNames::process(ProcessIndex process) const {
  return safe_name(process_label(definitions_, process));
}

std::string ExportNames::thread(ThreadIndex thread) const {
  return safe_name(thread_label(definitions_, thread));
}

std::string ExportNames::thread_field(ThreadIndex thread) const {
  const Thread* facts = definitions_.thread(thread);
  const bool has_process =
      facts != nullptr && definitions_.process(facts->process) != nullptr;
  const bool is_nameless = definitions_.thread_name(thread, INT64_MAX).empty() &&
                           has_process &&
                           process_name(definitions_, facts->process).empty();
  if (is_nameless) return absl::StrCat("process ", definitions_.pid_of(thread));
  return this->thread(thread);
}

namespace {

// The CPU of gaps that belong to no CPU.
constexpr uint32_t kNoCpu = UINT32_MAX;

}  // namespace

std::string lane_name(const LaneKey& lane, const Definitions& definitions,
                      const ExportNames& names) {
  switch (lane.kind) {
    case LaneKind::kOfCalls:
      break;
    case LaneKind::kOfCoroutine:
      return absl::StrCat("coroutine ", lane.number);
    case LaneKind::kOfAdopted:
      return "entered before tracing";
    case LaneKind::kOfStates:
      return "on and off the CPU";
    case LaneKind::kOfGaps:
      return lane.number == kNoCpu ? "gaps" : absl::StrCat("cpu ", lane.number, " gaps");
  }
  return definitions.thread(lane.thread) == nullptr ? "session"
                                                    : names.thread(lane.thread);
}

GapLanes::Stretch GapLanes::add(const Gap& gap) {
  const LaneKey lane{gap.thread, LaneKind::kOfGaps, gap.cpu.value_or(kNoCpu)};
  int64_t& last_stop = last_stop_.try_emplace(lane, INT64_MIN).first->second;
  const int64_t from_ns = std::clamp(gap.from_known ? gap.from_ns : gap.to_ns,
                                     std::min(last_stop, gap.to_ns), gap.to_ns);
  last_stop = std::max(last_stop, gap.to_ns);
  return {lane, from_ns, gap.to_ns};
}

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
