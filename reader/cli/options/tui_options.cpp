#include "reader/cli/options/tui_options.hpp"

#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>

#include "reader/cli/options/options.hpp"

namespace arctrace::cli {
namespace {

constexpr const char* kTuiNotes =
    "The views: summary, functions, call trees, processes and threads, locks, and the\n"
    "critical path, with the numbers that report has with the same filters. Of a\n"
    "function, its callers and callees and its slowest calls, with their arguments.\n"
    "\n"
    "Keys: 1 to 6 and Tab choose a view, arrows, pages, Home, End, g and G a row; Enter\n"
    "goes into the function of a row, Backspace back; Right, Left and Space unfold and\n"
    "fold, e and c all below a row; s, > and < sort by another column, r the other way\n"
    "round; / looks for a name, n and N for the next one and the one before; p has the\n"
    "trees by thread, by process, or one of all; ? lists the keys, q leaves.\n"
    "t asks for a range of time, which is all that is read then; nothing: all of it.\n"
    "\n"
    "The trace is read once when it is opened; meanwhile threads are shown, and how "
    "long\n"
    "it takes. Of a long one, it is read again for the slowest calls of a function when\n"
    "these are asked for. Esc or Ctrl-C stops that. A terminal\n"
    "of 40 columns and 10 lines is enough; wider ones show more columns. Colours are\n"
    "those of the terminal, unless NO_COLOR is set.\n"
    "\n";

}  // namespace

void add_tui_options(CLI::App& app, TuiOptions& options) {
  add_files_option(app, options.paths);
  app.add_flag("--partial", options.partial, "show what a session's buffer holds now");
  add_replay_filter_options(
      app, options,
      "show only functions that match GLOB, and what they call; may be repeated");
  app.add_flag("--debuginfod", options.download,
               "download debug files from the servers in DEBUGINFOD_URLS");
  app.footer(absl::StrCat(kTuiNotes, kFilesNote));
}

}  // namespace arctrace::cli
