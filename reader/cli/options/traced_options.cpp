#include "reader/cli/options/traced_options.hpp"

#include <CLI/CLI.hpp>

#include "reader/cli/options/options.hpp"

namespace arctrace::cli {

void add_traced_options(CLI::App& app, recording::RecordOptions& options) {
  CLI::Option* of_program = app.add_flag_callback(
      "--libcall",
      [&options] { options.library_calls = recording::LibraryCalls::kProgram; },
      "record the library calls of the program itself (default)");
  CLI::Option* none = app.add_flag_callback(
      "--no-libcall",
      [&options] { options.library_calls = recording::LibraryCalls::kNone; },
      "record no library calls, only functions compiled for tracing, and events");
  app.add_flag_callback(
         "--nest-libcall",
         [&options] { options.library_calls = recording::LibraryCalls::kAll; },
         "record the calls between libraries as well")
      ->excludes(of_program, none);
  none->excludes(of_program);
  add_call_filter_options(app, options.filter);
}

void add_joined_option(CLI::App& app, std::vector<pid_t>& pids, const std::string& help) {
  app.add_option("-p,--pid", pids, help)
      ->delimiter(',')
      ->check(process_id())
      ->type_name("PID,...");
}

}  // namespace arctrace::cli
