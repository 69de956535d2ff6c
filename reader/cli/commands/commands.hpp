// The subcommands of arctrace: one file in this directory for each, or for related ones.
#pragma once

#include <absl/status/statusor.h>

#include <functional>

#include "reader/cli/options/options.hpp"

namespace arctrace::cli {

// Runs a subcommand after its options are parsed. Returns the exit status (0, or what the
// subcommand defines), or why it failed, which main prints in one line before it exits
// with 2.
using Runner = std::function<absl::StatusOr<int>()>;

// The exit status after Ctrl-C.
inline constexpr int kStatusInterrupted = 130;

// Each function adds its subcommand to `root`, and returns what to run if the command
// line has it.
Runner add_archive(CLI::App& root);
Runner add_attach(CLI::App& root);
Runner add_check(CLI::App& root);
Runner add_complete(CLI::App& root);
Runner add_create(CLI::App& root);
Runner add_ctl(CLI::App& root);
Runner add_destroy(CLI::App& root);
Runner add_diff(CLI::App& root);
Runner add_dump(CLI::App& root);
Runner add_env(CLI::App& root);
Runner add_export(CLI::App& root);
Runner add_functions(CLI::App& root);
Runner add_graph(CLI::App& root);
Runner add_help(CLI::App& root);
Runner add_info(CLI::App& root);
Runner add_list(CLI::App& root);
Runner add_live(CLI::App& root);
Runner add_record(CLI::App& root);
Runner add_recover(CLI::App& root);
Runner add_report(CLI::App& root);
Runner add_snapshot(CLI::App& root);
Runner add_start(CLI::App& root);
Runner add_stop(CLI::App& root);
Runner add_tui(CLI::App& root);
Runner add_view(CLI::App& root);

}  // namespace arctrace::cli
