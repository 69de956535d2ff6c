// The section of the summary about programs other than the recorder's command that
// signals ended, and the same in JSON.
#include <absl/strings/str_cat.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/analysis/crashed_thread.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

// A program, other than the command, that did not end by exit().
struct OtherCrash {
  ProcessIndex process;
  int signal;              // 0: not known
  const SignalSeen* seen;  // null: it is not recorded which thread got it
};

// The last delivery of the signal to a thread of the process; null: it is not recorded.
const SignalSeen* seen_in(ProcessIndex process, int signal, const SummaryFacts& facts) {
  const SignalSeen* found = nullptr;
  for (const ThreadTree& tree : facts.replay.threads()) {
    if (facts.replay.definitions().threads()[tree.thread].process != process) continue;
    const SignalSeen* seen = facts.ends.last_signal(tree.thread);
    if (seen == nullptr ||
        signal_number(facts.replay.functions()[seen->signal]) != signal) {
      continue;
    }
    if (found == nullptr || found->time_ns < seen->time_ns) found = seen;
  }
  return found;
}

// Returns the programs that a fault or an abort ended, and those that recorded no end, of
// which the kernel did not record it either, as perf events do not.
std::vector<OtherCrash> other_crashes(const SummaryFacts& facts) {
  std::vector<OtherCrash> found;
  const auto processes = facts.replay.definitions().processes();
  const std::optional<SignalSeen>& command = facts.ends.signal_seen();
  for (ProcessIndex i = 0; i < processes.size(); ++i) {
    const Process& process = processes[i];
    const bool is_told =
        process.wait_status.has_value() ||
        (command.has_value() &&
         facts.replay.definitions().threads()[command->thread].process == i);
    if (is_told) continue;
    const std::optional<int32_t> status = facts.replay.wait_status(i);
    if (!status.has_value()) {
      const bool has_died = process.end_ns == INT64_MAX && process.died_ns != INT64_MAX;
      if (process.origin != 0 && has_died) found.push_back({i, 0, nullptr});
      continue;
    }
    const int signal = WIFSIGNALED(*status) ? WTERMSIG(*status) : 0;
    if (!is_fault(signal) && signal != SIGABRT) continue;
    found.push_back({i, signal, seen_in(i, signal, facts)});
  }
  return found;
}

std::string other_crash_row(const OtherCrash& crash, const SummaryFacts& facts,
                            FunctionLabels& labels, const TextStyle& style) {
  const Definitions& definitions = facts.replay.definitions();
  std::string row = absl::StrCat("  ", escaped(process_label(definitions, crash.process)),
                                 " ", definitions.processes()[crash.process].pid, ": ");
  if (crash.signal == 0) return row + "by a signal, or by a system call of its own";
  absl::StrAppend(&row, "signal ", crash.signal, " (", ::strsignal(crash.signal), ")");
  if (crash.seen == nullptr) return row;
  row += " in ";
  if (crash.seen->path.empty()) return row + "no recorded function";
  return summary_row(std::move(row), crash_path_text(crash.seen->path, labels), "", true,
                     style);
}

}  // namespace

void write_other_crashes_json(const SummaryFacts& facts, FunctionLabels& labels,
                              JsonWriter& json) {
  json.key("other_crashes").begin_array();
  for (const OtherCrash& crash : other_crashes(facts)) {
    const Process& process = facts.replay.definitions().processes()[crash.process];
    json.begin_object();
    json.member("pid", process.pid);
    json.member("name", process_label(facts.replay.definitions(), crash.process));
    if (crash.signal != 0) json.member("signal", crash.signal);
    if (crash.seen != nullptr) {
      json.member("tid", facts.replay.definitions().threads()[crash.seen->thread].tid);
      json.key("path").begin_array();
      for (const FunctionId function : crash.seen->path) {
        json.value(labels[function].name);
      }
      json.end();
    }
    json.end();
  }
  json.end();
}

SummarySection other_crashes_section(const SummaryFacts& facts, FunctionLabels& labels,
                                     const TextStyle& style) {
  constexpr size_t kShownMax = 4;
  SummarySection section;
  const std::vector<OtherCrash> crashes = other_crashes(facts);
  if (crashes.empty()) return section;
  const bool are_known = std::all_of(crashes.begin(), crashes.end(),
                                     [](const OtherCrash& c) { return c.signal != 0; });
  section.head = summary_head(are_known ? "Other programs that a signal ended"
                                        : "Other programs that did not end by exit()",
                              style);
  for (size_t i = 0; i < std::min(crashes.size(), kShownMax); ++i) {
    section.rows.push_back(other_crash_row(crashes[i], facts, labels, style));
  }
  if (crashes.size() > kShownMax) {
    section.rows.push_back("  " + others_name(crashes.size() - kShownMax));
  }
  const bool are_seen =
      std::all_of(crashes.begin(), crashes.end(),
                  [](const OtherCrash& c) { return c.seen != nullptr; });
  if (!are_seen) {
    section.rows.push_back(are_known ? "  where, record --kernel --signals tells"
                                     : "  how, record --kernel=bpf tells, and where, "
                                       "with --signals");
  }
  return section;
}

}  // namespace arctrace::reader
