// The kernel as a writer: BPF programs (bpf/) that append records about the threads of
// traced processes to a buffer in kernel memory. `arctrace record` loads them for the
// kernel's events.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "src/recorder/buffer/buffer.hpp"

namespace arctrace {

// The events that are recorded in addition to context switches, fork, exec and exit.
struct KernelEvents {
  bool wake_ups = true;
  bool syscalls = false;
  bool page_faults = false;
  bool signals = false;
  bool contention = false;
  bool block_io = false;
  bool interrupts = false;
};

// The reason for which BPF programs can't write records here, such as no BTF or no
// rights; empty if they can.
std::string kernel_writer_obstacle();

// The number of CPUs that the machine can ever have, which is the cpu_count of a buffer
// for the kernel's records.
absl::StatusOr<uint32_t> possible_cpus();

// The BPF programs are attached for as long as this object lives. The kernel detaches
// them however this process ends.
class KernelWriter {
 public:
  // `buffer` must have been created in_kernel with a slot for each CPU, and must outlive
  // this object. An error names the step that failed.
  static absl::StatusOr<KernelWriter> attach(const Buffer& buffer,
                                             const KernelEvents& events);

  // Starts or stops tracing the process `pid`, a number of the first PID namespace, and
  // all that it forks from now on.
  void trace_process(uint32_t pid, bool wanted);

  KernelWriter(KernelWriter&&) noexcept;
  KernelWriter& operator=(KernelWriter&&) noexcept;
  ~KernelWriter();

 private:
  struct Loaded;
  explicit KernelWriter(std::unique_ptr<Loaded> loaded);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace arctrace
