// One function in a call tree: the paths to it, and what it calls.
#pragma once

#include <memory>
#include <vector>

#include "reader/analysis/function_totals.hpp"

namespace arctrace::reader {

struct FunctionGraph {
  FunctionTotal own;
  // The nodes of its outermost calls in the tree, sorted: those that are not inside
  // another call of it. Their total_ns add up to its own.
  std::vector<NodeIndex> paths;
  // The trees of these nodes, merged into one, whose root is the function.
  CallTree below;
  NodeIndex below_root = kNoNode;
};

// The graph of a function of which `own` has the sums in the tree of `root`.
std::unique_ptr<FunctionGraph> function_graph(const CallTree& tree,
                                              const Functions& functions, NodeIndex root,
                                              const FunctionTotal& own, SortKey sort);

}  // namespace arctrace::reader
