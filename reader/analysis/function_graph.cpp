#include "reader/analysis/function_graph.hpp"

#include <algorithm>

namespace arctrace::reader {

std::unique_ptr<FunctionGraph> function_graph(const CallTree& tree,
                                              const Functions& functions, NodeIndex root,
                                              const FunctionTotal& own, SortKey sort) {
  auto graph = std::make_unique<FunctionGraph>();
  graph->own = own;
  graph->below_root = graph->below.add_root();
  graph->below[graph->below_root].function = own.function;
  walk_tree(tree, functions, root, SortKey::kEntry, [&](const TreePosition& at) {
    if (at.level == 0 || tree[at.node].function != own.function) return Step::kInto;
    graph->paths.push_back(at.node);
    graph->below.merge(graph->below_root, tree, at.node);
    return Step::kOver;
  });
  graph->below.sum_up(graph->below_root);
  // By the name of the caller, because that of the function is the same.
  const auto values = [&](NodeIndex index) {
    const CallNode& node = tree[index];
    return SortValues{node.calls, node.self_ns, node.total_ns,
                      functions[tree[node.parent].function].name, index};
  };
  std::sort(graph->paths.begin(), graph->paths.end(), [&](NodeIndex a, NodeIndex b) {
    return sorts_before(sort, values(a), values(b));
  });
  return graph;
}

}  // namespace arctrace::reader
