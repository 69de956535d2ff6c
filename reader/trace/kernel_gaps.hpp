// When records of the kernel's are missing (SPEC.md READ-9): for each CPU, and for all of
// them. All of it is known before the first record is replayed, because a gap says that
// what came before it stopped being known when it began.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <vector>

namespace arctrace::reader {

// Of a thread whose CPU is not known, or that has none.
inline constexpr uint32_t kCpuNotKnown = UINT32_MAX;

class KernelGaps {
 public:
  // Records of `cpu` are missing from then until then, or those of all CPUs
  // (kCpuNotKnown). Gaps may overlap, and come in any order.
  void add(int64_t from_ns, int64_t to_ns, uint32_t cpu);
  // To be called after the last add().
  void finish();

  // The first time from `time_ns` on at which records of `cpu` are missing, or, with
  // kCpuNotKnown, those of any CPU; INT64_MAX: there is none. Takes logarithmic time.
  int64_t next_ns(int64_t time_ns, uint32_t cpu) const;

  bool empty() const { return any_.empty(); }

 private:
  struct Stretch {
    int64_t from_ns, to_ns;
  };
  // Sorted, without overlaps once finish() was called.
  using Stretches = std::vector<Stretch>;
  static void join(Stretches& stretches);

  Stretches any_;                                    // of some CPU, or of all
  Stretches all_;                                    // of all CPUs
  absl::flat_hash_map<uint32_t, Stretches> by_cpu_;  // of the CPU; with those of all
};

}  // namespace arctrace::reader
