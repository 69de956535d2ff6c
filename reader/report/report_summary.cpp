#include "reader/report/report_summary.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "reader/render/labels.hpp"
#include "reader/render/left_out.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kFactsShown = 3;
constexpr size_t kSymbolFindingsShown = 5;

}  // namespace

std::string report_head_text(const Session& session) {
  const std::vector<std::string> facts = session_facts(session);
  std::string text;
  for (size_t i = 0; i < std::min(facts.size(), kFactsShown); ++i) {
    absl::StrAppend(&text, facts[i], "\n");
  }
  return text;
}

std::string missing_lines_text(const std::vector<std::string>& symbol_findings) {
  // The other modules have no file of their own, or their debug file is here.
  const auto missing = std::count_if(
      symbol_findings.begin(), symbol_findings.end(), [](const std::string& finding) {
        return finding.starts_with('/') &&
               finding.find("; names are from ") == std::string::npos;
      });
  if (missing == 0) return {};
  if (missing == 1) {
    return "1 module is not here as it was recorded, so its source lines are missing: "
           "run arctrace archive where it is";
  }
  return absl::StrCat(missing,
                      " modules are not here as they were recorded, so their source "
                      "lines are missing: run arctrace archive where they are");
}

std::string interrupted_text() {
  return "Interrupted: these sums are of the records read so far.\n";
}

std::string report_end_text(const ReportSummary& summary) {
  std::string text = "\n";
  if (summary.interrupted) {
    text += interrupted_text();
  }
  Summary sums = summary.trace;
  sums.findings += summary.replay.finding_count();
  absl::StrAppend(&text, summary_line(sums), " in ",
                  duration_text(static_cast<uint64_t>(sums.duration_ns)), " of ",
                  count_text(sums.processes, "process", "processes"), ", ",
                  count_text(sums.threads, "thread"), "\n");
  if (const std::string frames = frame_totals_text(summary.replay.totals());
      !frames.empty()) {
    absl::StrAppend(&text, frames, "\n");
  }
  if (summary.events.is_set()) {
    absl::StrAppend(&text, left_out_events_text(summary.events), "\n");
  }
  const std::vector<std::string>& findings = summary.symbol_findings;
  for (size_t i = 0; i < std::min(findings.size(), kSymbolFindingsShown); ++i) {
    absl::StrAppend(&text, "symbols: ", escaped(findings[i]), "\n");
  }
  if (findings.size() > kSymbolFindingsShown) {
    absl::StrAppend(&text, "symbols: ", findings.size() - kSymbolFindingsShown,
                    " more modules have none of their own\n");
  }
  if (const std::string missing = missing_lines_text(findings);
      summary.lines && !missing.empty()) {
    absl::StrAppend(&text, missing, "\n");
  }
  return text;
}

void write_report_end_json(const ReportSummary& summary, JsonWriter& json) {
  const Summary& sums = summary.trace;
  const ReplayTotals& totals = summary.replay.totals();
  json.key("summary").begin_object();
  json.member("records", sums.records);
  json.member("lost", sums.lost);
  write_losses_json("lost_by_cause", sums.lost_by_cause, json);
  json.member("overwritten", sums.overwritten);
  json.member("elsewhere", sums.elsewhere);
  json.member("filtered_out", sums.filtered_out);
  json.member("torn", sums.torn);
  json.member("unfinished", sums.unfinished);
  json.member("invalid", sums.invalid);
  json.member("orphans", totals.orphans);
  json.member("findings", sums.findings + summary.replay.finding_count());
  json.member("processes", sums.processes);
  json.member("threads", sums.threads);
  json.member("duration_ns", sums.duration_ns);
  write_frame_totals_json(totals, json);
  json.member("resyncs", totals.resyncs);
  write_left_out_events_json(summary.events, json);
  if (summary.interrupted) json.member("interrupted", true);
  json.end();
  json.key("symbol_findings").begin_array();
  for (const std::string& line : summary.symbol_findings) json.value(line);
  json.end();
}

