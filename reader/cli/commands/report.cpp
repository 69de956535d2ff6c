// arctrace report: call stacks and the time spent in them.
#include <memory>

#include "reader/cli/commands.hpp"
#include "reader/cli/commands/report_run.hpp"
#include "reader/cli/options/report_options.hpp"

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
