// arctrace graph: all paths to a function, and all that it calls. It is the view "graph"
// of a report.
#include <CLI/CLI.hpp>
#include <memory>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/report_run.hpp"

namespace arctrace::cli {

Runner add_graph(CLI::App& root) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* app = root.add_subcommand(
      "graph", "show all paths to a function and all that it calls, with times");
  add_graph_options(*app, *options);
  return [options]() -> absl::StatusOr<int> {
    if (absl::Status s = complete_report_options(*options); !s.ok()) return s;
    return run_report(*options);
  };
}

}  // namespace arctrace::cli
