// Options of the records that the kernel writes.
#pragma once

#include "reader/cli/options/cli11.hpp"
#include "src/recording/kernel_options.hpp"

namespace arctrace::cli {

void add_kernel_options(CLI::App& app, recording::KernelOptions& options);

}  // namespace arctrace::cli
