// The section of the summary about where a program was that a signal ended, and the same
// in JSON.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reader/analysis/crashed_thread.hpp"
#include "reader/render/labels.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/report/summary_lines.hpp"
#include "src/base/function_names.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kOpenThreadsMax = 4;

// "; last call: read, ended 80 ns before", which is before `at_ns`, when the signal came.
// A later call, and all where that time is not known, ended "80 ns before the end" of the
// thread, which the kernel still had to take down after the signal. Empty if the thread
// has made no call.
std::string last_call_text(const ThreadTree& thread, const ThreadEnd& end, int64_t at_ns,
                           FunctionLabels& labels) {
  if (end.last_function == kRootFunction) return {};
  const bool is_before = end.last_stop_ns <= at_ns && at_ns <= thread.stop_ns;
  const int64_t ago_ns =
      std::max<int64_t>((is_before ? at_ns : thread.stop_ns) - end.last_stop_ns, 0);
  return absl::StrCat("; last call: ", labels.text(end.last_function), ", ended ",
                      call_time_text(static_cast<uint64_t>(ago_ns)), " before",
                      is_before ? "" : " the end");
}

// Whether the thread was at an instruction of another function than the innermost one of
// the path. The functions that a library calls within a call count as the call, and a
// patched function's first instructions, which have been moved, are the function's.
bool was_not_recorded(const SignalSeen& seen, const Functions& functions) {
  if (seen.at == kRootFunction) return false;
  const Function& at = functions[seen.at];
  if (at.module.empty() || at.module == kPatchImagePath) return false;
  if (seen.path.empty()) return true;
  const Function& innermost = functions[seen.path.back()];
  if (innermost.module != at.module) return true;
  return innermost.location.module != nullptr && !is_nameless(at) &&
         without_copy_suffix(innermost.name) != without_copy_suffix(at.name);
}

// Returns rows with the place where the signal came upon its thread; with its function,
// if that is not in the path; and with the place where the thread was at its end, if that
// was elsewhere, as in a handler.
std::vector<std::string> rows_of_crashed(const SignalSeen& seen, int signal,
                                         const ThreadTree& thread, const ThreadEnd& end,
                                         const Replay& replay, FunctionLabels& labels,
                                         const TextStyle& style) {
  const bool is_elsewhere = !end.open.empty() && end.open != seen.path;
  // The last call stands where what it was before does.
  const bool is_before = end.last_stop_ns <= seen.time_ns;
  const std::string last = last_call_text(thread, end, seen.time_ns, labels);
  std::vector<std::string> rows = {summary_row(
      absl::StrCat("  thread ", thread_title(replay.definitions(), seen.thread), ": "),
      seen.path.empty() ? "outside of recorded functions"
                        : crash_path_text(seen.path, labels),
      is_elsewhere && !is_before ? "" : last, true, style)};
  if (is_fault(signal) && was_not_recorded(seen, replay.functions())) {
    rows.push_back(summary_row("    it was in ", labels.text(seen.at),
                               ", which is not recorded", false, style));
  }
  if (is_elsewhere) {
    rows.push_back(summary_row("    it ended in ", crash_path_text(end.open, labels),
                               is_before ? "" : last, false, style));
  }
  return rows;
}

// "it is the only one of 4 that was in no call that waits"
std::string because_text(const LikelyThread& likely) {
  const std::string only =
      absl::StrCat("it is the only one of ", likely.threads, " that was ");
  switch (likely.because) {
    case LikelyBecause::kOnly:
      return "no other of its threads is recorded";
    case LikelyBecause::kAborts:
      return only + "in abort, or what calls it";
    case LikelyBecause::kNotWaiting:
      break;
  }
  return only + "in no call that waits";
}

std::string_view because_word(LikelyBecause because) {
  switch (because) {
    case LikelyBecause::kOnly:
      return "only";
    case LikelyBecause::kAborts:
      return "aborts";
    case LikelyBecause::kNotWaiting:
      break;
  }
  return "not_waiting";
}

