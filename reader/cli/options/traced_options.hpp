// Options of the subcommands that say what is recorded of a program: record and env.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "reader/cli/record/record_session.hpp"

namespace arctrace::cli {

// The options must live as long as `app`.
void add_traced_options(CLI::App& app, RecordOptions& options);

// Says what is wrong with a pattern or a time, if anything is: true.
bool say_problem(const std::string& command, const CallFilterOptions& filter);

}  // namespace arctrace::cli
