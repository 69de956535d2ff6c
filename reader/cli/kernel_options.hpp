// The options by which the kernel writes too.
#pragma once

#include <absl/status/statusor.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "src/collector/buffer.hpp"
#include "src/kernel/kernel_writer.hpp"

namespace arctrace::cli {

enum class KernelUse { kNo, kAuto, kRequire };

struct KernelOptions {
  KernelUse use = KernelUse::kNo;
  KernelEvents events;
};

void add_kernel_options(CLI::App& app, KernelOptions& options);

// Makes the recording's buffer, in kernel memory if the kernel is to write there and can;
// if it can't, says why in one line and goes on without, or fails if it must. `options`
// then say what was done.
absl::StatusOr<Buffer> create_buffer(BufferOptions buffer, KernelOptions& options);

// The kernel's writer for such a buffer; none if it is not wanted, or could not be had,
// which is said. It traces this process, so that what is forked from now on is traced
// from its first instruction on: to be ended when the command is started.
absl::StatusOr<std::optional<KernelWriter>> attach_kernel(const Buffer& buffer,
                                                          const KernelOptions& options);

}  // namespace arctrace::cli
