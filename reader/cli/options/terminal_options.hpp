// The options of how text appears on a terminal.
#pragma once

#include <string>

#include "reader/cli/options/cli11.hpp"
#include "reader/render/output.hpp"
#include "reader/render/terminal.hpp"

namespace arctrace::cli {

struct TerminalOptions {
  reader::ColorMode color = reader::ColorMode::kAuto;
  bool wide = false;
  bool no_pager = false;

  reader::TextStyle style() const { return reader::terminal_style(color, wide); }
  // Has `output` show text as the options say.
  void apply_to(reader::Output& output) const { output.show_text(style(), !no_pager); }
};

// --wide (also --full-names) and --no-pager. `options` must outlive `app`.
void add_text_options(CLI::App& app, TerminalOptions& options,
                      const std::string& group = "Options");
// The same, and --color.
void add_terminal_options(CLI::App& app, TerminalOptions& options,
                          const std::string& group);

}  // namespace arctrace::cli
