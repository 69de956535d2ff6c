// The buffer of a recording, and what writes the kernel's records into it.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/kernel/perf_writer.hpp"
#include "src/recording/events.hpp"
#include "src/recording/kernel_options.hpp"
#include "src/recording/kernel_part.hpp"

namespace arctrace::recording {

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

// Makes the buffer fit into the memory that there is (fit_to_memory()). `events` hears
// what the user is to know of that.
absl::Status fit(BufferOptions& buffer, Events& events);

// Plans a buffer in the kernel's memory, with a slot for each CPU. InvalidArgument: it is
// too small for the kernel's records.
absl::Status plan_for_kernel(BufferOptions& buffer, Events& events);

// Creates the buffer, and what writes the kernel's records into it. `events` hears if
// those were asked for and cannot be recorded, and must outlive the result; if they were
// required, it is an error.
absl::StatusOr<RecordingBuffer> make_recording_buffer(const BufferOptions& buffer,
                                                      const KernelOptions& kernel,
                                                      Events& events);

}  // namespace arctrace::recording
