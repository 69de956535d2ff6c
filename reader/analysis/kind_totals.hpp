// Sums of a call tree by kind of function: locks, I/O, allocation and so on.
#pragma once

#include <vector>

#include "reader/analysis/function_kinds.hpp"
#include "reader/analysis/function_totals.hpp"

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

}  // namespace arctrace::reader
