#include "reader/report/summary_lines.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "reader/analysis/function_totals.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/thread_labels.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kOpenThreadsMax = 4;

std::string names_text(const std::vector<FunctionId>& path, FunctionLabels& labels) {
  const size_t cut = path.size() - std::min(path.size(), kPathFunctionsMax);
  std::string text = cut == 0 ? "" : "... ";
  for (size_t i = cut; i < path.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "> ", labels.text(path[i]),
                    i + 1 == path.size() ? "" : " ");
  }
  return text;
}

// The first program, whose module has the program's own functions; kNoIndex: none.
ProcessIndex first_program(const Definitions& definitions) {
  for (ProcessIndex i = 0; i < definitions.processes().size(); ++i) {
    if (definitions.processes()[i].origin == ARCTRACE_ORIGIN_EXEC) return i;
  }
  return kNoIndex;
}

// Whether a function of the program was recorded, also one whose calls a filter of the
// report hides.
bool has_function_of(const Functions& functions, const std::string& program) {
  for (FunctionId id = kUnknownFunction + 1; id < functions.size(); ++id) {
    const Function& function = functions[id];
    if (function.module == program ||
        (function.module.empty() && !function.name.starts_with('['))) {
      return true;
    }
  }
  return false;
}

// Whether the replay saw all that was recorded: what is missing may be anything.
bool is_whole(const SummaryFacts& facts) {
  if (!facts.replay.has_all_threads()) return false;
  const Summary* summary = facts.summary;
  if (summary != nullptr && (summary->lost != 0 || summary->overwritten != 0)) {
    return false;
  }
  return facts.session == nullptr || facts.session->finished;
}

// "5 threads"; "5 of 7 threads" if there were others, without definitions or not asked
// for.
std::string part_text(uint64_t count, uint64_t all, const std::string& what,
                      const std::string& plural) {
  if (all <= count) return count_text(count, what, plural);
  return absl::StrCat(count, " of ", count_text(all, what, plural));
}

}  // namespace

std::string summary_head(const std::string& head, const TextStyle& style) {
  std::string text;
  append_tinted(text, style, Tint::kHead, head);
  return text;
}

std::string summary_row(std::string row, const std::string& name,
                        const std::string& notes, bool hot, const TextStyle& style) {
  append_name(row, name, notes, hot, style);
  row.pop_back();  // the newline
  return row;
}

std::string summary_text(std::vector<SummarySection> sections, size_t max_lines) {
  std::erase_if(sections,
                [](const SummarySection& section) { return section.rows.empty(); });
  const auto lines = [&] {
    size_t count = sections.empty() ? 0 : sections.size() - 1;
    for (const SummarySection& section : sections) {
      count += section.rows.size() + (section.head.empty() ? 0 : 1);
    }
    return count;
  };
  while (lines() > max_lines) {
    const auto longest = std::max_element(
        sections.begin(), sections.end(),
        [](const auto& a, const auto& b) { return a.rows.size() < b.rows.size(); });
    longest->rows.pop_back();
  }
  std::string text;
  for (const SummarySection& section : sections) {
    if (!text.empty()) text += '\n';
    if (!section.head.empty()) text += section.head + "\n";
    for (const std::string& row : section.rows) text += row + "\n";
  }
  return text;
}

std::vector<std::string> first_command(const Definitions& definitions) {
  for (const Process& process : definitions.processes()) {
    if (process.origin == ARCTRACE_ORIGIN_EXEC && !process.arguments.empty()) {
      return process.arguments;
    }
  }
  return {};
}

uint64_t wall_ns(const Replay& replay) {
  if (replay.threads().empty()) return 0;
  int64_t start_ns = INT64_MAX, stop_ns = INT64_MIN;
  for (const ThreadTree& thread : replay.threads()) {
    start_ns = std::min(start_ns, thread.start_ns);
    stop_ns = std::max(stop_ns, thread.stop_ns);
  }
  return static_cast<uint64_t>(stop_ns) - static_cast<uint64_t>(start_ns);
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
  constexpr std::string_view kPrefix = "K:signal ";
  if (!function.name.starts_with(kPrefix)) return ThreadEnds::Signal::kNone;
  return function.name.substr(kPrefix.size()) == std::to_string(fatal_signal(session))
             ? ThreadEnds::Signal::kWanted
             : ThreadEnds::Signal::kOther;
}

std::string end_text(const Session* session) {
  if (session == nullptr) return {};
  if (session->child_wait_status.has_value()) {
    const int32_t status = *session->child_wait_status;
    return (WIFSIGNALED(status) ? "killed by " : "") + wait_status_text(status);
  }
  if (session->raw || session->finished) return {};
  return "the recording was cut off";
}

