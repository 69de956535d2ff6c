#include "reader/replay/call_tree.hpp"

#include <algorithm>

namespace arctrace::reader {
namespace {

// Most functions call few others; for these the list is faster than the map.
constexpr int kSiblingsTried = 4;

}  // namespace

void NodeMarks::add(const NodeMarks& other) {
  unwound += other.unwound;
  exit_lost += other.exit_lost;
  entry_lost += other.entry_lost;
  entered_before += other.entered_before;
  inherited += other.inherited;
  guessed += other.guessed;
  open += other.open;
  lost_records += other.lost_records;
  orphan_exits += other.orphan_exits;
  at_most += other.at_most;
  unknown_ns += other.unknown_ns;
  end_within_ns += other.end_within_ns;
  begin_within_ns += other.begin_within_ns;
}

CallTree::CallTree() : marks_(1), cpu_(1) {}

NodeIndex CallTree::add_root() {
  nodes_.emplace_back();
  return static_cast<NodeIndex>(nodes_.size() - 1);
}

NodeIndex CallTree::find_or_add(NodeIndex parent, FunctionId function) {
  NodeIndex sibling = nodes_[parent].first_child;
  for (int i = 0; i < kSiblingsTried && sibling != kNoNode; ++i) {
    if (nodes_[sibling].function == function) {
      nodes_[parent].last_used = sibling;
      return sibling;
    }
    sibling = nodes_[sibling].next_sibling;
  }
  const auto next = static_cast<NodeIndex>(nodes_.size());
  const auto [found, added] = children_.try_emplace(edge(parent, function), next);
  if (added) {
    CallNode& node = nodes_.emplace_back();
    node.parent = parent;
    node.function = function;
    node.next_sibling = nodes_[parent].first_child;
    nodes_[parent].first_child = next;
  }
  nodes_[parent].last_used = found->second;
  return found->second;
}

NodeIndex CallTree::put_above(NodeIndex root, FunctionId function) {
  const NodeIndex top = add_root();
  nodes_[root].parent = top;
  nodes_[root].function = function;
  nodes_[top].first_child = root;
  nodes_[top].last_used = root;
  children_.emplace(edge(top, function), root);
  return top;
}

NodeMarks& CallTree::mark(NodeIndex node) {
  uint32_t& index = nodes_[node].marks;
  if (index == 0) {
    index = static_cast<uint32_t>(marks_.size());
    marks_.emplace_back();
  }
  return marks_[index];
}

CallTree::NodeCpu& CallTree::own_cpu(NodeIndex node) {
  uint32_t& index = nodes_[node].cpu;
  if (index == 0) {
    index = static_cast<uint32_t>(cpu_.size());
    cpu_.emplace_back();
  }
  return cpu_[index];
}

NodeIndex CallTree::next_in_preorder(NodeIndex node, NodeIndex root) const {
  if (nodes_[node].first_child != kNoNode) return nodes_[node].first_child;
  while (node != root && nodes_[node].next_sibling == kNoNode) {
    node = nodes_[node].parent;
  }
  return node == root ? kNoNode : nodes_[node].next_sibling;
}

void CallTree::choose_clock(NodeIndex root, ReportClock clock) {
  for (NodeIndex at = root; at != kNoNode; at = next_in_preorder(at, root)) {
    CpuTime& cpu = cpu_time(at);
    const uint64_t wall_ns = nodes_[at].self_ns;
    cpu.cpu_ns = cpu.cpu_of(wall_ns);
    nodes_[at].self_ns = on_clock(clock, wall_ns, cpu);
    if (cpu.unknown_ns != 0) mark(at).unknown_ns = cpu.unknown_ns;
  }
}

void CallTree::correct(NodeIndex root, ReportClock clock, bool has_cpu_times) {
  for (NodeIndex at = root; at != kNoNode; at = next_in_preorder(at, root)) {
    CallNode& node = nodes_[at];
    if (node.overhead_ps == 0) continue;
    // Recording is work of the thread itself.
    const uint64_t removed =
        std::min(node.overhead_ns(), has_cpu_times ? cpu_self(at).cpu_ns : node.self_ns);
    if (has_cpu_times) cpu_time(at).cpu_ns -= removed;
    if (clock != ReportClock::kOffCpu) node.self_ns -= removed;
  }
}

void CallTree::sum_up(NodeIndex root) {
  // Nodes are listed without recursion, because stacks may be hundreds of thousands of
  // frames deep.
  std::vector<NodeIndex> order;
  for (NodeIndex at = root; at != kNoNode; at = next_in_preorder(at, root)) {
    order.push_back(at);
  }
  while (!order.empty()) {
    const NodeIndex at = order.back();
    CallNode& node = nodes_[at];
    order.pop_back();
    node.total_ns = node.self_ns;
    CpuTime cpu = cpu_self(at);
    NodeIndex* link = &node.first_child;
    while (*link != kNoNode) {
      CallNode& child = nodes_[*link];
      const bool counted = child.calls != 0 || child.total_ns != 0 ||
                           marks_[child.marks] != NodeMarks{} ||
                           child.first_child != kNoNode;
      node.total_ns += child.total_ns;
      cpu += cpu_[child.cpu].total;
      if (counted) {
        link = &child.next_sibling;
      } else {
        *link = child.next_sibling;
      }
    }
    if (!cpu.empty()) own_cpu(at).total = cpu;
  }
}

void CallTree::merge(NodeIndex into, const CallTree& from, NodeIndex from_root) {
  // The nodes of this tree for the nodes above `at`.
  std::vector<NodeIndex> path;
  NodeIndex at = from_root;
  while (true) {
    const CallNode& source = from[at];
    const NodeIndex target = path.empty() ? into : child(path.back(), source.function);
    nodes_[target].calls += source.calls;
    nodes_[target].self_ns += source.self_ns;
    nodes_[target].overhead_ps += source.overhead_ps;
    if (source.cpu != 0) cpu_time(target) += from.cpu_self(at);
    if (source.marks != 0) mark(target).add(from.marks(at));
    if (source.first_child != kNoNode) {
      path.push_back(target);
      at = source.first_child;
      continue;
    }
    while (at != from_root && from[at].next_sibling == kNoNode) {
      at = from[at].parent;
      path.pop_back();
    }
    if (at == from_root) return;
    at = from[at].next_sibling;
  }
}

}  // namespace arctrace::reader
