// The buffer of a recording, and who writes the kernel's records into it.
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
  // At most one of them. BPF programs trace this process, so that what is forked from now
  // on is traced from its first instruction on: to be ended when the command is started.
  // perf's events are of what the calling thread forks.
  std::optional<KernelWriter> bpf = std::nullopt;
  std::unique_ptr<PerfWriter> perf = nullptr;
};

// Makes the buffer, and what writes into it. What of that was asked for and can't be had
// is said in one line, or is an error if it must be had.
absl::StatusOr<RecordingBuffer> make_recording_buffer(const BufferOptions& buffer,
                                                      const KernelOptions& kernel);

}  // namespace arctrace::cli
