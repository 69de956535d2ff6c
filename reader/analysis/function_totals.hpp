// Sums of a call tree by function, and by caller and callee.
#pragma once

#include <cstdint>
#include <vector>

#include "reader/analysis/tree_walk.hpp"
#include "reader/replay/call_tree.hpp"

namespace arctrace::reader {

// The sums of all nodes of a function. total_ns counts recursion once: it is that of the
// nodes that are not below another node of the same function.
struct FunctionTotal {
  FunctionId function = kRootFunction;
  uint64_t calls = 0, self_ns = 0, total_ns = 0;
  CpuTime cpu;               // of all that total_ns counts
  uint64_t overhead_ps = 0;  // what recording took of self_ns, before it was corrected
  uint64_t self_cpu_ns = 0;  // the part of self_ns on a CPU
  uint32_t recursion = 0;    // the largest number of its nodes on a path
  NodeMarks marks;
};

// Every function that has a node, sorted; the root is not one of them.
std::vector<FunctionTotal> function_totals(const CallTree& tree,
                                           const Functions& functions, NodeIndex root,
                                           SortKey sort);

// What recording took of all that the tree of `root` counts, before it was corrected.
uint64_t total_overhead_ps(const CallTree& tree, NodeIndex root);

// A caller or a callee of a function, with its share of the function's sums.
//
// Parents' calls, self_ns and total_ns add up to the function's own. Children's total_ns
// add up to its total_ns - self_ns: time in the function itself, called again from below
// a child, is not the child's.
struct Arc {
  FunctionId function = kRootFunction;  // kRootFunction: called by no function
  uint64_t calls = 0, self_ns = 0, total_ns = 0;
  CpuTime cpu;  // of all that total_ns counts
};

struct FunctionArcs {
  FunctionTotal own;
  std::vector<Arc> parents, children;
};

// As function_totals, each with its arcs, in the same order.
std::vector<FunctionArcs> function_arcs(const CallTree& tree, const Functions& functions,
                                        NodeIndex root, SortKey sort);

}  // namespace arctrace::reader
