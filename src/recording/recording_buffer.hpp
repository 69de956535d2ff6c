// The buffer of a recording, and the writer that writes the kernel's records into it.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/kernel/kernel_requests.hpp"
#include "src/recorder/kernel/kernel_writer.hpp"
#include "src/recorder/kernel/perf_writer.hpp"
#include "src/recording/events.hpp"
#include "src/recording/options.hpp"

namespace arctrace::recording {

// The kernel's part of a recording: the programs that write its records, and the thread
// that serves requests for other ones. Both are empty if the kernel's programs write
// nothing.
struct KernelPart {
  std::unique_ptr<recorder::KernelWriter> writer;
  std::unique_ptr<recorder::KernelRequests> requests;  // ends before the writer

  // Stops the kernel's programs. To be called before the collector takes back their
  // blocks.
  void detach() {
    requests.reset();
    writer.reset();
  }
};

// Loads the programs for the events `wanted` (enum arctrace_kernel_event). `events` is
// told which events they can't record, then and later, and must outlive the result. The
// message of an error says what is missing, and why. `buffer` must be in the kernel's
// memory.
absl::StatusOr<KernelPart> load_kernel_part(const recorder::Buffer& buffer,
                                            uint32_t wanted,
                                            recorder::KernelRequests::Processes processes,
                                            Events& events);

struct RecordingBuffer {
  recorder::Buffer buffer;
  // At most one of the two writes. The BPF programs trace the processes that this one
  // forks, so that its children are traced from their first instruction on; this is to be
  // ended when the command has started. The perf events are for the processes that the
  // calling thread forks.
  KernelPart kernel = {};
  std::unique_ptr<recorder::PerfWriter> perf = nullptr;

  // To be called when the command has started.
  void end_tracing_children();
};

// Makes the buffer fit into the memory that there is (fit_to_memory()). `events` is told
// the messages for the user.
absl::Status fit(recorder::BufferOptions& buffer, Events& events);

// Plans a buffer in the kernel's memory, with a slot for each CPU. InvalidArgument: it is
// too small for the kernel's records.
absl::Status plan_for_kernel(recorder::BufferOptions& buffer, Events& events);

// Creates the buffer, and the writer of the kernel's records. `events` is told if these
// were asked for and cannot be recorded, and must outlive the result; if they were
// required, it is an error.
absl::StatusOr<RecordingBuffer> make_recording_buffer(
    const recorder::BufferOptions& buffer, const KernelOptions& kernel, Events& events);

}  // namespace arctrace::recording
