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

namespace arctrace::recorder {

// The reason for which BPF programs can't write records here, such as no BTF or no
// rights; empty if they can.
std::string kernel_writer_obstacle();

// The number of CPUs that the machine can ever have, which is the cpu_count of a buffer
// for the kernel's records.
absl::StatusOr<uint32_t> possible_cpus();

// Attaches the BPF programs for as long as this object lives. The kernel detaches them
// however this process ends.
class KernelWriter {
 public:
  // `buffer` must be the value of a map (Buffer::map()) with a slot for each CPU, and
  // must outlive this object. `events`: the events that are recorded in addition to
  // context switches, wake-ups, fork, exec and exit (enum arctrace_kernel_event). An
  // error names the step that failed.
  static absl::StatusOr<KernelWriter> attach(const Buffer& buffer, uint32_t events);

  // Records these events from now on (enum arctrace_kernel_event), and no others of these
  // kinds. Takes as long as the kernel takes to check the programs, tens of ms. After an
  // error it records what it recorded before.
  absl::Status set_events(uint32_t events);

  // Starts or stops tracing the process `pid`, a number of the first PID namespace, and
  // all that it forks from now on.
  void trace_process(uint32_t pid, bool wanted);
  // Starts or stops tracing only the processes that `pid` forks, until it ends. False:
  // too many processes are parents.
  bool trace_children(uint32_t pid, bool wanted);

  // The kinds of interrupts that the last call of attach() or set_events() was to record,
  // but that this kernel does not have, by the names of their tracepoints.
  const std::vector<std::string>& missing() const;

  KernelWriter(KernelWriter&&) noexcept;
  KernelWriter& operator=(KernelWriter&&) noexcept;
  ~KernelWriter();

 private:
  struct Loaded;
  explicit KernelWriter(std::unique_ptr<Loaded> loaded);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace arctrace::recorder
