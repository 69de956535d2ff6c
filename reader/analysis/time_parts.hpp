// The time of all threads, divided by what it was spent on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/replay/call_tree.hpp"

namespace arctrace::reader {

// Self times add up to the time of the tree's root, without exception.
struct TimePart {
  std::string name;  // raw bytes of the trace
  uint64_t calls = 0, self_ns = 0;
  CpuTime cpu = {};
  uint64_t end_within_ns = 0, begin_within_ns = 0;  // as in NodeMarks

  uint64_t within_ns() const { return end_within_ns + begin_within_ns; }
};

// By kind of library function ("file", "io", "lock"), else by module ("functions of
// libz.so.1"); made-up functions ("[loader]") stand alone; "not in recorded functions" is
// what the threads did outside of all. The largest part comes first.
std::vector<TimePart> time_parts(const CallTree& tree, const Functions& functions,
                                 NodeIndex root);

}  // namespace arctrace::reader
