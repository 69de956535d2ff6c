// One CPU's perf event, for the threads of one process tree, and the ring that the kernel
// writes its records into.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace arctrace {

class PerfRing {
 public:
  // Of what the calling thread forks from now on, from its exec on, with all that this
  // forks. kNotFound: that CPU is not online. Others: not permitted, or no memory.
  static absl::StatusOr<PerfRing> open(uint32_t cpu);

  PerfRing(PerfRing&& other) noexcept;
  PerfRing& operator=(PerfRing&&) = delete;
  ~PerfRing();

  uint32_t cpu() const { return cpu_; }

  // What the kernel has written since the last call, a copy that is good until the next
  // one (perf_record.hpp); its room is the kernel's again.
  std::span<const std::byte> take();

  // Records for which there was no room, since the ring was opened.
  uint64_t lost() const;

  // No more records of any thread, for good.
  void disable();

 private:
  PerfRing(uint32_t cpu, int event) : cpu_(cpu), event_(event) {}
  absl::Status map();

  uint32_t cpu_;
  int event_;
  std::byte* base_ = nullptr;  // a page of control, then the ring
  uint64_t ring_size_ = 0;     // bytes, a power of two
  std::vector<std::byte> taken_;
};

// One for each CPU that is online. An error is one line that says what is missing and
// why.
absl::StatusOr<std::vector<PerfRing>> open_perf_rings();

}  // namespace arctrace
