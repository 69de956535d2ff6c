// arctrace stop: switches the recording of a session off.
#include <arctrace/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/options.hpp"
#include "src/recording/session_gate.hpp"

namespace arctrace::cli {

Runner add_stop(CLI::App& root) {
  auto name = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand("stop", "switch a session's recording off");
  add_session_option(*app, *name);
  return [name]() -> absl::StatusOr<int> {
    if (absl::Status s = recording::switch_session(*name, 0, ARCTRACE_GATE_ALL); !s.ok())
      return s;
    return 0;
  };
}

}  // namespace arctrace::cli
