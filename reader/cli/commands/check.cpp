// arctrace check: whether a trace keeps all rules of SPEC.md.
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reader/cli/commands.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/render/finding_text.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "reader/replay/replay.hpp"
#include "reader/trace/content_check.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/trace/trace.hpp"
#include "src/recorder/buffer/session_directory.hpp"

namespace arctrace::cli {
namespace {

struct CheckOptions {
  std::string path;
  Format format = Format::kText;
  size_t max_findings = 100;
  bool strict = false;
};

// What is no breach of a rule, but not whole either.
std::vector<std::string> imperfections(const reader::Summary& summary) {
  std::vector<std::string> found;
  const auto note = [&](uint64_t count, const char* what) {
    if (count != 0) found.push_back(count_text(count, what));
  };
  note(summary.lost, "lost record");
  note(summary.torn, "torn record");
  note(summary.unfinished, "unfinished record");
  return found;
}

std::string check_text(const reader::Trace& trace, const CheckOptions& options) {
  std::string out;
  for (const reader::Finding& finding : trace.findings()) {
    absl::StrAppend(&out, finding_text(finding, trace.session()), "\n");
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
  const reader::Summary& summary = trace.summary();
  absl::StrAppend(&out, reader::escaped(options.path), ": ",
                  trace.finding_count() == 0
                      ? std::string("no findings")
                      : count_text(trace.finding_count(), "finding"),
                  " in ", count_text(summary.records, "record"), ", ", summary.blocks,
                  " blocks and chunks; ", summary.lost, " lost, ");
  if (summary.overwritten != 0) {
    absl::StrAppend(&out, summary.overwritten, " overwritten, ");
  }
  absl::StrAppend(&out, summary.torn, " torn, ", summary.unfinished, " unfinished\n");
  return out;
}

std::string check_json(const reader::Trace& trace, const CheckOptions& options) {
  nlohmann::ordered_json json;
  const reader::Summary& summary = trace.summary();
  json["file"] = options.path;
  json["finding_count"] = trace.finding_count();
  json["records"] = summary.records;
  json["lost"] = summary.lost;
  json["overwritten"] = summary.overwritten;
  json["torn"] = summary.torn;
  json["unfinished"] = summary.unfinished;
  auto& findings = json["findings"] = nlohmann::ordered_json::array();
  for (const reader::Finding& finding : trace.findings()) {
    findings.push_back({{"rule", finding.rule},
                        {"message", finding.message},
                        {trace.session().raw ? "block" : "chunk", finding.chunk},
                        {"offset", finding.offset}});
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

absl::StatusOr<int> check(const CheckOptions& options) {
  absl::StatusOr<reader::Trace> trace =
      reader::Trace::open(file_or_session(options.path), {options.max_findings});
  if (!trace.ok()) return trace.status();
  reader::ContentChecker content(*trace);
  reader::ReplayOptions replay_options;
  replay_options.max_findings = options.max_findings;
  reader::Replay replay(trace->definitions(), nullptr, replay_options);
  const absl::Status status = trace->read([&](const reader::Record& record) {
    content.check_untrusted(record);
    replay.add(record);
    return true;
  });
  if (!status.ok()) return status;
  replay.finish();
  trace->add_findings(replay.findings(), replay.finding_count());

  Output output;
  output.write(options.format == Format::kJson ? check_json(*trace, options)
                                               : check_text(*trace, options));
  if (absl::Status s = output.finish(); !s.ok()) return s;
  const bool strict_breach = options.strict && !imperfections(trace->summary()).empty();
  return trace->finding_count() != 0 || strict_breach ? 1 : 0;
}

}  // namespace

Runner add_check(CLI::App& root) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* app =
      root.add_subcommand("check", "check a trace against the format's rules");
  add_file_option(*app, options->path);
  add_format_option(*app, options->format);
  app->add_option("--max-findings", options->max_findings,
                  "print at most N findings; all are counted")
      ->check(not_negative())
      ->type_name("N")
      ->capture_default_str();
  app->add_flag("--strict", options->strict,
                "lost, torn and unfinished records count as findings too");
  app->footer(
      "Each finding names a validity rule of SPEC.md and a position. Exit status: 0 if\n"
      "nothing was found, 1 if something was, 2 if the file cannot be read.");
  return [options] { return check(*options); };
}

}  // namespace arctrace::cli
