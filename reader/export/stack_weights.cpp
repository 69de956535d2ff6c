#include "reader/export/stack_weights.hpp"

#include <absl/strings/str_cat.h>

#include <vector>

namespace arctrace::reader {

uint64_t own_weight(const CallTree& tree, NodeIndex node, ExportWeight weight) {
  const uint64_t wall_ns = tree[node].base_ns;
  switch (weight) {
    case ExportWeight::kWall:
      break;
    case ExportWeight::kCpu:
      return wall_ns - tree.cpu_base(node).off_ns;
    case ExportWeight::kOffCpu:
      return tree.cpu_base(node).off_ns;
    case ExportWeight::kCount:
      // The calls of a root are its threads.
      return tree[node].parent == kNoNode ? 0 : tree[node].calls;
  }
  return wall_ns;
}

const char* weight_name(ExportWeight weight) {
  switch (weight) {
    case ExportWeight::kWall:
      break;
    case ExportWeight::kCpu:
      return "cpu_ns";
    case ExportWeight::kOffCpu:
      return "off_cpu_ns";
    case ExportWeight::kCount:
      return "calls";
  }
  return "wall_ns";
}

std::string group_name(const TreeGroup& group, Grouping grouping) {
  std::string name = export_name(group.name);
  switch (grouping) {
    case Grouping::kThread:
      return absl::StrCat(name, " ", group.pid, "/", group.tid);
    case Grouping::kProcess:
      return absl::StrCat(name, " ", group.pid);
    case Grouping::kAll:
      break;
  }
  return name;
}

void for_each_stack(
    const TreeGroup& group,
    absl::FunctionRef<bool(NodeIndex node, std::span<const NodeIndex> path)> visit) {
  const CallTree& tree = *group.tree;
  std::vector<NodeIndex> path;
  for (NodeIndex node = group.root; node != kNoNode;
       node = tree.next_in_preorder(node, group.root)) {
    while (!path.empty() && path.back() != tree[node].parent) path.pop_back();
    path.push_back(node);
    if (!visit(node, path)) return;
  }
}

}  // namespace arctrace::reader
