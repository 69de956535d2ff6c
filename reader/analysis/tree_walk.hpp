// Walks a call tree in the order in which reports show it. Needs no recursion, so that
// the depth of the tree is not limited by the stack.
#pragma once

#include <absl/functional/function_ref.h>

#include <cstdint>
#include <vector>

#include "reader/replay/call_tree.hpp"

namespace arctrace::reader {

enum class SortKey : uint8_t { kTotal, kSelf, kCalls, kName, kEntry };

// What rows are sorted by. `id` grows in the order in which they were first seen.
struct SortValues {
  uint64_t calls, self_ns, total_ns;
  std::string_view name;
  uint32_t id;
};
// Whether the row of `a` comes before the row of `b`. Rows that are equal in the key come
// in the order of their ids, so that the order is always the same; kEntry is that order.
bool sorts_before(SortKey key, const SortValues& a, const SortValues& b);

// A node that the walk has reached.
struct TreePosition {
  NodeIndex node;
  uint32_t level;      // 0 for the root
  uint32_t recursion;  // nodes of its function on the path, itself included
  // The level of the function's next node above, if recursion > 1.
  uint32_t outer_level;
  // The nodes from the root to this one.
  std::span<const NodeIndex> path;
};

// How the walk goes on: into the children of the node, past them, or not at all.
enum class Step : uint8_t { kInto, kOver, kStop };

// Calls `visit` for every node of the tree of `root`, parents first, children sorted.
void walk_tree(const CallTree& tree, const Functions& functions, NodeIndex root,
               SortKey sort, absl::FunctionRef<Step(const TreePosition&)> visit);

}  // namespace arctrace::reader