namespace {

// Returns the first program, whose module has the program's own functions; kNoIndex:
// none.
ProcessIndex first_program(const Definitions& definitions) {
  for (ProcessIndex i = 0; i < definitions.processes().size(); ++i) {
    if (definitions.processes()[i].origin == ARCTRACE_ORIGIN_EXEC) return i;
  }
  return kNoIndex;
}

// Whether a function of the program was recorded. Functions count even if a filter of the
// report hides their calls.
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

// Whether the replay saw all that was recorded: missing records may be of anything.
bool is_whole(const Replay& replay, const Session* session, const Summary* summary) {
  if (!replay.has_all_threads()) return false;
  if (summary != nullptr && (summary->lost != 0 || summary->overwritten != 0)) {
    return false;
  }
  return session == nullptr || session->finished;
}

// Returns the part of the recorder's command line before the command that it ran.
std::span<const std::string> recorder_options(const Session* session,
                                              const std::vector<std::string>& command) {
  if (session == nullptr) return {};
  const std::span<const std::string> options = session->recorder_command;
  if (!command.empty() && command.size() < options.size() &&
      std::equal(command.begin() + 1, command.end(),
                 options.end() - static_cast<ptrdiff_t>(command.size()) + 1)) {
    return options.first(options.size() - command.size());
  }
  return options;
}

// Whether functions were to be patched.
bool has_patching(std::span<const std::string> options) {
  return std::any_of(options.begin(), options.end(), [](const std::string& option) {
    return option.starts_with("-P") || option.substr(0, option.find('=')) == "--patch";
  });
}

// Whether the option at `i` leaves no function out, but has -P take small ones: "-Z 1",
// "-Z1", "--size-filter=1".
bool is_any_size(std::span<const std::string> options, size_t i) {
  for (const std::string_view name : {"-Z", "--size-filter"}) {
    std::string_view option = options[i];
    if (option == name) return i + 1 < options.size() && options[i + 1] == "1";
    if (!option.starts_with(name)) continue;
    option.remove_prefix(name.size());
    return option == "1" || option == "=1";
  }
  return false;
}

bool has_any_size(std::span<const std::string> options) {
  for (size_t i = 0; i < options.size(); ++i) {
    if (is_any_size(options, i)) return true;
  }
  return false;
}

// Whether one of the recorder's options leaves functions out. The last arguments are the
// command that it ran if the trace does not tell that command.
bool has_functions_filter(std::span<const std::string> options) {
  constexpr std::string_view kShort = "FNLDtZ";
  constexpr std::string_view kLong[] = {"--filter", "--notrace",     "--module",
                                        "--depth",  "--time-filter", "--size-filter"};
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string& option = options[i];
    if (is_any_size(options, i) || option.size() < 2 || option[0] != '-') continue;
    const bool leaves_out =
        option[1] != '-'
            ? kShort.find(option[1]) != std::string_view::npos
            : std::find(std::begin(kLong), std::end(kLong),
                        option.substr(0, option.find('='))) != std::end(kLong);
    if (leaves_out) return true;
  }
  return false;
}

// Why -P patched nothing of the program, and what may.
std::string refusal_text(uint32_t refusal) {
  return absl::StrCat(
      "nothing was patched for -P: ", patch_refusal_text(refusal),
      refusal == ARCTRACE_PATCH_THREADS ? "; record -p PID -P . patches it later" : "");
}

}  // namespace

std::string own_functions_hint(const Replay& replay, const Session* session,
                               const Summary* summary, const EnabledList* enabled,
                               size_t width) {
  const Definitions& definitions = replay.definitions();
  const ProcessIndex program = first_program(definitions);
  if (program == kNoIndex || !is_whole(replay, session, summary) ||
      has_function_of(replay.functions(), definitions.processes()[program].executable)) {
    return {};
  }
  const std::vector<std::string> command = first_command(definitions);
  const std::string name = escaped(process_label(definitions, program));
  const std::string hint =
      absl::StrCat("functions of ", name, " itself are not recorded: ");
  const uint32_t refusal = definitions.processes()[program].patch_refusal;
  if (refusal != 0) return hint + refusal_text(refusal);
  const std::span<const std::string> options = recorder_options(session, command);
  if ((enabled != nullptr && enabled->excludes_functions()) ||
      has_functions_filter(options)) {
    return hint + "functions were switched off or filtered out meanwhile";
  }
  if (has_patching(options) && has_any_size(options)) {
    return hint + "none could be patched for -P: arctrace functions --list says why";
  }
  // In most programs, the functions that -P skips are small.
  const std::string record =
      absl::StrCat("record it with -P .", has_patching(options) ? " -Z 1" : "");
  const std::string advice = record + ", or compile it with -finstrument-functions";
  const bool fits = width == 0 || columns_of(hint) + advice.size() <= width;
  return hint + (fits ? advice : record);
}

}  // namespace arctrace::reader
