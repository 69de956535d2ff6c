#include "reader/export/stack_weights.hpp"

#include <absl/container/btree_map.h>
#include <absl/strings/str_cat.h>

#include <optional>
#include <vector>

namespace arctrace::reader {

uint64_t own_weight(const CallTree& tree, NodeIndex node, ExportWeight weight) {
  const uint64_t wall_ns = tree[node].self_ns;
  switch (weight) {
    case ExportWeight::kWall:
      break;
    case ExportWeight::kCpu:
      return tree.cpu_self(node).cpu_of(wall_ns);
    case ExportWeight::kOffCpu:
      return tree.cpu_self(node).off_ns;
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
  std::string name = safe_name(group.name);
  switch (grouping) {
    case Grouping::kThread:
      return absl::StrCat(name, " ", group.pid, "/", group.tid);
    case Grouping::kProcess:
      return absl::StrCat(name, " ", group.pid);
    case Grouping::kAll:
    case Grouping::kName:
      break;
  }
  return name;
}

void for_each_node(
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

namespace {

// Makes the stacks of one group. The nodes below a path of kStackFunctionsMax functions
// come one after another; they are added up by their functions until the path ends.
class StackMaker {
 public:
  StackMaker(const CallTree& tree, std::span<const ExportWeight> weights,
             absl::FunctionRef<bool(const WeightedStack&)> visit)
      : tree_(tree), weights_(weights), visit_(visit), values_(weights.size()) {}

  bool add(NodeIndex node, std::span<const NodeIndex> path) {
    constexpr size_t kPathMax = kStackFunctionsMax + 1;  // with the root
    if (path.size() <= kPathMax && !finish()) return false;
    bool weighs = false;
    for (size_t i = 0; i < weights_.size(); ++i) {
      values_[i] = own_weight(tree_, node, weights_[i]);
      weighs |= values_[i] != 0;
    }
    if (!weighs) return true;
    if (path.size() <= kPathMax) return visit_({path, std::nullopt, values_});
    if (deeper_.empty()) outer_.assign(path.begin(), path.first(kPathMax).end());
    std::vector<uint64_t>& sums = deeper_[tree_[node].function];
    sums.resize(values_.size());
    for (size_t i = 0; i < values_.size(); ++i) sums[i] += values_[i];
    return true;
  }

  // Visits the sums that were added up and not yet visited.
  bool finish() {
    for (const auto& [function, sums] : deeper_) {
      if (!visit_({outer_, function, sums})) return false;
    }
    deeper_.clear();
    return true;
  }

 private:
  const CallTree& tree_;
  const std::span<const ExportWeight> weights_;
  const absl::FunctionRef<bool(const WeightedStack&)> visit_;
  std::vector<uint64_t> values_;
  std::vector<NodeIndex> outer_;
  absl::btree_map<FunctionId, std::vector<uint64_t>> deeper_;
};

}  // namespace

void for_each_stack(const TreeGroup& group, std::span<const ExportWeight> weights,
                    absl::FunctionRef<bool(const WeightedStack& stack)> visit) {
  StackMaker stacks(*group.tree, weights, visit);
  bool more = true;
  for_each_node(group, [&](NodeIndex node, std::span<const NodeIndex> path) {
    more = stacks.add(node, path);
    return more;
  });
  if (more) stacks.finish();
}

}  // namespace arctrace::reader
