// Through a call tree in the order in which it is shown, however deep it is.
#pragma once

#include <absl/functional/function_ref.h>

#include <cstdint>
#include <vector>

#include "reader/replay/call_tree.hpp"

namespace arctrace::reader {

enum class SortKey : uint8_t { kCum, kBase, kCalls, kName, kEntry };

// True if what has `a` stands before what has `b`. Equal ones: by id, so that the order
// is always the same. kEntry: in the order in which they were first seen.
struct SortValues {
  uint64_t calls, base_ns, cum_ns;
  std::string_view name;
  uint32_t id;
};
bool sorts_before(SortKey key, const SortValues& a, const SortValues& b);

struct TreePlace {
  NodeIndex node;
  uint32_t level;      // 0 for the root
  uint32_t recursion;  // how often its function stands on the path, itself included
  // The level of the function's next node above, if recursion > 1.
  uint32_t outer_level;
  // The nodes from the root to this one.
  std::span<const NodeIndex> path;
};

enum class Step : uint8_t { kInto, kOver, kStop };  // into its children, or not

// Calls `visit` for every node, parents first, children sorted.
void walk_tree(const CallTree& tree, const Functions& functions, NodeIndex root,
               SortKey sort, absl::FunctionRef<Step(const TreePlace&)> visit);

}  // namespace arctrace::reader
