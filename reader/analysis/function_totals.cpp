#include "reader/analysis/function_totals.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/analysis/tree_groups.hpp"
#include "reader/trace/text_escape.hpp"

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

uint64_t own_work_ps(const CallTree& tree, const Functions& functions, NodeIndex root) {
  if (functions.own_work() == kRootFunction) return 0;
  uint64_t sum = 0;
  for (NodeIndex at = root; at != kNoNode; at = tree.next_in_preorder(at, root)) {
    if (at != root && tree[at].function == functions.own_work()) {
      sum += total_overhead_ps(tree, at);
    }
  }
  return sum;
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
  // The paths are sorted by the name of the caller, because they all end in one function.
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

namespace {

class Checker {
 public:
  explicit Checker(size_t max_lines) : max_lines_(max_lines) {}

  void equal(uint64_t found, uint64_t expected, const std::string& what) {
    if (found == expected || lines_.size() >= max_lines_) return;
    lines_.push_back(absl::StrCat(what, " is ", found, ", not ", expected));
  }

  std::vector<std::string> take() { return std::move(lines_); }

 private:
  size_t max_lines_;
  std::vector<std::string> lines_;
};

void check_tree(const CallTree& tree, NodeIndex root, const std::string& subject,
                Checker& checker) {
  uint64_t self_ns = 0;
  for (NodeIndex at = root; at != kNoNode; at = tree.next_in_preorder(at, root)) {
    const CallNode& node = tree[at];
    uint64_t total_ns = node.self_ns;
    for (NodeIndex c = node.first_child; c != kNoNode; c = tree[c].next_sibling) {
      total_ns += tree[c].total_ns;
    }
    checker.equal(node.total_ns, total_ns, absl::StrCat(subject, ": total of node ", at));
    self_ns += node.self_ns;
  }
  checker.equal(self_ns, tree[root].total_ns, subject + ": self of all nodes");
}

void check_arcs(const FunctionArcs& arcs, const Functions& functions, Checker& checker) {
  Arc parents, children;
  for (const Arc& arc : arcs.parents) {
    parents.calls += arc.calls;
    parents.self_ns += arc.self_ns;
    parents.total_ns += arc.total_ns;
  }
  for (const Arc& arc : arcs.children) children.total_ns += arc.total_ns;
  const std::string name = escaped(functions[arcs.own.function].name);
  checker.equal(parents.calls, arcs.own.calls, name + ": calls of its parents");
  checker.equal(parents.self_ns, arcs.own.self_ns, name + ": self of its parents");
  checker.equal(parents.total_ns, arcs.own.total_ns, name + ": total of its parents");
  checker.equal(children.total_ns, arcs.own.total_ns - arcs.own.self_ns,
                name + ": total of its children");
}

}  // namespace

std::vector<std::string> broken_invariants(const Replay& replay, size_t max_lines) {
  Checker checker(max_lines);
  uint64_t all_ns = 0;
  for (const ThreadTree& thread : replay.threads()) {
    const std::string subject =
        absl::StrCat("thread ", replay.definitions().threads()[thread.thread].tid);
    const uint64_t elapsed =
        static_cast<uint64_t>(thread.stop_ns) - static_cast<uint64_t>(thread.start_ns);
    checker.equal(replay.tree()[thread.root].total_ns, elapsed, subject + ": time");
    check_tree(replay.tree(), thread.root, subject, checker);
    all_ns += elapsed;
  }
  const TreeGroups merged(replay, Grouping::kAll);
  const TreeGroup& all = merged.groups().front();
  check_tree(*all.tree, all.root, "all threads", checker);
  uint64_t self_ns = (*all.tree)[all.root].self_ns;
  for (const FunctionArcs& arcs :
       function_arcs(*all.tree, replay.functions(), all.root, SortKey::kEntry)) {
    check_arcs(arcs, replay.functions(), checker);
    self_ns += arcs.own.self_ns;
  }
  checker.equal(self_ns, all_ns, "all threads: self of all functions");
  return checker.take();
}

}  // namespace arctrace::reader
