// The subcommands of arctrace, one file each.
#pragma once

#include <absl/status/statusor.h>

#include <CLI/CLI.hpp>
#include <functional>

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

// The trace file that is written and read if none is named.
inline constexpr const char* kDefaultFile = "arctrace.data";

}  // namespace arctrace::cli