SummarySection head_section(const SummaryFacts& facts, const TextStyle& style) {
  SummarySection section;
  const Replay& replay = facts.replay;
  std::string command = command_line_text(first_command(replay.definitions()));
  if (command.empty() && facts.session != nullptr) command = escaped(facts.session->path);
  if (!command.empty()) section.rows.push_back(summary_head(command, style));

  std::vector<ProcessIndex> processes;
  for (const ThreadTree& thread : replay.threads()) {
    processes.push_back(replay.definitions().threads()[thread.thread].process);
  }
  std::sort(processes.begin(), processes.end());
  processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
  std::string end = end_text(facts.session);
  if (!end.empty()) end += ", ";
  section.rows.push_back(absl::StrCat(
      end, duration_text(wall_ns(replay)), ", ",
      part_text(processes.size(), facts.summary == nullptr ? 0 : facts.summary->processes,
                "process", "processes"),
      ", ",
      part_text(replay.threads().size(),
                facts.summary == nullptr ? 0 : facts.summary->threads, "thread",
                "threads")));
  std::string times;
  if (replay.threads().size() > 1) {
    times = "all threads: " + duration_text(facts.all_ns());
  }
  if (replay.has_dispatches()) {
    const CpuTime& cpu = facts.all.tree->cpu_cum(facts.all.root);
    absl::StrAppend(&times, times.empty() ? "" : ", ", "on the CPU ",
                    duration_text(cpu.cpu_ns), ", waiting ", duration_text(cpu.off_ns));
  }
  if (!times.empty()) section.rows.push_back(times);
  if (facts.summary != nullptr) {
    section.rows.push_back(summary_line(*facts.summary));
    if (facts.summary->lost != 0 || facts.summary->overwritten != 0) {
      std::string loss;
      append_tinted(
          loss, style, Tint::kTrouble,
          "  records are missing: calls are lower bounds, times of gaps no function's");
      section.rows.push_back(loss);
    }
  }
  return section;
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
  if (const std::optional<SignalSeen>& seen = facts.ends.signal_seen()) {
    section.rows.push_back(summary_row(
        absl::StrCat("  thread ", thread_title(definitions, seen->thread), ": "),
        seen->path.empty() ? "outside of recorded functions"
                           : names_text(seen->path, labels),
        "", true, style));
  } else {
    section.rows.push_back(
        "  which thread got it is not recorded: record --kernel --signals does");
  }
  size_t shown = 0, more = 0;
  for (const ThreadTree& thread : facts.replay.threads()) {
    const ThreadEnd* end = facts.ends.find(thread.thread);
    if (end == nullptr || (end->open.empty() && end->last_function == kRootFunction))
      continue;
    if (shown == kOpenThreadsMax) {
      ++more;
      continue;
    }
    ++shown;
    std::string notes;
    if (end->last_function != kRootFunction) {
      const int64_t ago_ns = thread.stop_ns - end->last_stop_ns;
      notes = absl::StrCat(
          "; last call: ", labels.text(end->last_function), ", ended ",
          duration_text(static_cast<uint64_t>(std::max<int64_t>(ago_ns, 0))), " before");
    }
    section.rows.push_back(summary_row(
        absl::StrCat("  ", thread_title(definitions, thread.thread), ": "),
        end->open.empty() ? "no open function" : names_text(end->open, labels), notes,
        false, style));
  }
  if (more != 0)
    section.rows.push_back(absl::StrCat("  ", count_text(more, "more thread")));
  return section;
}

SummarySection hints_section(const SummaryFacts& facts, FunctionLabels& labels) {
  SummarySection section;
  const Functions& functions = facts.replay.functions();
  const auto totals =
      function_totals(*facts.all.tree, functions, facts.all.root, SortKey::kBase);
  const Definitions& definitions = facts.replay.definitions();
  const ProcessIndex program = first_program(definitions);
  if (program != kNoIndex && is_whole(facts) &&
      !has_function_of(functions, definitions.processes()[program].executable)) {
    section.rows.push_back(
        absl::StrCat("functions of ", escaped(process_label(definitions, program)),
                     " itself are not recorded: compile it with -finstrument-functions"));
  }
  if (!facts.replay.has_dispatches()) {
    section.rows.emplace_back(
        "time on the CPU and waiting are not told apart: record with --kernel");
  }
  const auto hottest = std::find_if(totals.begin(), totals.end(), [&](const auto& total) {
    return facts.times.find(facts.all, total.function) != nullptr &&
           labels.text(total.function).find('\'') == std::string::npos;
  });
  section.rows.emplace_back("more:  arctrace report --view=tree");
  if (hottest != totals.end()) {
    const std::string name = "'" + labels.text(hottest->function) + "'";
    section.rows.push_back("       arctrace graph " + name);
    section.rows.push_back("       arctrace report --view=slowest -F " + name);
  }
  return section;
}

}  // namespace arctrace::reader
