// The options that say what is recorded of a program, and of which.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "reader/cli/options/cli11.hpp"
#include "src/recording/options.hpp"

namespace arctrace::cli {

// Adds them to `app`. `options` must outlive it.
void add_traced_options(CLI::App& app, recording::RecordOptions& options);

// -p PID: processes that run already.
void add_joined_option(CLI::App& app, std::vector<pid_t>& pids, const std::string& help);

}  // namespace arctrace::cli
