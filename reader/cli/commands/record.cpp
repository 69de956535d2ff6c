// arctrace record: runs a command, records its trace, and exits like the command;
// arctrace env: prints the environment for programs that it does not start itself.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <arctrace/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/help_layout.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/record_options.hpp"
#include "reader/cli/record/printed_events.hpp"
#include "reader/cli/record/record_session.hpp"
#include "reader/render/output.hpp"
#include "src/recording/session_variables.hpp"

namespace arctrace::cli {
namespace {

// The least time between snapshots that calls ask for.
constexpr uint64_t kSnapshotWhenIntervalNs = 1'000'000'000;
// The size of a buffer that is to hold the last seconds.
constexpr uint64_t kKeptBufferBytes = uint64_t{256} << 20;

}  // namespace

Runner add_record(CLI::App& root) {
  auto options = std::make_shared<recording::RecordOptions>();
  CLI::App* app = root.add_subcommand("record", "run a command and record its trace");
  app->footer(
      "Records library calls of COMMAND and of all its descendants, functions\n"
      "compiled for tracing (such as -finstrument-functions), and events of the\n"
      "API. The exit status is that of COMMAND; 127 if it does not exist, 126 if it\n"
      "cannot be executed, 2 if it could not be recorded. Ctrl-C goes to COMMAND;\n"
      "what was recorded is kept. With --mode=overwrite, SIGUSR2 sent to arctrace\n"
      "writes a snapshot of the buffer to FILE.1, FILE.2 ..., while recording goes\n"
      "on. Options can also be in a file: see arctrace --help.\n"
      "\n"
      "A PATTERN is a glob, such as \"str*\", of *, ?, [abc], [!a-z] and \\ before a\n"
      "character; or re: and an extended regular expression, such as\n"
      "\"re:^str(len|dup)$\". C++ functions match by their\n"
      "demangled names, with or without parameters; this needs libstdc++ in the\n"
      "program. Those of Rust, Fortran, Ada, OCaml and D match as reports show them.\n"
      "\n"
      "-A and -R without @ use the types of COMMAND's functions, if it is built\n"
      "with -g, and those of common functions of libc. Otherwise ARG is arg1 to\n"
      "arg6 for integer registers, fparg1 to fparg8 for floating-point registers,\n"
      "and arg7, arg8 ... or fparg9, fparg10 ... for the words on the stack; retval\n"
      "is the result. After a / comes the format: i u x o (with 8, 16, 32 or 64\n"
      "bits), f (32 or 64), c, b for bool, p, s for strings, S for std::string. 64\n"
      "bytes of a string and 8 arguments of a call are kept. Functions compiled\n"
      "with -finstrument-functions have neither arguments nor results.");
  app->add_flag("--wait", options->wait_for_all,
                "record until all descendants of COMMAND have ended");
  add_joined_option(*app, options->pids,
                    "record these processes, which run already, until Ctrl-C, --duration "
                    "or their end: x86-64 only");
  app->add_option(
         "--session", options->session,
         "record into this session of arctrace create, instead of a buffer and a file "
         "of its own, whose options do not apply then")
      ->check(not_empty())
      ->type_name("NAME");
  add_group(*app, kFileGroup, [&] {
    add_output_option(*app, options->output);
    add_no_symbols_option(*app, options->output);
    add_duration_option(*app, options->duration_ns, "recording, but not COMMAND,");
  });
  add_traced_options(*app, *options);
  add_group(*app, kKernelGroup, [&] { add_kernel_options(*app, options->kernel); });
  add_group(*app, kEventsGroup, [&] {
    add_record_filter_options(*app, options->record_filter, false);
    add_classes_option(*app, "--off", options->off,
                       "do not record these classes (functions, events, marks, kernel, "
                       "all) until arctrace ctl --on switches them on");
  });
  add_group(*app, kPartsGroup, [&] {
    add_keep_option(*app, options->keep_ns);
    add_snapshot_options(*app, options->flight);
    add_snapshot_when_option(*app, options->filter);
  });
  add_group(*app, kBufferGroup, [&] {
    add_buffer_options(*app, options->buffer);
    add_collector_options(*app, options->flight.runs);
    add_clock_options(*app, *options);
  });
  app->add_option("command", options->command, "the command to run, and its arguments")
      ->type_name("COMMAND [ARGUMENT]...");
  return [options, app]() -> absl::StatusOr<int> {
    for (const CLI::Option* option : app->get_options()) {
      if (options->session.empty() || option->count() == 0 ||
          !is_own_group(option->get_group())) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("record: ", option->get_name(), " does not apply with --session"));
    }
    if (const auto problem = recording::find_problem(options->filter)) {
      reader::print_error("record: " + problem->text());
      return 2;
    }
    if (const std::string problem = clock_problem(*options); !problem.empty()) {
      return absl::InvalidArgumentError("record: " + problem);
    }
    complete_clock_options(options->buffer);
    if (options->keep_ns != 0) {
      if (app->get_option("--mode")->count() == 0) {
        options->buffer.mode = ARCTRACE_MODE_OVERWRITE;
      }
      if (options->buffer.mode != ARCTRACE_MODE_OVERWRITE) {
        return absl::InvalidArgumentError(
            "record: --keep needs --mode=overwrite, the flight recorder");
      }
      if (!options->buffer.is_size_asked) options->buffer.buffer_size = kKeptBufferBytes;
    }
    if (!options->filter.snapshot_when.empty()) {
      if (options->buffer.mode != ARCTRACE_MODE_OVERWRITE) {
        return absl::InvalidArgumentError(
            "record: --snapshot-when needs --mode=overwrite, the flight recorder");
      }
      options->flight.asked_interval_ns = kSnapshotWhenIntervalNs;
    }
    return options->pids.empty() ? record_command(*options) : record_joined(*options);
  };
}

// ---- arctrace env -------------------------------------------------------------------

namespace {

absl::StatusOr<int> print_environment(const recording::RecordOptions& options) {
  if (const auto problem = recording::find_problem(options.filter)) {
    reader::print_error("env: " + problem->text());
    return 2;
  }
  PrintedEvents events;
  const absl::StatusOr<std::vector<std::string>> variables =
      recording::session_environment(options, events);
  if (!variables.ok()) return variables.status();
  reader::Output output;
  for (const std::string& variable : *variables) {
    const size_t value = variable.find('=') + 1;
    const std::string quoted =
        absl::StrReplaceAll(variable.substr(value), {{"'", "'\\''"}});
    output.write(absl::StrCat(variable.substr(0, value), "'", quoted, "'\n"));
  }
  if (absl::Status status = output.finish(); !status.ok()) return status;
  return 0;
}

}  // namespace

Runner add_env(CLI::App& root) {
  auto options = std::make_shared<recording::RecordOptions>();
  CLI::App* app = root.add_subcommand(
      "env", "print the environment that makes a program record into a session");
  add_session_option(*app, options->session);
  add_traced_options(*app, *options);
  app->footer(
      "Prints NAME='VALUE' lines, for a shell (set -a; eval \"$(arctrace env NAME)\")\n"
      "or for EnvironmentFile= of systemd. A program that starts with these\n"
      "variables joins the session, and so do its children.");
  return [options] { return print_environment(*options); };
}

}  // namespace arctrace::cli
