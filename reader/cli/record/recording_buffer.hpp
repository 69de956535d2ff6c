// The buffer of a recording, and what writes the kernel's records into it.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "reader/cli/options/kernel_options.hpp"
#include "reader/cli/record/kernel_part.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/kernel/perf_writer.hpp"

namespace arctrace::cli {

struct RecordingBuffer {
  Buffer buffer;
  // At most one of the two. The BPF programs trace what this process forks, so that its
  // children are traced from their first instruction on; that is to be ended when the
  // command has started. The perf events are of what the calling thread forks.
  KernelPart kernel = {};
  std::unique_ptr<PerfWriter> perf = nullptr;

  // To be called when the command has started.
  void end_tracing_children();
};

// Plans a buffer in the kernel's memory, with a slot for each CPU. InvalidArgument: it is
// too small for the kernel's records.
absl::Status plan_for_kernel(BufferOptions& buffer);

// Creates the buffer, and what writes the kernel's records into it. Prints a warning if
// those were asked for and cannot be recorded; if they were required, it is an error.
absl::StatusOr<RecordingBuffer> make_recording_buffer(const BufferOptions& buffer,
                                                      const KernelOptions& kernel);

}  // namespace arctrace::cli