std::string likely_row(const LikelyThread& likely, const SummaryFacts& facts,
                       FunctionLabels& labels, const TextStyle& style) {
  const auto threads = facts.replay.threads();
  const auto thread =
      std::find_if(threads.begin(), threads.end(),
                   [&](const ThreadTree& tree) { return tree.thread == likely.thread; });
  const ThreadEnd& end = *facts.ends.find(likely.thread);
  return absl::StrCat(
      summary_row(
          absl::StrCat("  likely thread ",
                       thread_title(facts.replay.definitions(), likely.thread), ": "),
          end.open.empty() ? "outside of recorded functions"
                           : crash_path_text(end.open, labels),
          last_call_text(*thread, end, INT64_MAX, labels), true, style),
      "\n    because ", because_text(likely));
}

// Whether the thread was there no more when the signal came. Where that time is not
// known, the threads of a process that recorded its end are not those that were killed,
// unless it is the command, which may have got the signal after that.
bool had_ended(const ThreadTree& tree, const std::optional<SignalSeen>& seen,
               const Definitions& definitions) {
  if (seen.has_value()) return tree.stop_ns < seen->time_ns;
  const Process* process = definitions.process_of(tree.thread);
  return process != nullptr && !process->wait_status.has_value() &&
         process->end_how != ARCTRACE_END_NONE;
}

bool dumped_core(const Session& session) {
  const int32_t status = *session.child_wait_status;
  return WIFSIGNALED(status) && WCOREDUMP(status);
}

}  // namespace

std::string crash_path_text(const std::vector<FunctionId>& path, FunctionLabels& labels) {
  const size_t cut = path.size() - std::min(path.size(), kPathFunctionsMax);
  std::string text = cut == 0 ? "" : "... ";
  for (size_t i = cut; i < path.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "> ", labels.text(path[i]),
                    i + 1 == path.size() ? "" : " ");
  }
  return text;
}

int signal_number(const Function& function) {
  constexpr std::string_view kPrefix = "K:signal ";
  int number = 0;
  return is_signal(function) &&
                 absl::SimpleAtoi(function.name.substr(kPrefix.size()), &number)
             ? number
             : 0;
}

int fatal_signal(const Session* session) {
  if (session == nullptr || !session->child_wait_status.has_value()) return 0;
  const int32_t status = *session->child_wait_status;
  if (WIFSIGNALED(status)) return WTERMSIG(status);
  if (WIFEXITED(status) && WEXITSTATUS(status) > 128 && WEXITSTATUS(status) < 128 + 65) {
    return WEXITSTATUS(status) - 128;
  }
  return 0;
}

ThreadEnds::Signal signal_of(const Function& function, const Session* session) {
  const int number = signal_number(function);
  if (number == 0) return ThreadEnds::Signal::kNone;
  return number == fatal_signal(session) ? ThreadEnds::Signal::kWanted
                                         : ThreadEnds::Signal::kOther;
}

void write_crash_json(const SummaryFacts& facts, FunctionLabels& labels,
                      JsonWriter& json) {
  const int signal = fatal_signal(facts.session);
  if (signal == 0) return;
  json.key("crash").begin_object();
  json.member("signal", signal);
  const std::optional<SignalSeen>& seen = facts.ends.signal_seen();
  std::optional<LikelyThread> likely;
  if (!seen.has_value()) likely = likely_thread(signal, facts.ends, facts.replay);
  if (seen.has_value() || likely.has_value()) {
    const ThreadIndex thread = seen.has_value() ? seen->thread : likely->thread;
    write_thread_ids_json(facts.replay.definitions(), thread, json);
    json.member("is_likely", likely.has_value());
    if (likely.has_value()) json.member("because", because_word(likely->because));
    const ThreadEnd& end = *facts.ends.find(thread);
    json.key("path").begin_array();
    for (const FunctionId function : seen.has_value() ? seen->path : end.open) {
      json.value(labels[function].name);
    }
    json.end();
    if (end.last_function != kRootFunction) {
      json.member("last_call", labels[end.last_function].name);
      json.member("last_call_stop_ns", end.last_stop_ns);
    }
  } else if (const auto possible = possible_threads(signal, facts.ends, facts.replay);
             !possible.empty()) {
    json.key("possible_threads").begin_array();
    for (const ThreadIndex thread : possible) {
      json.begin_object();
      write_thread_ids_json(facts.replay.definitions(), thread, json);
      json.end();
    }
    json.end();
  }
  json.end();
}

