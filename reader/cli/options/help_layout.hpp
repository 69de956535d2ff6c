// The layout of --help: the groups of options, what stands beside an option's name, and
// lines that fit the terminal.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

#include "reader/render/text_style.hpp"

namespace arctrace::cli {

// The groups of those options of record that make a buffer and a file of its own, which
// have no meaning with --session.
inline constexpr const char* kFileGroup = "Output";
inline constexpr const char* kKernelGroup = "What the kernel did";
inline constexpr const char* kEventsGroup = "Events of the API";
inline constexpr const char* kPartsGroup = "Snapshots, and limits of the file";
inline constexpr const char* kBufferGroup = "Buffer";
bool is_own_group(const std::string& group);

// Puts the options that `add` adds to `app` into a group.
template <class Add>
void add_group(CLI::App& app, const char* group, const Add& add) {
  const size_t before = app.get_options().size();
  add();
  const auto options = app.get_options();
  for (size_t i = before; i < options.size(); ++i) options[i]->group(group);
}

// Beside an option's name stand its value and its default. The messages about options
// that contradict each other name them; CLI11 would list them here, too.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
};

// Returns the text of --help on a terminal. `help`: the text as CLI11 wrote it. Lines
// that are wider than style.width (0: none are) are continued: the description of an
// option in its own column, other lines below their beginning.
std::string fit_help(const std::string& help, const reader::TextStyle& style);

}  // namespace arctrace::cli
