#include "reader/analysis/function_totals.hpp"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

namespace arctrace::reader {
namespace {

template <class Sums>
void sort_sums(std::vector<Sums>& sums, const Functions& functions, SortKey sort) {
  const auto values = [&](const Sums& s) {
    return SortValues{s.calls, s.self_ns, s.total_ns, functions[s.function].name,
                      s.function};
  };
  std::sort(sums.begin(), sums.end(), [&](const Sums& a, const Sums& b) {
    return sorts_before(sort, values(a), values(b));
  });
}

// One caller and one callee. The two total_ns differ where there is recursion.
struct ArcSums {
  uint64_t calls = 0, self_ns = 0;
  uint64_t callee_total_ns = 0;  // share of the callee's total_ns
  uint64_t caller_total_ns = 0;  // share of the caller's total_ns
  CpuTime callee_cpu, caller_cpu;
};

using ArcMap = absl::flat_hash_map<std::pair<FunctionId, FunctionId>, ArcSums>;

ArcMap arc_sums(const CallTree& tree, const Functions& functions, NodeIndex root) {
  ArcMap arcs;
  walk_tree(tree, functions, root, SortKey::kEntry, [&](const TreePosition& at) {
    if (at.level == 0) return Step::kInto;
    const CallNode& node = tree[at.node];
    const FunctionId caller = tree[at.path[at.level - 1]].function;
    ArcSums& arc = arcs[{caller, node.function}];
    arc.calls += node.calls;
    arc.self_ns += node.self_ns;
    arc.caller_total_ns += node.total_ns;
    arc.caller_cpu += tree.cpu_total(at.node);
    if (at.recursion == 1) {
      arc.callee_total_ns += node.total_ns;
      arc.callee_cpu += tree.cpu_total(at.node);
    } else {
      // The function's own time again, below one of its children.
      const CallNode& child = tree[at.path[at.outer_level + 1]];
      ArcSums& inner = arcs[{node.function, child.function}];
      inner.caller_total_ns -= node.total_ns;
      inner.caller_cpu -= tree.cpu_total(at.node);
    }
    return Step::kInto;
  });
  return arcs;
}

}  // namespace

std::vector<FunctionTotal> function_totals(const CallTree& tree,
                                           const Functions& functions, NodeIndex root,
                                           SortKey sort) {
  std::vector<FunctionTotal> by_id(functions.size());
  walk_tree(tree, functions, root, SortKey::kEntry, [&](const TreePosition& at) {
    if (at.level == 0) return Step::kInto;
    const CallNode& node = tree[at.node];
    FunctionTotal& total = by_id[node.function];
    total.function = node.function;
    total.calls += node.calls;
    total.self_ns += node.self_ns;
    total.overhead_ps += node.overhead_ps;
    total.self_cpu_ns += tree.cpu_self(at.node).cpu_ns;
    if (at.recursion == 1) {
      total.total_ns += node.total_ns;
      total.cpu += tree.cpu_total(at.node);
    }
    total.recursion = std::max(total.recursion, at.recursion);
    total.marks.add(tree.marks(at.node));
    return Step::kInto;
  });
  std::erase_if(by_id, [](const FunctionTotal& t) { return t.recursion == 0; });
  sort_sums(by_id, functions, sort);
  return by_id;
}

uint64_t total_overhead_ps(const CallTree& tree, NodeIndex root) {
  uint64_t overhead_ps = 0;
  for (NodeIndex at = root; at != kNoNode; at = tree.next_in_preorder(at, root)) {
    overhead_ps += tree[at].overhead_ps;
  }
  return overhead_ps;
}

std::vector<FunctionArcs> function_arcs(const CallTree& tree, const Functions& functions,
                                        NodeIndex root, SortKey sort) {
  std::vector<FunctionArcs> all;
  std::vector<size_t> index(functions.size());
  for (const FunctionTotal& total : function_totals(tree, functions, root, sort)) {
    index[total.function] = all.size();
    all.push_back({total, {}, {}});
  }
  for (const auto& [pair, sums] : arc_sums(tree, functions, root)) {
    const auto& [caller, callee] = pair;
    all[index[callee]].parents.push_back(
        {caller, sums.calls, sums.self_ns, sums.callee_total_ns, sums.callee_cpu});
    if (caller == kRootFunction) continue;
    all[index[caller]].children.push_back(
        {callee, sums.calls, sums.self_ns, sums.caller_total_ns, sums.caller_cpu});
  }
  for (FunctionArcs& arcs : all) {
    sort_sums(arcs.parents, functions, sort);
    sort_sums(arcs.children, functions, sort);
  }
  return all;
}

}  // namespace arctrace::reader
