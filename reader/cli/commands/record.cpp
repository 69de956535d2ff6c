// arctrace record: runs a command traced and keeps its exit status.
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/options/buffer_options.hpp"
#include "reader/cli/options/config_file.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/traced_options.hpp"
#include "reader/cli/record/record_session.hpp"
#include "reader/render/output.hpp"

namespace arctrace::cli {

Runner add_record(CLI::App& root) {
  auto options = std::make_shared<RecordOptions>();
  CLI::App* app = root.add_subcommand("record", "run a command traced");
  app->footer(
      "Library calls of COMMAND and of all its descendants, functions compiled with\n"
      "-finstrument-functions, and API events are recorded. The exit status is "
      "COMMAND's;\n"
      "127 if it is not there, 126 if it can't be run, 2 if it could not be recorded.\n"
      "Ctrl-C goes to COMMAND; what was recorded is kept. With --mode=overwrite, "
      "SIGUSR2\n"
      "sent to arctrace writes a snapshot of what the buffer holds to FILE.1, FILE.2 "
      "...,\n"
      "while recording goes on.\n"
      "Options may stand in a file too: arctrace --help.\n"
      "A PATTERN is a glob, such as \"str*\", or behind re: an extended regular "
      "expression,\nsuch as \"re:^str(len|dup)$\". C++ functions match by their names as "
      "people write\nthem, with their parameters or without; so the program must have "
      "libstdc++.\n"
      "-A and -R without @ take what the types of COMMAND's functions say (built with "
      "-g), or what\n"
      "is well known of libc. Else ARG is arg1 to arg6, as integer registers hold them, "
      "or fparg1\n"
      "to fparg8, or beyond those arg7 and fparg9, arg8 and fparg10 ...: the stack, word "
      "by word;\n"
      "and retval what is returned; behind a / stands the format: i u x o (with 8, 16, "
      "32 or 64\n"
      "bits), f (32 or 64), c, b for bool, p, s for strings, S for std::string, of which "
      "64 bytes\n"
      "are kept; of a call at most 8 arguments. Functions compiled with "
      "-finstrument-functions\nhave neither.");
  add_output_option(*app, options->output);
  add_buffer_options(*app, options->buffer);
  add_kernel_options(*app, options->kernel);
  add_snapshot_options(*app, options->flight);
  add_duration_option(*app, options->duration_ns, "recording, not COMMAND,");
  for (CLI::Option* option : app->get_options()) {
    if (option != app->get_help_ptr()) option->group(kOwnBufferGroup);
  }
  app->add_option("--session", options->session,
                  "record into this session (arctrace create), without an own buffer and "
                  "file, and their options below")
      ->check(not_empty())
      ->type_name("NAME");
  add_traced_options(*app, *options);
  app->add_flag("--wait", options->wait_for_all,
                "record until all that COMMAND started has ended too");
  app->add_option("command", options->command, "the command and its arguments")
      ->type_name("COMMAND [ARGUMENT]...");
  return [options, app]() -> absl::StatusOr<int> {
    for (const CLI::Option* option : app->get_options()) {
      if (options->session.empty() || option->count() == 0 ||
          option->get_group() != kOwnBufferGroup) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("record: ", option->get_name(), " has no meaning with --session"));
    }
    if (const auto problem = find_problem(options->filter)) {
      reader::print_message("record: " + problem->text());
      return 2;
    }
    return record_command(*options);
  };
}

}  // namespace arctrace::cli
