// Sums of a call tree by function, and by caller and callee, and what holds for all of
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reader/analysis/tree_groups.hpp"
#include "reader/replay/call_tree.hpp"
#include "reader/replay/replay.hpp"

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

// The cost of recording in all that the tree of `root` counts, before it was corrected.
uint64_t total_overhead_ps(const CallTree& tree, NodeIndex root);

// The time of the tracer's own work below `root`, which is in no sum.
uint64_t own_work_ps(const CallTree& tree, const Functions& functions, NodeIndex root);

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

// Returns the same functions as function_totals(), in the same order, each with its arcs.
std::vector<FunctionArcs> function_arcs(const CallTree& tree, const Functions& functions,
                                        NodeIndex root, SortKey sort);

// One function in a call tree: the paths to it, and what it calls.
struct FunctionGraph {
  FunctionTotal own;
  // The nodes of its outermost calls in the tree, sorted: those that are not inside
  // another call of it. Their total_ns add up to its own.
  std::vector<NodeIndex> paths;
  // The trees of these nodes, merged into one, whose root is the function.
  CallTree below;
  NodeIndex below_root = kNoNode;
};

// Returns the graph of a function, whose sums in the tree of `root` are `own`.
std::unique_ptr<FunctionGraph> function_graph(const CallTree& tree,
                                              const Functions& functions, NodeIndex root,
                                              const FunctionTotal& own, SortKey sort);

// Checks of sums that hold in every report, whatever the trace was.
// A line, `max_lines` at most, for each of these that a finished replay breaks:
// - a thread's root has the time from its first record to its last, and so have all
//   nodes' self times together;
// - a node's total_ns is its self_ns and its children's total_ns;
// - over all threads: a function's calls, self_ns and total_ns are the sums of its
//   parents'; its total_ns - self_ns is the sum of its children's total_ns; the self_ns
//   of all functions and of no function is the time of all threads.
std::vector<std::string> broken_invariants(const Replay& replay, size_t max_lines = 100);

}  // namespace arctrace::reader
