// arctrace env: prints the environment in which a program records into a session, for
// programs that arctrace does not start itself.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/traced_options.hpp"
#include "reader/cli/record/printed_events.hpp"
#include "reader/cli/record/record_session.hpp"
#include "reader/render/output.hpp"
#include "src/recording/session_variables.hpp"

namespace arctrace::cli {
namespace {

absl::StatusOr<int> print_environment(const recording::RecordOptions& options) {
  if (const auto problem = recording::find_problem(options.filter)) {
    reader::print_message("env: " + problem->text());
    return 2;
  }
  PrintedEvents events;
  const absl::StatusOr<std::vector<std::string>> variables =
      recording::session_environment(options, events);
  if (!variables.ok()) return variables.status();
  reader::Output output;
  for (const std::string& variable : *variables) {
    const size_t value = variable.find('=') + 1;
    const std::string quoted =
        absl::StrReplaceAll(variable.substr(value), {{"'", "'\\''"}});
    output.write(absl::StrCat(variable.substr(0, value), "'", quoted, "'\n"));
  }
  if (absl::Status status = output.finish(); !status.ok()) return status;
  return 0;
}

}  // namespace

Runner add_env(CLI::App& root) {
  auto options = std::make_shared<recording::RecordOptions>();
  CLI::App* app = root.add_subcommand(
      "env", "print the environment that makes a program record into a session");
  add_session_option(*app, options->session);
  add_traced_options(*app, *options);
  app->footer(
      "Prints NAME='VALUE' lines, for a shell (set -a; eval \"$(arctrace env NAME)\")\n"
      "or for EnvironmentFile= of systemd. A program that starts with these\n"
      "variables joins the session, and so do its children.");
  return [options] { return print_environment(*options); };
}

}  // namespace arctrace::cli
