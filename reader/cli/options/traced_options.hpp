// The options that say what is recorded of a program: those of record and env.
#pragma once

#include <CLI/CLI.hpp>

#include "reader/cli/options/record_options.hpp"

namespace arctrace::cli {

// Adds them to `app`. `options` must outlive it.
void add_traced_options(CLI::App& app, RecordOptions& options);

}  // namespace arctrace::cli
