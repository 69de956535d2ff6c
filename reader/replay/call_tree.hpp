// Call trees: a node for each distinct stack, with what was spent there.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reader/replay/cpu_time.hpp"
#include "reader/replay/functions.hpp"

namespace arctrace::reader {

using NodeIndex = uint32_t;
inline constexpr NodeIndex kNoNode = UINT32_MAX;

struct CallNode {
  NodeIndex parent = kNoNode;
  NodeIndex first_child = kNoNode;
  NodeIndex next_sibling = kNoNode;  // in no particular order
  NodeIndex last_used = kNoNode;     // the child that was last asked for
  FunctionId function = kRootFunction;
  uint32_t marks = 0;    // index in the tree's marks; 0: none
  uint32_t cpu = 0;      // index in the tree's times on and off the CPU; 0: none
  uint64_t calls = 0;    // of a root: threads
  uint64_t base_ns = 0;  // in the function itself
  uint64_t cum_ns = 0;   // in it and all it called; set by sum_up
};

// What was not as usual with calls of a node: how many of them each.
struct NodeMarks {
  uint64_t unwound = 0;         // left by longjmp, an exception, or in a vfork child
  uint64_t exit_lost = 0;       // no exit was recorded
  uint64_t entry_lost = 0;      // no entry was recorded
  uint64_t entered_before = 0;  // entered before tracing began
  uint64_t inherited = 0;       // on the stack that fork copied; not counted as calls
  uint64_t open = 0;            // not left when the trace ended
  uint64_t lost_records = 0;    // lost while the node was the innermost
  uint64_t orphan_exits = 0;    // that fit no frame, while the node was the innermost

  void add(const NodeMarks& other);
};

// A forest: one root for each thread, process, or for all. Durations are ns in unsigned
// integers, so that a hostile trace's sums wrap instead of overflowing.
class CallTree {
 public:
  CallTree();

  NodeIndex add_root();

  // The child of `parent` that calls `function`; made if there is none.
  NodeIndex child(NodeIndex parent, FunctionId function) {
    const NodeIndex recent = nodes_[parent].last_used;
    if (recent != kNoNode && nodes_[recent].function == function) return recent;
    return find_or_add(parent, function);
  }

  // Puts a new root above `root`, which becomes its child that calls `function`.
  NodeIndex put_above(NodeIndex root, FunctionId function);

  CallNode& operator[](NodeIndex node) { return nodes_[node]; }
  const CallNode& operator[](NodeIndex node) const { return nodes_[node]; }
  size_t size() const { return nodes_.size(); }

  // The marks of a node, to be changed.
  NodeMarks& mark(NodeIndex node);
  // All zero if it has none.
  const NodeMarks& marks(NodeIndex node) const { return marks_[nodes_[node].marks]; }

  // Time on and off the CPU in the function itself, to be changed.
  CpuTime& cpu_time(NodeIndex node) { return own_cpu(node).base; }
  // The same, and in it and all it called; the latter is set by sum_up.
  const CpuTime& cpu_base(NodeIndex node) const { return cpu_[nodes_[node].cpu].base; }
  const CpuTime& cpu_cum(NodeIndex node) const { return cpu_[nodes_[node].cpu].cum; }

  // Once before sum_up, in the tree of `root`: base_ns, wall-clock time so far, becomes
  // the share that counts on `clock`, and the cpu_ns that it means are set.
  void choose_clock(NodeIndex root, ReportClock clock);

  // Sets cum_ns in the tree of `root` and takes out nodes in which nothing was counted:
  // no calls, no time, no marks.
  void sum_up(NodeIndex root);

  // The next node in the order parent first, of the tree of `root`; kNoNode at its end.
  NodeIndex next_in_preorder(NodeIndex node, NodeIndex root) const;

  // Adds the calls, times and marks of a summed-up tree to those of another one, whose
  // sum_up is to be called anew.
  void merge(NodeIndex into, const CallTree& from, NodeIndex from_root);

 private:
  NodeIndex find_or_add(NodeIndex parent, FunctionId function);
  static uint64_t edge(NodeIndex parent, FunctionId function) {
    return uint64_t{parent} << 32 | function;
  }

  struct NodeCpu {
    CpuTime base, cum;
  };
  NodeCpu& own_cpu(NodeIndex node);

  std::vector<CallNode> nodes_;
  std::vector<NodeMarks> marks_;
  std::vector<NodeCpu> cpu_;                           // [0]: none
  absl::flat_hash_map<uint64_t, NodeIndex> children_;  // by edge()
};

}  // namespace arctrace::reader
