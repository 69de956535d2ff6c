// Paths of calls in the tree of a thread, and what it did apart from starting.
#pragma once

#include <cstdint>
#include <vector>

#include "reader/replay/replay.hpp"

namespace arctrace::reader {

// The functions on the path to a node, innermost first, without the kernel's.
std::vector<FunctionId> path_of(const Replay& replay, NodeIndex node);

// What a thread did on a CPU, without the start of its program: the loader's work, and
// the like, are frames that the reader makes up.
uint64_t cpu_after_start(const Replay& replay, NodeIndex root);

// The node at the end of a path, which is innermost first, below a root; kNoNode: none.
NodeIndex find_path(const CallTree& tree, NodeIndex root,
                    const std::vector<FunctionId>& path);

}  // namespace arctrace::reader
