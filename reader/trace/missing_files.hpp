// What was in files of a recording that are not among those that are read.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace arctrace::reader {

// A time whose records were in such files: of all threads and CPUs.
struct MissingFiles {
  int64_t from_ns = 0, to_ns = 0;
  uint64_t records = 0;         // user records
  uint64_t kernel_records = 0;  // the kernel's
  // The recorder has removed the files. Otherwise somebody else has, or they are read
  // apart from these.
  bool is_removed = false;

  uint64_t all_records() const { return records + kernel_records; }
};

// The times of all files that are missing for one reason. They may overlap.
class MissingTimes {
 public:
  MissingTimes(std::span<const MissingFiles> files, bool are_removed);

  // Whether one of them meets the time [from_ns, to_ns], in logarithmic time.
  bool meet(int64_t from_ns, int64_t to_ns) const;

 private:
  // When each begins, in order, and the latest end up to it.
  std::vector<std::pair<int64_t, int64_t>> times_;
};

}  // namespace arctrace::reader
