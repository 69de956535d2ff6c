#include "reader/analysis/thread_paths.hpp"

#include <algorithm>

namespace arctrace::reader {

std::vector<FunctionId> path_of(const Replay& replay, NodeIndex node) {
  std::vector<FunctionId> path;
  const CallTree& tree = replay.tree();
  for (; node != kNoNode && tree[node].parent != kNoNode; node = tree[node].parent) {
    if (path.empty() && replay.functions()[tree[node].function].name.starts_with("K:")) {
      continue;
    }
    path.push_back(tree[node].function);
  }
  return path;
}

uint64_t cpu_after_start(const Replay& replay, NodeIndex root) {
  const CallTree& tree = replay.tree();
  uint64_t cpu_ns = tree.cpu_total(root).cpu_ns;
  for (NodeIndex at = tree[root].first_child; at != kNoNode; at = tree[at].next_sibling) {
    const Function& function = replay.functions()[tree[at].function];
    if (!function.module.empty() || !function.name.starts_with('[')) continue;
    cpu_ns -= std::min(cpu_ns, tree.cpu_total(at).cpu_ns);
  }
  return cpu_ns;
}

NodeIndex find_path(const CallTree& tree, NodeIndex root,
                    const std::vector<FunctionId>& path) {
  NodeIndex at = root;
  for (auto function = path.rbegin(); function != path.rend() && at != kNoNode;
       ++function) {
    NodeIndex child = tree[at].first_child;
    while (child != kNoNode && tree[child].function != *function) {
      child = tree[child].next_sibling;
    }
    at = child;
  }
  return at;
}

}  // namespace arctrace::reader
