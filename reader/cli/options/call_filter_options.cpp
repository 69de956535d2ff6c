#include "reader/cli/options/call_filter_options.hpp"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "reader/cli/options/options.hpp"

namespace arctrace::cli {
namespace {

using recording::CallFilterOptions;

void add_arg_options(CLI::App& app, CallFilterOptions& options) {
  const auto add = [&app](const char* flags, std::vector<std::string>& specs,
                          const char* type, const char* what) {
    app.add_option(flags, specs, what)
        ->type_name(type)
        ->allow_extra_args(false)
        ->group("Arguments and results");
  };
  add("-A,--argument", options.args, "PATTERN[@ARG,...]",
      "record arguments of functions, such as \"open@arg1/s,arg2/x32\"; may be "
      "repeated, as -R");
  add("-R,--retval", options.retvals, "PATTERN[@retval]",
      "record what functions return, such as \"open@retval/i32\"");
  app.add_flag("-a,--auto-args", options.auto_args,
               "record arguments and results of common functions of libc")
      ->group("Arguments and results");
}

}  // namespace

CLI::Option* add_snapshot_when_option(CLI::App& app, CallFilterOptions& options) {
  return app
      .add_option(
          "--snapshot-when", options.snapshot_when,
          "with --mode=overwrite, take a snapshot when a call ends that fulfils "
          "this, at most one a second: \"PATTERN > 20ms\", \"PATTERN returns < 0\", "
          "\"PATTERN = NULL\"; may be repeated")
      ->type_name("CONDITION")
      ->allow_extra_args(false);
}

void add_call_filter_options(CLI::App& app, CallFilterOptions& options) {
  const auto add = [&app](const char* flags, std::vector<std::string>& patterns,
                          const char* what) {
    app.add_option(flags, patterns, what)
        ->type_name("PATTERN")
        ->allow_extra_args(false)
        ->group("What to trace");
  };
  add("-F,--filter", options.filter,
      "only functions and scopes that match, and what they call; may be repeated, as -N "
      "and -L");
  add("-N,--notrace", options.notrace,
      "not functions and scopes that match, nor what they call: stronger than -F");
  add("-L,--module", options.modules,
      "only functions of program files and libraries whose name matches");
  add("-P,--patch", options.patch,
      "also the program's own functions that match, though it was not built for tracing; "
      "\".\" for all, lib:LIBRARY or lib:LIBRARY:PATTERN for those of libraries: x86-64 "
      "only; may be repeated");
  add("--entry-only", options.entry_only,
      "of functions that match, record only that they are called: they return twice or "
      "look at their caller, and arctrace does not find that out by itself");
  app.add_option(
         "-D,--depth", options.depth,
         "only N functions within one another, counted anew from each that -F matches")
      ->check(from_to(1, 1024))
      ->type_name("N")
      ->group("What to trace");
  app.add_option(
         "-t,--time-filter", options.time,
         "only calls that last so long, such as 20us; shorter ones leave no records")
      ->type_name("TIME")
      ->group("What to trace");
  add_arg_options(app, options);
  add_size_option(
      app, "-Z,--size-filter", [&options](uint64_t size) { options.size = size; },
      UINT64_MAX,
      "only functions whose code has so many bytes, as far as that is known; 1: all. "
      "Without it, -P with a wildcard leaves those of fewer than 64 that neither call "
      "nor loop")
      ->group("What to trace");
}

}  // namespace arctrace::cli
