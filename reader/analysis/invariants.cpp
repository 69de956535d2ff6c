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
  uint64_t base_ns = 0;
  for (NodeIndex at = root; at != kNoNode; at = tree.next_in_preorder(at, root)) {
    const CallNode& node = tree[at];
    uint64_t cum_ns = node.base_ns;
    for (NodeIndex c = node.first_child; c != kNoNode; c = tree[c].next_sibling) {
      cum_ns += tree[c].cum_ns;
    }
    checker.equal(node.cum_ns, cum_ns, absl::StrCat(subject, ": cum of node ", at));
    base_ns += node.base_ns;
  }
  checker.equal(base_ns, tree[root].cum_ns, subject + ": base of all nodes");
}

void check_arcs(const FunctionArcs& arcs, const Functions& functions, Checker& checker) {
  Arc parents, children;
  for (const Arc& arc : arcs.parents) {
    parents.calls += arc.calls;
    parents.base_ns += arc.base_ns;
    parents.cum_ns += arc.cum_ns;
  }
  for (const Arc& arc : arcs.children) children.cum_ns += arc.cum_ns;
  const std::string name = escaped(functions[arcs.own.function].name);
  checker.equal(parents.calls, arcs.own.calls, name + ": calls of its parents");
  checker.equal(parents.base_ns, arcs.own.base_ns, name + ": base of its parents");
  checker.equal(parents.cum_ns, arcs.own.cum_ns, name + ": cum of its parents");
  checker.equal(children.cum_ns, arcs.own.cum_ns - arcs.own.base_ns,
                name + ": cum of its children");
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
    checker.equal(replay.tree()[thread.root].cum_ns, elapsed, subject + ": time");
    check_tree(replay.tree(), thread.root, subject, checker);
    all_ns += elapsed;
  }
  const TreeGroups merged(replay, Grouping::kAll);
  const TreeGroup& all = merged.groups().front();
  check_tree(*all.tree, all.root, "all threads", checker);
  uint64_t base_ns = (*all.tree)[all.root].base_ns;
  for (const FunctionArcs& arcs :
       function_arcs(*all.tree, replay.functions(), all.root, SortKey::kEntry)) {
    check_arcs(arcs, replay.functions(), checker);
    base_ns += arcs.own.base_ns;
  }
  checker.equal(base_ns, all_ns, "all threads: base of all functions");
  return checker.take();
}

}  // namespace arctrace::reader
