// arctrace help: opens the manual page of a command, or prints its help where there is no
// manual.
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/help_layout.hpp"
#include "reader/render/output.hpp"
#include "reader/render/terminal.hpp"
#include "src/base/near_names.hpp"

namespace arctrace::cli {
namespace {

namespace fs = std::filesystem;

// Finds the file of a page, which is installed beside this program, compressed or not.
// Returns an empty name if it is not there.
std::string find_page(const std::string& name) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return "";
  for (const char* ending : {"", ".gz"}) {
    const fs::path page =
        (program.parent_path() / "../share/man/man1" / absl::StrCat(name, ".1", ending))
            .lexically_normal();
    if (fs::exists(page, error)) return page;
  }
  return "";
}

absl::StatusOr<int> show(const CLI::App& root, const std::string& command) {
  const CLI::App* app = &root;
  std::vector<std::string> names;
  for (const CLI::App* each :
       root.get_subcommands([](const CLI::App*) { return true; })) {
    if (!each->get_group().empty()) names.push_back(each->get_name());
    if (each->get_name() == command) app = each;
  }
  if (!command.empty() && app == &root) {
    return absl::InvalidArgumentError(
        absl::StrCat("help: no command \"", command, "\"", near_names(command, names)));
  }
  const std::string page =
      find_page(command.empty() ? "arctrace" : absl::StrCat("arctrace-", command));
  // execlp() returns if there is no such program.
  if (!page.empty()) execlp("man", "man", page.c_str(), nullptr);
  reader::Output output;
  output.write(fit_help(app == &root ? root.help() : app->help(root.get_name()),
                        reader::terminal_style(reader::ColorMode::kAuto, false)));
  if (absl::Status status = output.finish(); !status.ok()) return status;
  return 0;
}

}  // namespace

Runner add_help(CLI::App& root) {
  auto command = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand("help", "show the manual page of a command");
  app->add_option("command", *command, "the command; without one, arctrace itself")
      ->type_name("COMMAND");
  app->footer(
      "Opens the page by man, which shows it in the pager. Without man, or if the pages\n"
      "are not installed, prints what arctrace COMMAND --help prints.");
  return [&root, command] { return show(root, *command); };
}

}  // namespace arctrace::cli
