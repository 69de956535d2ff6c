// The buffer of a recording, and what writes the kernel's records into it.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>

#include "reader/cli/options/kernel_options.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/kernel/kernel_writer.hpp"
#include "src/recorder/kernel/perf_writer.hpp"

namespace arctrace::cli {

struct RecordingBuffer {
  Buffer buffer;
  // At most one of the two. The BPF programs trace this process, so that its children are
  // traced from their first instruction on; that is to be ended when the command has
  // started. The perf events are of what the calling thread forks.
  std::optional<KernelWriter> bpf = std::nullopt;
  std::unique_ptr<PerfWriter> perf = nullptr;

  KernelWriter* kernel_writer() { return bpf.has_value() ? &*bpf : nullptr; }
};

// Creates the buffer, and what writes the kernel's records into it. Prints a warning if
// those were asked for and cannot be recorded; if they were required, it is an error.
absl::StatusOr<RecordingBuffer> make_recording_buffer(const BufferOptions& buffer,
                                                      const KernelOptions& kernel);

}  // namespace arctrace::cli
