// Sums of a call tree by kind of function, and the time of all threads divided by what it
// was spent on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reader/analysis/function_kinds.hpp"
#include "reader/analysis/function_totals.hpp"
#include "reader/replay/call_tree.hpp"
#include "reader/replay/replay.hpp"

namespace arctrace::reader {

// The sums of all calls of a kind. total_ns counts a call inside another one of the same
// kind once.
struct KindTotal {
  FunctionKind kind = {};
  uint64_t calls = 0, self_ns = 0, total_ns = 0;
  CpuTime cpu;                           // of all that total_ns counts
  std::vector<FunctionTotal> functions;  // sorted
};

// Every kind that has a function with a node, sorted.
std::vector<KindTotal> kind_totals(const CallTree& tree, const Functions& functions,
                                   NodeIndex root, SortKey sort);

// A part of the time of all threads, by what it was spent on. Self times add up to the
// time of the tree's root, without exception.
struct TimePart {
  std::string name;  // raw bytes of the trace
  uint64_t calls = 0, self_ns = 0;
  CpuTime cpu = {};
  uint64_t end_within_ns = 0, begin_within_ns = 0;  // as in NodeMarks

  uint64_t within_ns() const { return end_within_ns + begin_within_ns; }
};

// Divides the time by kind of library function ("file", "io", "lock"), else by module
// ("functions of libz.so.1"); made-up functions ("[loader]") stand alone;
// outside_name() is what the threads did outside of all. The largest part comes first.
// `tree`: that of the finished replay, or merged from it.
std::vector<TimePart> time_parts(const CallTree& tree, const Replay& replay,
                                 NodeIndex root);

// "not in recorded functions"; "not in the functions that are shown" if a filter hides
// some.
const char* outside_name(const Replay& replay);

}  // namespace arctrace::reader
