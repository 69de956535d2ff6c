// arctrace report, graph and export: they replay a trace, and show it in one of the views
// of reader/report/, or write it by one of the exporters of reader/export/.
#include <CLI/CLI.hpp>
#include <memory>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/replay_setup.hpp"
#include "reader/cli/record/open_trace.hpp"

namespace arctrace::cli {

// arctrace report: shows call stacks and the time spent in them, in one of the views of
// reader/report/.
Runner add_report(CLI::App& root) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* app =
      root.add_subcommand("report", "show call stacks and the time spent in them");
  add_report_options(*app, *options);
  return [options]() -> absl::StatusOr<int> {
    if (absl::Status s = count_from_end_of(options->paths, options->range); !s.ok()) {
      return s;
    }
    if (absl::Status s = complete_report_options(*options); !s.ok()) return s;
    return run_report(*options);
  };
}

// arctrace graph: shows all paths to a function, and all that it calls. It is the view
// "graph" of a report.
Runner add_graph(CLI::App& root) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* app = root.add_subcommand(
      "graph", "show all paths to a function and all that it calls, with times");
  add_graph_options(*app, *options);
  return [options]() -> absl::StatusOr<int> {
    if (absl::Status s = count_from_end_of(options->paths, options->range); !s.ok()) {
      return s;
    }
    if (absl::Status s = complete_report_options(*options); !s.ok()) return s;
    return run_report(*options);
  };
}

// arctrace export: writes a trace in the format of another program, by one of the
// exporters of reader/export/.
Runner add_export(CLI::App& root) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* app =
      root.add_subcommand("export", "write a trace in the format of another program");
  add_export_options(*app, *options);
  return [options]() -> absl::StatusOr<int> {
    if (absl::Status s = count_from_end_of(options->paths, options->range); !s.ok()) {
      return s;
    }
    for (TimeRange& exact : options->exact) {
      if (absl::Status s = count_from_end_of(options->paths, exact); !s.ok()) return s;
    }
    if (absl::Status s = complete_export_options(*options); !s.ok()) return s;
    return run_export(*options);
  };
}

}  // namespace arctrace::cli
