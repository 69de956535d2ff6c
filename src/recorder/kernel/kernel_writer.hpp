// The kernel as a writer: BPF programs (bpf/) that append records about the threads of
// traced processes to a buffer in kernel memory. `arctrace record` loads them for the
// kernel's events.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/recorder/buffer/buffer.hpp"

namespace arctrace {

// The events that are recorded in addition to context switches, fork, exec and exit.
struct KernelEvents {
  bool wake_ups = true;
  uint32_t more = 0;  // enum arctrace_kernel_event
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
  // `buffer` must be the value of a map (Buffer::map()) with a slot for each CPU, and
  // must outlive this object. An error names the step that failed. The control page says
  // from then on what is recorded.
  static absl::StatusOr<KernelWriter> attach(const Buffer& buffer,
                                             const KernelEvents& events);

  // Records these events from now on (enum arctrace_kernel_event), and no others of these
  // kinds. Takes as long as the kernel takes to check the programs, tens of ms. After an
  // error it records what it recorded before.
  absl::Status set_events(uint32_t events);

  // Starts or stops tracing the process `pid`, a number of the first PID namespace, and
  // all that it forks from now on.
  void trace_process(uint32_t pid, bool wanted);
  // The same for what it forks alone, until it ends. False: too many processes are
  // parents.
  bool trace_children(uint32_t pid, bool wanted);

  // The kinds of interrupts that were asked for and that this kernel does not tell of, by
  // their tracepoints.
  const std::vector<std::string>& missing() const;

  KernelWriter(KernelWriter&&) noexcept;
  KernelWriter& operator=(KernelWriter&&) noexcept;
  ~KernelWriter();

 private:
  struct Loaded;
  explicit KernelWriter(std::unique_ptr<Loaded> loaded);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace arctrace