SummarySection crash_section(const SummaryFacts& facts, FunctionLabels& labels,
                             const TextStyle& style) {
  SummarySection section;
  const int signal = fatal_signal(facts.session);
  if (signal == 0) return section;
  const Definitions& definitions = facts.replay.definitions();
  section.head = summary_head(absl::StrCat("Where it was when signal ", signal, " (",
                                           ::strsignal(signal), ") came"),
                              style);
  const std::optional<SignalSeen>& seen = facts.ends.signal_seen();
  std::optional<LikelyThread> likely;
  if (!seen.has_value()) {
    section.rows.push_back(
        facts.replay.is_of_all()
            ? "  which thread got it is not recorded: record --kernel --signals does"
            : "  which thread got it is not recorded, or not in what is shown");
    if (dumped_core(*facts.session)) {
      section.rows.push_back(
          "  nor when: writing the core counts for the functions that were open");
    }
    likely = likely_thread(signal, facts.ends, facts.replay);
    if (likely.has_value()) {
      section.rows.push_back(likely_row(*likely, facts, labels, style));
    }
  }
  std::vector<ThreadIndex> possible;
  if (!seen.has_value() && !likely.has_value()) {
    possible = possible_threads(signal, facts.ends, facts.replay);
  }
  if (!possible.empty()) {
    section.rows.push_back(absl::StrCat("  it is one of the first ", possible.size(),
                                        ": they were in no call that waits"));
  }
  const auto is_possible = [&](const ThreadTree& tree) {
    return std::find(possible.begin(), possible.end(), tree.thread) != possible.end();
  };
  std::vector<ThreadTree> ordered(facts.replay.threads().begin(),
                                  facts.replay.threads().end());
  std::stable_partition(ordered.begin(), ordered.end(), is_possible);
  std::vector<std::string> threads;
  for (const ThreadTree& thread : ordered) {
    const ThreadEnd* end = facts.ends.find(thread.thread);
    if (seen.has_value() && thread.thread == seen->thread) {
      const std::vector<std::string> rows =
          rows_of_crashed(*seen, signal, thread, *end, facts.replay, labels, style);
      section.rows.insert(section.rows.begin(), rows.begin(), rows.end());
      continue;
    }
    if (end == nullptr || (end->open.empty() && end->last_function == kRootFunction) ||
        had_ended(thread, seen, definitions) ||
        (likely.has_value() && likely->thread == thread.thread)) {
      continue;
    }
    threads.push_back(summary_row(
        absl::StrCat("  ", thread_title(definitions, thread.thread), ": "),
        end->open.empty() ? "no open function" : crash_path_text(end->open, labels),
        last_call_text(thread, *end, seen.has_value() ? seen->time_ns : INT64_MAX,
                       labels),
        false, style));
  }
  section.others.resize(section.rows.size());
  section.least = std::max<size_t>(section.rows.size(), 1) +
                  std::min(possible.size(), kOpenThreadsMax);
  for (size_t i = 0; i <= std::min(threads.size(), kOpenThreadsMax); ++i) {
    const size_t more = threads.size() - i;
    section.others.push_back(
        more == 0 ? "" : absl::StrCat("  ", count_text(more, "more thread")));
    if (i < threads.size() && i < kOpenThreadsMax) section.rows.push_back(threads[i]);
  }
  return section;
}

}  // namespace arctrace::reader
