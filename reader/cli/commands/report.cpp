// arctrace report: shows call stacks and the time spent in them, in one of the views of
// reader/report/.
#include <CLI/CLI.hpp>
#include <memory>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/report_run.hpp"

namespace arctrace::cli {

Runner add_report(CLI::App& root) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* app =
      root.add_subcommand("report", "show call stacks and the time spent in them");
  add_report_options(*app, *options);
  return [options]() -> absl::StatusOr<int> {
    if (absl::Status s = complete_report_options(*options); !s.ok()) return s;
    return run_report(*options);
  };
}

}  // namespace arctrace::cli
