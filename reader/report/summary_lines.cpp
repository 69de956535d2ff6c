#include "reader/report/summary_lines.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <arctrace/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reader/render/labels.hpp"
#include "reader/render/left_out.hpp"
#include "reader/render/report_parts.hpp"
#include "reader/render/session_text.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

// Whether the kernel's records are incomplete: threads may have lost a CPU without a
// record.
bool lacks_kernel_records(const SummaryFacts& facts) {
  return facts.summary->lost_by_cause[ARCTRACE_LOST_KERNEL] != 0 ||
         !facts.replay.definitions().kernel_begins().empty();
}

// "5 threads"; "5 of 7 threads" if only those were asked for.
std::string part_text(uint64_t count, uint64_t all, const std::string& what,
                      const std::string& plural) {
  if (all <= count) return count_text(count, what, plural);
  return absl::StrCat(count, " of ", count_text(all, what, plural));
}

std::string processes_and_threads_text(const SummaryFacts& facts) {
  const ProcessesAndThreads shown = shown_counts(facts.replay, facts.summary);
  const Summary* all = facts.summary;
  return absl::StrCat(
      part_text(shown.processes, all == nullptr ? 0 : all->processes, "process",
                "processes"),
      ", ",
      part_text(shown.threads, all == nullptr ? 0 : all->threads, "thread", "threads"));
}

// Returns what to do about a buffer that was full: "the buffer of 64 MiB was full: record
// with -b 256M". Empty if none was, or its size is not known.
std::string larger_buffer_text(const SummaryFacts& facts) {
  if (facts.session == nullptr || facts.session->buffer_size == 0 ||
      facts.summary->lost_by_cause[ARCTRACE_LOST_FULL] == 0) {
    return {};
  }
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  const uint64_t wanted =
      std::bit_floor(std::max(4 * facts.session->buffer_size, 4 * kMiB));
  return absl::StrCat("the buffer of ", bytes_text(facts.session->buffer_size),
                      " was full: record with -b ", wanted / kMiB, "M");
}

// "the longest gap: 2.10 ms at 0.081000000, thread 100/101, lost: full"; empty if there
// is none whose beginning is known.
std::string longest_gap_text(const SummaryFacts& facts) {
  if (facts.gaps == nullptr || !facts.gaps->longest().has_value()) return {};
  const Gap& gap = *facts.gaps->longest();
  return absl::StrCat("the longest gap: ",
                      duration_text(static_cast<uint64_t>(gap.to_ns) -
                                    static_cast<uint64_t>(gap.from_ns)),
                      " at ", seconds_text(gap.from_ns), " s, ",
                      gap_subject_text(gap, facts.replay.definitions()), ", ",
                      gap_reason_text(gap));
}

// The most filters that the head names.
constexpr size_t kFiltersNamed = 4;

// Adds a row for each filter that left out calls.
void add_filter_rows(const RecordedStates& recorded, std::vector<std::string>& rows) {
  size_t filters = 0;
  for (const CallsLeftOut& cause : recorded.causes()) {
    if (!cause.is_filter || ++filters > kFiltersNamed) continue;
    rows.push_back(cause.functions == 0
                       ? "  " + without_rows_text(cause)
                       : absl::StrCat("  ", count_text(cause.functions, "function"),
                                      cause.functions == 1 ? " is" : " are",
                                      " not complete: ", left_out_text(cause.what),
                                      " left calls out"));
  }
  if (filters > kFiltersNamed) {
    rows.push_back(absl::StrCat("  (", filters - kFiltersNamed, " more filters)"));
  }
}

