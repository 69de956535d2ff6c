// The kernel's part of a recording: the programs that write its records, and what serves
// those who ask for others of them.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/kernel/kernel_requests.hpp"
#include "src/recorder/kernel/kernel_writer.hpp"
#include "src/recording/events.hpp"

namespace arctrace::recording {

// Empty if the kernel's programs write nothing.
struct KernelPart {
  std::unique_ptr<KernelWriter> writer;
  std::unique_ptr<KernelRequests> requests;  // ends before the writer

  // The kernel's programs stop. To be called before the collector takes back their
  // blocks.
  void detach() {
    requests.reset();
    writer.reset();
  }
};

// Loads the programs for the events `wanted` (enum arctrace_kernel_event). `events` hears
// what they can't record, then and later, and must outlive the result. The message of an
// error says what is missing, and why. `buffer` must be in the kernel's memory.
absl::StatusOr<KernelPart> load_kernel_part(const Buffer& buffer, uint32_t wanted,
                                            KernelRequests::Processes processes,
                                            Events& events);

}  // namespace arctrace::recording
