// What was in files of a recording that are not among those that are read.
#pragma once

#include <cstdint>

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

}  // namespace arctrace::reader
