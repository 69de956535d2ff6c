// arctrace export: writes a trace in the format of another program, by one of the
// exporters of reader/export/.
#include <CLI/CLI.hpp>
#include <memory>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/export_run.hpp"

namespace arctrace::cli {

Runner add_export(CLI::App& root) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* app =
      root.add_subcommand("export", "write a trace in the format of another program");
  add_export_options(*app, *options);
  return [options]() -> absl::StatusOr<int> {
    if (absl::Status s = complete_export_options(*options); !s.ok()) return s;
    return run_export(*options);
  };
}

}  // namespace arctrace::cli
