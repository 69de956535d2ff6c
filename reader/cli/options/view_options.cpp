#include "reader/cli/options/view_options.hpp"

#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>

#include "reader/cli/options/options.hpp"

namespace arctrace::cli {
namespace {

constexpr const char* kViewNotes =
    "The page is served on 127.0.0.1 only, and only to whoever has its address, which\n"
    "holds a random token. Ctrl-C ends it. The trace stays where it is: what the page\n"
    "shows is read from it when it is asked for.\n"
    "\n"
    "The page opens at once, whatever the size of the trace: which threads ran, how\n"
    "densely they wrote, and each call of a range that is zoomed into. The sums of the\n"
    "whole time follow when all of it has been read; the page says how long that takes.\n"
    "A range takes least time in a file with an index, as record writes it. A session's\n"
    "buffer is read first.\n"
    "\n"
    "From another machine: ssh -L PORT:127.0.0.1:PORT HOST, with --port PORT there.\n"
    "\n";

}  // namespace

void add_view_options(CLI::App& app, ViewPageOptions& options) {
  add_files_option(app, options.paths);
  app.add_option("--port", options.port, "the port to listen on; 0: any that is free")
      ->check(from_to(0, UINT16_MAX))
      ->default_str("0")
      ->type_name("PORT");
  app.add_flag("--no-open", options.no_open,
               "print the address, and open no browser: without this option one is "
               "opened if there is a desktop, and the user is not root");
  app.add_flag("--partial", options.partial,
               "show what there is of a trace that was cut off, or of a session that is "
               "not yet finished");
  app.add_flag("--debuginfod", options.download,
               "download debug files from the servers in DEBUGINFOD_URLS");
  app.footer(absl::StrCat(kViewNotes, kFilesNote));
}

}  // namespace arctrace::cli
