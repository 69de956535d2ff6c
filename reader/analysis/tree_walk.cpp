#include "reader/analysis/tree_walk.hpp"

#include <algorithm>

namespace arctrace::reader {
namespace {

// The path to the current node, and for each function its innermost node on it.
class Path {
 public:
  explicit Path(size_t functions) : innermost_(functions) {}

  void cut(uint32_t level) {
    while (nodes_.size() > level) {
      innermost_[functions_.back()] = outer_.back();
      nodes_.pop_back();
      functions_.pop_back();
      outer_.pop_back();
    }
  }

  TreePosition push(NodeIndex node, FunctionId function) {
    const auto level = static_cast<uint32_t>(nodes_.size());
    const Innermost outer = innermost_[function];
    innermost_[function] = {outer.count + 1, level};
    nodes_.push_back(node);
    functions_.push_back(function);
    outer_.push_back(outer);
    return {node, level, outer.count + 1, outer.level, nodes_};
  }

 private:
  struct Innermost {
    uint32_t count = 0, level = 0;
  };
  std::vector<Innermost> innermost_;  // by FunctionId
  std::vector<NodeIndex> nodes_;
  std::vector<FunctionId> functions_;
  std::vector<Innermost> outer_;
};

}  // namespace

bool sorts_before(SortKey key, const SortValues& a, const SortValues& b) {
  switch (key) {
    case SortKey::kTotal:
      if (a.total_ns != b.total_ns) return a.total_ns > b.total_ns;
      break;
    case SortKey::kSelf:
      if (a.self_ns != b.self_ns) return a.self_ns > b.self_ns;
      break;
    case SortKey::kCalls:
      if (a.calls != b.calls) return a.calls > b.calls;
      break;
    case SortKey::kName:
      if (a.name != b.name) return a.name < b.name;
      break;
    case SortKey::kEntry:
      break;
  }
  return a.id < b.id;
}

void walk_tree(const CallTree& tree, const Functions& functions, NodeIndex root,
               SortKey sort, absl::FunctionRef<Step(const TreePosition&)> visit) {
  struct Waiting {
    NodeIndex node;
    uint32_t level;
  };
  const auto values = [&](NodeIndex index) {
    const CallNode& node = tree[index];
    return SortValues{node.calls, node.self_ns, node.total_ns,
                      functions[node.function].name, index};
  };
  Path path(functions.size());
  std::vector<Waiting> waiting = {{root, 0}};
  while (!waiting.empty()) {
    const Waiting next = waiting.back();
    waiting.pop_back();
    path.cut(next.level);
    const Step step = visit(path.push(next.node, tree[next.node].function));
    if (step == Step::kStop) return;
    if (step == Step::kOver) continue;
    const auto first = static_cast<std::ptrdiff_t>(waiting.size());
    for (NodeIndex child = tree[next.node].first_child; child != kNoNode;
         child = tree[child].next_sibling) {
      waiting.push_back({child, next.level + 1});
    }
    // In reverse, because the last one is taken first.
    std::sort(waiting.begin() + first, waiting.end(),
              [&](const Waiting& a, const Waiting& b) {
                return sorts_before(sort, values(b.node), values(a.node));
              });
  }
}

}  // namespace arctrace::reader
