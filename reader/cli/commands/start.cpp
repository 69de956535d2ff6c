// arctrace start: switches the recording of a session on.
#include <arctrace/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/options.hpp"
#include "src/recording/session_gate.hpp"

namespace arctrace::cli {

Runner add_start(CLI::App& root) {
  auto name = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand("start", "switch a session's recording on");
  add_session_option(*app, *name);
  return [name]() -> absl::StatusOr<int> {
    if (absl::Status s = recording::switch_session(*name, ARCTRACE_GATE_ALL, 0); !s.ok())
      return s;
    return 0;
  };
}

}  // namespace arctrace::cli
