// The subcommands of arctrace, one file each.
#pragma once

#include <absl/status/statusor.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace arctrace::cli {

// What a subcommand does once its options are parsed: returns the exit status (0, or 1
// where the subcommand defines it), or why it could not be done, which main prints as
// one line and exits 2.
using Runner = std::function<absl::StatusOr<int>()>;

// Each adds its subcommand to `root` and returns what to run if it was chosen.
Runner add_record(CLI::App& root);
Runner add_report(CLI::App& root);
Runner add_dump(CLI::App& root);
Runner add_info(CLI::App& root);
Runner add_check(CLI::App& root);
Runner add_create(CLI::App& root);
Runner add_list(CLI::App& root);
Runner add_attach(CLI::App& root);
Runner add_start(CLI::App& root);
Runner add_stop(CLI::App& root);
Runner add_ctl(CLI::App& root);
Runner add_snapshot(CLI::App& root);
Runner add_recover(CLI::App& root);
Runner add_destroy(CLI::App& root);
Runner add_env(CLI::App& root);

// `record COMMAND -x`: puts "--" before COMMAND, so that -x is COMMAND's. To be called
// with all arguments (without the program's name) before they are parsed.
void separate_command(const CLI::App& root, std::vector<std::string>& arguments);

// The trace file that is written and read if none is named.
inline constexpr const char* kDefaultFile = "arctrace.data";

}  // namespace arctrace::cli
