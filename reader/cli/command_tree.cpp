#include "reader/cli/command_tree.hpp"

#include <CLI/CLI.hpp>
#include <utility>

namespace arctrace::cli {

std::vector<Command> add_commands(CLI::App& root, const std::string& config_file,
                                  bool must_exist) {
  root.name("arctrace");
  root.description("Traces programs: what they call, when, and for how long.");
  root.set_help_flag("-h,--help", "print this help");
  root.set_version_flag("--version", "arctrace " ARCTRACE_VERSION, "print the version");
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
    commands.push_back({root.get_subcommands({}).at(before), std::move(run)});
  }
  return commands;
}

std::shared_ptr<const CLI::App> command_tree() {
  auto root = std::make_shared<CLI::App>();
  add_commands(*root);
  return root;
}

}  // namespace arctrace::cli