// Returns since when some patched functions are not recorded any more, and which filters
// left out calls; empty if all calls were recorded.
std::vector<std::string> left_out_rows(const Definitions& definitions,
                                       const RecordedStates& recorded) {
  std::vector<std::string> rows;
  uint64_t count = 0;
  int64_t since_ns = INT64_MAX;
  for (const Process& process : definitions.processes()) {
    count += process.switched_off.size();
    for (const auto& [unused, off_ns] : process.switched_off) {
      since_ns = std::min(since_ns, off_ns);
    }
  }
  if (count != 0) {
    const auto since = static_cast<uint64_t>(std::max(since_ns, int64_t{0}));
    rows.push_back(absl::StrCat("  ", count_text(count, "function"),
                                count == 1 ? " was switched off, because its"
                                           : " were switched off, because their",
                                " calls filled the buffer:"));
    rows.push_back(absl::StrCat("  calls are lower bounds from ", duration_text(since),
                                " on; arctrace info -v names them"));
  }
  add_filter_rows(recorded, rows);
  return rows;
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

std::string overview_path(const std::string& path, size_t used, const TextStyle& style) {
  if (style.whole) return path;
  if (style.width == 0) return cut_path(path, kOverviewPathColumns, style);
  return cut_path(path, style.width > used ? style.width - used : 1, style);
}

std::vector<std::string> SummarySection::lines() const {
  std::vector<std::string> all;
  const auto add = [&](const std::string& row) {
    const std::vector<std::string> pieces = absl::StrSplit(row, '\n');
    all.insert(all.end(), pieces.begin(), pieces.end());
  };
  for (const std::string& row : rows) add(row);
  if (!others.empty() && !others[rows.size()].empty()) add(others[rows.size()]);
  for (const std::string& row : end) add(row);
  const auto has_mark = [this](const std::string& row) {
    return row.find(mark) != std::string::npos;
  };
  if (!legend.empty() && std::any_of(rows.begin(), rows.end(), has_mark)) add(legend);
  return all;
}

void SummarySection::cut(size_t count) {
  if (!others.empty()) rows.resize(std::min(rows.size(), std::max(count, least)));
}

std::string others_name(uint64_t count) {
  return absl::StrCat("others (", grouped_text(count), ")");
}

std::string summary_text(std::vector<SummarySection> sections, size_t max_lines) {
  std::erase_if(sections,
                [](const SummarySection& section) { return section.lines().empty(); });
  const auto lines_of = [](const SummarySection& section) {
    return section.lines().size() + (section.head.empty() ? size_t{0} : size_t{1});
  };
  const auto lines = [&] {
    size_t count = sections.empty() ? 0 : sections.size() - 1;
    for (const SummarySection& section : sections) count += lines_of(section);
    return count;
  };
  const auto rows_to_cut = [](const SummarySection& section) {
    return section.others.empty() || section.rows.size() <= section.least
               ? 0
               : section.rows.size();
  };
  while (lines() > max_lines) {
    const auto longest = std::max_element(
        sections.begin(), sections.end(),
        [&](const auto& a, const auto& b) { return rows_to_cut(a) < rows_to_cut(b); });
    if (longest == sections.end() || rows_to_cut(*longest) == 0) break;
    // The first dropped row gives way to a row for the others.
    const size_t before = lines_of(*longest);
    while (lines_of(*longest) >= before && rows_to_cut(*longest) != 0) {
      longest->cut(longest->rows.size() - 1);
    }
  }
  std::string text;
  for (const SummarySection& section : sections) {
    if (!text.empty()) text += '\n';
    if (!section.head.empty()) text += section.head + "\n";
    for (const std::string& line : section.lines()) text += line + "\n";
  }
  return text;
}

std::vector<FunctionTotal> hottest_functions(const SummaryFacts& facts) {
  const Functions& functions = facts.replay.functions();
  std::vector<FunctionTotal> totals =
      function_totals(*facts.all.tree, functions, facts.all.root, SortKey::kSelf);
  std::erase_if(totals, [&](const FunctionTotal& total) {
    return total.function != kRootFunction && total.function == functions.own_work();
  });
  return totals;
}

std::vector<std::string> first_command(const Definitions& definitions) {
  for (const Process& process : definitions.processes()) {
    if (process.origin == ARCTRACE_ORIGIN_EXEC && !process.arguments.empty()) {
      return process.arguments;
    }
  }
  return {};
}

ProcessesAndThreads shown_counts(const Replay& replay, const Summary* summary) {
  const Definitions& definitions = replay.definitions();
  std::vector<ThreadIndex> shown;
  for (const ThreadTree& tree : replay.threads()) {
    const Thread& thread = definitions.threads()[tree.thread];
    if (thread.of_kernel() && (!thread.is_silent || thread.process == kNoIndex)) continue;
    shown.push_back(tree.thread);
  }
  ProcessesAndThreads counts = count_joined(definitions, shown);
  if (summary != nullptr && replay.is_of_all()) {
    counts.processes = std::max(counts.processes, summary->processes);
    counts.threads = std::max(counts.threads, summary->threads);
  }
  return counts;
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

uint64_t own_work_wall_ns(const Replay& replay) {
  const Definitions& definitions = replay.definitions();
  std::vector<TracerStart> starts;
  const auto add = [&starts](const ThreadTree& tree, const TracerStart& start) {
    const TracerStart cut = {std::max(start.from_ns, tree.start_ns),
                             std::min(start.until_ns, tree.stop_ns)};
    if (cut.from_ns < cut.until_ns) starts.push_back(cut);
  };
  for (const ThreadTree& tree : replay.threads()) {
    const Thread& thread = definitions.threads()[tree.thread];
    if (thread.tracer_start.has_value()) add(tree, *thread.tracer_start);
    const Process* process = definitions.process(thread.process);
    if (process == nullptr || process->pid != thread.tid) continue;
    for (const TracerStart& start : process->tracer_starts) add(tree, start);
  }
  std::sort(starts.begin(), starts.end(), [](const TracerStart& a, const TracerStart& b) {
    return a.from_ns < b.from_ns;
  });
  uint64_t sum_ns = 0;
  int64_t until_ns = INT64_MIN;
  for (const TracerStart& start : starts) {
    const int64_t from_ns = std::max(start.from_ns, until_ns);
    if (from_ns >= start.until_ns) continue;
    sum_ns += static_cast<uint64_t>(start.until_ns - from_ns);
    until_ns = start.until_ns;
  }
  return sum_ns;
}

std::string end_text(const Session* session) {
  if (session == nullptr) return {};
  if (session->child_wait_status.has_value()) {
    const int32_t status = *session->child_wait_status;
    if (!WIFSIGNALED(status)) return wait_status_text(status);
    return absl::StrCat("killed by ", wait_status_text(status),
                        WCOREDUMP(status) ? ", core dumped" : ", no core file");
  }
  if (session->raw || session->finished) return {};
  return "the recording was cut off";
}

SummarySection head_section(const SummaryFacts& facts, FunctionLabels& labels,
                            const TextStyle& style) {
  SummarySection section;
  const Replay& replay = facts.replay;
  std::string command = command_line_text(first_command(replay.definitions()));
  if (command.empty() && facts.session != nullptr) command = escaped(facts.session->path);
  if (!command.empty()) section.rows.push_back(summary_head(command, style));

  std::string end = end_text(facts.session);
  if (!end.empty()) end += ", ";
  // What came before has been removed, or is in another file.
  const bool is_part = facts.session != nullptr && facts.session->begins_elsewhere;
  section.rows.push_back(absl::StrCat(
      end, is_part ? "of which the last " : "", duration_text(wall_ns(replay)),
      is_part ? " are here, " : ", ", processes_and_threads_text(facts)));
  std::string times;
  if (replay.threads().size() > 1) {
    times = "all threads: " + duration_text(facts.all_ns());
  }
  if (replay.has_dispatches()) {
    const CpuTime& cpu = facts.all.tree->cpu_total(facts.all.root);
    absl::StrAppend(&times, times.empty() ? "" : ", ", "on the CPU ",
                    duration_text(cpu.cpu_ns));
    if (replay.known_times() == KnownTimes::kReady) {
      absl::StrAppend(&times, ", blocked ", duration_text(cpu.blocked_ns()));
      if (cpu.ready_ns != 0) {
        absl::StrAppend(&times, ", without a CPU ", duration_text(cpu.ready_ns));
      }
    } else {
      absl::StrAppend(&times, ", off it ", duration_text(cpu.off_ns));
    }
    if (cpu.unknown_ns != 0) {
      absl::StrAppend(&times, ", not known ", duration_text(cpu.unknown_ns));
    }
  }
  if (!times.empty()) section.rows.push_back(times);
  for (std::string& row : recording_rows(facts, labels, style)) {
    section.rows.push_back(std::move(row));
  }
  // Sentences go on in the next line.
  for (size_t i = command.empty() ? 0 : 1; i < section.rows.size(); ++i) {
    const size_t indent = section.rows[i].find("  ") == 0 ? 4 : 2;
    section.rows[i] = wrap_line(section.rows[i], indent, style);
  }
  return section;
}

std::vector<std::string> recording_rows(const SummaryFacts& facts, FunctionLabels& labels,
                                        const TextStyle& style) {
  const Replay& replay = facts.replay;
  std::vector<std::string> rows = cost_rows(facts, labels.recorded());
  if (facts.summary != nullptr) {
    rows.push_back(summary_line(*facts.summary));
    if (facts.summary->lost != 0 || facts.summary->overwritten != 0) {
      std::string loss;
      append_tinted(
          loss, style, Tint::kTrouble,
          "  records are missing: calls are lower bounds, times of gaps no function's");
      rows.push_back(loss);
      if (const std::string gap = longest_gap_text(facts); !gap.empty()) {
        rows.push_back("  " + gap);
      }
      if (const std::string advice = larger_buffer_text(facts); !advice.empty()) {
        rows.push_back("  " + advice);
      }
      if (facts.session != nullptr) {
        if (const auto kept = kept_span(*facts.session, replay.definitions())) {
          rows.push_back("  " + kept_span_text(*kept));
        }
      }
    }
    if (const std::string row = joined_text(replay.definitions()); !row.empty()) {
      rows.push_back(row);
    }
    if (replay.has_dispatches() && lacks_kernel_records(facts)) {
      std::string loss;
      append_tinted(
          loss, style, Tint::kTrouble,
          "  records of the kernel are missing: time on the CPU may be time off it");
      rows.push_back(loss);
    }
  }
  for (const std::string& row : left_out_rows(replay.definitions(), labels.recorded())) {
    append_tinted(rows.emplace_back(), style, Tint::kTrouble, row);
  }
  return rows;
}

}  // namespace arctrace::reader
