// The kernel as a writer: BPF programs (bpf/) that append what happens to the threads of
// traced processes to a buffer in kernel memory.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "src/recorder/buffer/buffer.hpp"

namespace arctrace {

struct KernelEvents {  // beside dispatches, fork, exec and exit
  bool wake_ups = true;
  bool syscalls = false;
  bool page_faults = false;
  bool signals = false;
  bool contention = false;
  bool block_io = false;
};

// Why the kernel can't write for us here: no BTF, no rights, ...; empty if it can.
std::string kernel_writer_obstacle();

// CPUs that there may ever be: what a buffer that the kernel writes needs as cpu_count.
absl::StatusOr<uint32_t> possible_cpus();

// Loaded and attached for as long as it lives. The kernel detaches it when this process
// is gone, however that comes.
class KernelWriter {
 public:
  // `buffer` was created in_kernel, with a slot for each CPU, and must outlive this. An
  // error names the step that failed.
  static absl::StatusOr<KernelWriter> attach(const Buffer& buffer,
                                             const KernelEvents& events);

  // From now on this process (by its number in the first PID namespace) is traced, with
  // all that it forks, or is not.
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
