// arctrace info: what a trace file or a buffer is and holds.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "reader/cli/commands.hpp"
#include "reader/cli/info_json.hpp"
#include "reader/cli/info_text.hpp"
#include "reader/cli/options.hpp"
#include "reader/cli/output.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::cli {
namespace {

struct InfoOptions {
  std::string path;
  Format format = Format::kText;
};

absl::StatusOr<int> info(const InfoOptions& options) {
  absl::StatusOr<reader::Trace> trace = reader::Trace::open(options.path);
  if (!trace.ok()) return trace.status();
  // Nothing is looked at but what the reading itself counts and checks.
  absl::Status status = trace->read([](const reader::Record&) { return true; });
  if (!status.ok()) return status;
  Output output;
  output.write(options.format == Format::kJson ? info_json(*trace) : info_text(*trace));
  status = output.finish();
  if (!status.ok()) return status;
  return 0;
}

}  // namespace

Runner add_info(CLI::App& root) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* app = root.add_subcommand("info", "show what a trace or a buffer holds");
  add_file_option(*app, options->path);
  add_format_option(*app, options->format);
  app->footer(
      "Shows session, clock, processes, threads, modules, counts, losses and findings;\n"
      "of a buffer, live or left over in /dev/shm, also its blocks and writer slots.");
  return [options] { return info(*options); };
}

}  // namespace arctrace::cli
