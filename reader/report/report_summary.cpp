#include "reader/report/report_summary.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "reader/render/labels.hpp"
#include "reader/render/left_out.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/text_style.hpp"
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

}  // namespace arctrace::reader
