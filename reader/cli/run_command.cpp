#include "reader/cli/run_command.hpp"

#include <absl/status/status.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/cli/options/command_line.hpp"
#include "reader/cli/options/help_layout.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/parse_errors.hpp"
#include "reader/render/output.hpp"
#include "reader/render/terminal.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::cli {

namespace {

// The options of all commands.
void add_general_options(CLI::App& app) {
  add_group(app, "General", [&] {
    app.add_flag_callback(
           "-q,--quiet", [] { reader::set_verbosity(reader::Verbosity::kQuiet); },
           "print no messages, warnings and progress, only errors")
        ->trigger_on_parse();
    // arctrace info has a flag of that name, for more facts.
    if (app.get_option_no_throw("--verbose") == nullptr) {
      app.add_flag_callback(
             "-v,--verbose", [] { reader::set_verbosity(reader::Verbosity::kVerbose); },
             "print also how the command does its work")
          ->trigger_on_parse();
    }
    app.set_version_flag("-V,--version", "arctrace " ARCTRACE_VERSION,
                         "print the version");
  });
}

}  // namespace

std::vector<Command> add_commands(CLI::App& root, const std::string& config_file,
                                  bool must_exist) {
  root.name("arctrace");
  root.formatter(std::make_shared<HelpFormatter>());
  root.description("Traces programs: what they call, when, and for how long.");
  root.set_help_flag("-h,--help", "print this help");
  root.set_version_flag("-V,--version", "arctrace " ARCTRACE_VERSION,
                        "print the version");
  root.footer(
      "A file can hold options for each command: a line [record], and below it lines\n"
      "such as buffer-size=16M, no-libcall=true or notrace=[\"str*\",\"mem*\"]. "
      "Options of\n"
      "the command line take precedence. arctrace COMMAND --help describes a command,\n"
      "arctrace help COMMAND shows its manual page.");
  root.set_config("--config", config_file,
                  "read options from this file; default: $ARCTRACE_CONFIG or "
                  "~/.config/arctrace/config",
                  must_exist);
  root.allow_config_extras(CLI::config_extras_mode::error);
  root.fallthrough();
  std::vector<Command> commands;
  for (const auto add :
       {add_record,  add_report, add_graph,     add_diff,     add_tui,
        add_view,    add_export, add_archive,   add_dump,     add_info,
        add_check,   add_create, add_list,      add_live,     add_attach,
        add_start,   add_stop,   add_ctl,       add_snapshot, add_recover,
        add_destroy, add_env,    add_functions, add_help,     add_complete}) {
    const size_t before = root.get_subcommands({}).size();
    Runner run = add(root);
    CLI::App* app = root.get_subcommands({}).at(before);
    add_general_options(*app);
    commands.push_back({app, std::move(run)});
  }
  return commands;
}

std::shared_ptr<const CLI::App> command_tree() {
  auto root = std::make_shared<CLI::App>();
  add_commands(*root);
  return root;
}

namespace {

constexpr int kStatusError = 2;

// Returns what to do if the file that is read by default does not exist; else empty.
std::string advice_for(const absl::Status& error) {
  if (!absl::IsNotFound(error) ||
      !absl::StartsWith(error.message(),
                        absl::StrCat("cannot open ", kDefaultFile, ": "))) {
    return {};
  }
  return "; record a program first (arctrace record -- PROGRAM), or give the FILE to "
         "read";
}

std::string default_config_file() {
  const char* directory = std::getenv("XDG_CONFIG_HOME");
  if (directory != nullptr && *directory == '/')
    return absl::StrCat(directory, "/arctrace/config");
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : absl::StrCat(home, "/.config/arctrace/config");
}

class CommandLine {
 public:
  CommandLine() {
    const char* given = std::getenv("ARCTRACE_CONFIG");
    const bool is_given = given != nullptr && *given != '\0';
    std::string warning;
    const std::string file =
        is_given ? given : default_config_at(default_config_file(), warning);
    if (!warning.empty()) reader::print_warning(reader::escaped(warning));
    commands_ = add_commands(root_, file, is_given);
    root_.config_formatter(config_);
  }

  int run(std::vector<std::string> arguments) {
    if (const std::string problem = check_command(arguments); !problem.empty()) {
      return fail(problem);
    }
    separate_command(root_, arguments);
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them in reverse
    try {
      root_.parse(std::move(arguments));
    } catch (const CLI::ParseError& error) {
      return parse_error(error);
    }
    for (const auto& [app, runner] : commands_) {
      if (!app->parsed()) continue;
      const absl::StatusOr<int> status = runner();
      if (status.ok()) return *status;
      return fail(absl::StrCat(std::string(status.status().message()),
                               advice_for(status.status())));
    }
    return fail("no command given: arctrace --help lists the commands");
  }

 private:
  // Returns what is wrong with the first argument, which must be an option or a
  // subcommand; else empty.
  std::string check_command(const std::vector<std::string>& arguments) const {
    if (arguments.empty() || arguments.front().starts_with("-")) return {};
    std::vector<std::string> names;
    for (const auto& [app, runner] : commands_) {
      if (app->get_name() == arguments.front()) return {};
      if (!app->get_group().empty()) names.push_back(app->get_name());
    }
    return unknown_command_text(arguments.front(), names);
  }

  // CLI11 reports --help and --version as errors, too.
  int parse_error(const CLI::ParseError& error) const {
    if (error.get_exit_code() == 0) {
      std::ostringstream text;
      root_.exit(error, text, text);
      reader::Output output;
      output.write(
          fit_help(text.str(), reader::terminal_style(reader::ColorMode::kAuto, false)));
      const absl::Status status = output.finish();
      return status.ok() ? 0 : fail(std::string(status.message()));
    }
    const CLI::App* command = &root_;
    for (const auto& [app, runner] : commands_) {
      if (app->parsed()) command = app;
    }
    const std::string what = parse_error_text(*command, error);
    const std::string line = config_->line_of(command->get_name(), option_in(what));
    if (!line.empty()) return fail(line + what);
    const bool is_of_file = dynamic_cast<const CLI::ConfigError*>(&error) != nullptr;
    return fail(is_of_file || command == &root_
                    ? what
                    : absl::StrCat(command->get_name(), ": ", what));
  }

  CLI::App root_;
  std::shared_ptr<ConfigFile> config_ = std::make_shared<ConfigFile>(root_);
  std::vector<Command> commands_;
};

}  // namespace

int fail(std::string_view message) {
  reader::print_error(reader::escaped(message));
  return kStatusError;
}

int run_command(std::vector<std::string> arguments) {
  return CommandLine().run(std::move(arguments));
}

}  // namespace arctrace::cli
