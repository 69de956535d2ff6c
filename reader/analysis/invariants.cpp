#include "reader/analysis/invariants.hpp"

#include <absl/strings/str_cat.h>

#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
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
