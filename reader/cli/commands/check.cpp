// arctrace check: checks whether a trace keeps all rules of SPEC.md.
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/replay_setup.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/record/open_trace.hpp"
#include "reader/render/info.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/streams/replay_run.hpp"
#include "reader/trace/content_check.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::cli {
namespace {

struct CheckOptions {
  std::vector<std::string> paths;
  OutputFormat format = OutputFormat::kText;
  TerminalOptions terminal;
  size_t max_findings = 100;
  bool strict = false;
};

// Returns lines about records that are missing without a breach of a rule.
std::vector<std::string> imperfections(const reader::Summary& summary) {
  std::vector<std::string> found;
  const auto note = [&](uint64_t count, const char* what) {
    if (count != 0) found.push_back(reader::count_text(count, what));
  };
  const uint64_t removed = summary.lost_by_cause[ARCTRACE_LOST_REMOVED];
  note(summary.lost - removed, "lost record");
  note(removed, "removed record");
  note(summary.torn, "torn record");
  note(summary.unfinished, "unfinished record");
  return found;
}

std::string check_text(const reader::Trace& trace, const CheckOptions& options) {
  std::string out;
  for (const reader::Finding& finding : trace.findings()) {
    absl::StrAppend(&out, reader::finding_text(finding, trace.session()), "\n");
  }
  if (trace.findings().size() < trace.finding_count()) {
    absl::StrAppend(&out, "... ", trace.finding_count() - trace.findings().size(),
                    " more (--max-findings)\n");
  }
  if (options.strict) {
    for (const std::string& imperfection : imperfections(trace.summary())) {
      absl::StrAppend(&out, "strict: ", imperfection, "\n");
    }
  }
  const reader::Session& session = trace.session();
  if (const std::string text =
          reader::identities_text(session.processes, session.threads);
      !text.empty()) {
    absl::StrAppend(&out, "note: ", text, "\n");
  }
  if (const std::string text = reader::files_text(session.files); !text.empty()) {
    absl::StrAppend(&out, "note: ", text, "\n");
  }
  const reader::Summary& summary = trace.summary();
  absl::StrAppend(&out, reader::escaped(options.paths.front()), ": ",
                  trace.finding_count() == 0
                      ? std::string("no findings")
                      : reader::count_text(trace.finding_count(), "finding"),
                  " in ", reader::count_text(summary.records, "record"), ", ",
                  reader::grouped_text(summary.blocks), " blocks and chunks; ",
                  reader::grouped_text(summary.lost), " lost, ");
  if (const uint64_t removed = summary.lost_by_cause[ARCTRACE_LOST_REMOVED];
      removed != 0) {
    absl::StrAppend(&out, reader::grouped_text(removed), " of them removed, ");
  }
  if (summary.overwritten != 0) {
    absl::StrAppend(&out, summary.overwritten, " overwritten, ");
  }
  if (summary.elsewhere != 0) {
    absl::StrAppend(&out, summary.elsewhere, " in another file, ");
  }
  absl::StrAppend(&out, summary.torn, " torn, ", summary.unfinished, " unfinished\n");
  return out;
}

void write_check_json(const reader::Trace& trace, const CheckOptions& options,
                      reader::JsonWriter& json) {
  const reader::Summary& summary = trace.summary();
  json.begin_object();
  json.member("file", options.paths.front());
  json.member("finding_count", trace.finding_count());
  json.member("records", summary.records);
  json.member("lost", summary.lost);
  reader::write_losses_json("lost_by_cause", summary.lost_by_cause, json);
  json.member("overwritten", summary.overwritten);
  json.member("elsewhere", summary.elsewhere);
  json.member("filtered_out", summary.filtered_out);
  json.member("torn", summary.torn);
  json.member("unfinished", summary.unfinished);
  reader::write_findings_json(trace, json);
  json.end();
  json.finish();
}

absl::StatusOr<int> check(const CheckOptions& options) {
  absl::StatusOr<reader::Trace> trace =
      reader::Trace::open(files_or_sessions(options.paths), {options.max_findings, true});
  if (!trace.ok()) return trace.status();
  reader::ContentChecker content(*trace);
  reader::ReplayOptions replay_options;
  replay_options.max_findings = options.max_findings;
  reader::Replay replay(trace->definitions(), nullptr, replay_options);
  std::optional<ReadProgress> progress(std::in_place, *trace);
  reader::ReplayWatch watch;
  watch.goes = [&](const reader::ReadSoFar& so_far) {
    progress->update(so_far);
    return true;
  };
  watch.record = [&](const reader::Record& record) { content.check_untrusted(record); };
  if (const auto read = run_replay(*trace, replay, watch); !read.ok()) {
    return read.status();
  }
  progress.reset();
  trace->add_findings(replay.findings(), replay.finding_count());

  reader::Output output;
  if (options.format == OutputFormat::kText) options.terminal.apply_to(output);
  if (options.format == OutputFormat::kJson) {
    reader::JsonWriter json(output.writer(), reader::JsonWriter::Layout::kIndented);
    write_check_json(*trace, options, json);
  } else {
    output.write(check_text(*trace, options));
  }
  if (absl::Status s = output.finish(); !s.ok()) return s;
  const bool strict_breach = options.strict && !imperfections(trace->summary()).empty();
  return trace->finding_count() != 0 || strict_breach ? 1 : 0;
}

}  // namespace

Runner add_check(CLI::App& root) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* app =
      root.add_subcommand("check", "check a trace against the format's rules");
  add_files_option(*app, options->paths);
  add_format_option(*app, options->format);
  add_text_options(*app, options->terminal);
  app->add_option("--max-findings", options->max_findings,
                  "print at most N findings; all are counted")
      ->check(not_negative())
      ->type_name("N")
      ->capture_default_str();
  app->add_flag("--strict", options->strict,
                "count lost, torn and unfinished records as findings");
  app->footer(absl::StrCat(
      "Each finding names the rule that is broken (F1 to S3: SPEC.md, \"Validity\") and\n"
      "where in the file. Exit status: 0 if there are no findings, 1 if there are, 2 if\n"
      "the file cannot be read.\n",
      kFilesNote));
  return [options] { return check(*options); };
}

}  // namespace arctrace::cli
