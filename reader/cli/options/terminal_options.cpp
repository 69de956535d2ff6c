#include "reader/cli/options/terminal_options.hpp"

#include <CLI/CLI.hpp>

#include "reader/cli/options/options.hpp"

namespace arctrace::cli {

void add_text_options(CLI::App& app, TerminalOptions& options, const std::string& group) {
  app.add_flag("--wide,--full-names", options.wide,
               "do not cut names and columns to the width of the terminal")
      ->group(group);
  app.add_flag("--no-pager", options.no_pager,
               "do not show the text through $ARCTRACE_PAGER, else $PAGER, else less")
      ->group(group);
}

void add_terminal_options(CLI::App& app, TerminalOptions& options,
                          const std::string& group) {
  add_choice<reader::ColorMode>(app, "--color", options.color,
                                {{"auto", reader::ColorMode::kAuto},
                                 {"always", reader::ColorMode::kAlways},
                                 {"never", reader::ColorMode::kNever}},
                                "auto: on a terminal, unless NO_COLOR is set")
      ->group(group);
  add_text_options(app, options, group);
}

}  // namespace arctrace::cli
