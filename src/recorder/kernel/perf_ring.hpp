// A perf event of one CPU for the threads of one process tree, and the ring into which
// the kernel writes its records. PerfWriter reads the rings where BPF programs can't be
// loaded.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace arctrace {

class PerfRing {
 public:
  // Opens an event for the processes that the calling thread forks from now on, beginning
  // with their exec, and for all that they fork. kNotFound: the CPU is not online. Other
  // errors: not permitted, or no memory.
  static absl::StatusOr<PerfRing> open(uint32_t cpu);

  PerfRing(PerfRing&& other) noexcept;
  PerfRing& operator=(PerfRing&&) = delete;
  ~PerfRing();

  uint32_t cpu() const { return cpu_; }

  // Copies the records that the kernel has written since the last call (perf_record.hpp)
  // and gives their room back to it. The copy is valid until the next call.
  std::span<const std::byte> take();

  // The number of records for which there was no room since the ring was opened.
  uint64_t lost() const;

  // Stops the event for all threads, for good.
  void disable();

 private:
  PerfRing(uint32_t cpu, int event) : cpu_(cpu), event_(event) {}
  absl::Status map();

  uint32_t cpu_;
  int event_;
  std::byte* base_ = nullptr;  // the control page, then the ring
  uint64_t ring_size_ = 0;     // bytes, a power of two
  std::vector<std::byte> taken_;
};

// Opens a ring for each CPU that is online. The text of an error is one line that names
// what is refused and why.
absl::StatusOr<std::vector<PerfRing>> open_perf_rings();

}  // namespace arctrace
