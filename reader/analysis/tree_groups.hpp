// The call trees of a report, by thread, by process, or merged into one, and the walk
// through them in the order in which reports show them.
#pragma once

#include <absl/functional/function_ref.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reader/replay/call_tree.hpp"
#include "reader/replay/replay.hpp"

namespace arctrace::reader {

// The column by which rows are sorted.
enum class SortKey : uint8_t { kTotal, kSelf, kCalls, kName, kEntry };

// A row's values by which it is sorted. `id` grows in the order in which rows were first
// seen.
struct SortValues {
  uint64_t calls, self_ns, total_ns;
  std::string_view name;
  uint32_t id;
};
// Whether the row of `a` comes before the row of `b`. Rows that are equal in the key come
// in the order of their ids, so that the order is always the same; kEntry is that order.
bool sorts_before(SortKey key, const SortValues& a, const SortValues& b);

// A node that the walk has reached.
struct TreePosition {
  NodeIndex node;
  uint32_t level;      // 0 for the root
  uint32_t recursion;  // nodes of its function on the path, itself included
  // The level of the function's next node above, if recursion > 1.
  uint32_t outer_level;
  // The nodes from the root to this one.
  std::span<const NodeIndex> path;
};

// How the walk goes on: into the children of the node, past them, or not at all.
enum class Step : uint8_t { kInto, kOver, kStop };

// Calls `visit` for every node of the tree of `root`, parents first, children sorted. It
// needs no recursion, so that the stack does not limit the depth of the tree.
void walk_tree(const CallTree& tree, const Functions& functions, NodeIndex root,
               SortKey sort, absl::FunctionRef<Step(const TreePosition&)> visit);

// The call trees of a report, by thread, by process, or merged into one; and those of an
// export by the threads' names, too.
enum class Grouping : uint8_t { kThread, kProcess, kAll, kName };

struct TreeGroup {
  uint32_t index = 0;  // group_index() of its threads, but by name 0
  std::string name;    // of the thread or program; raw bytes of the trace
  uint32_t pid = 0, tid = 0;
  uint64_t threads = 1;
  uint64_t end_within_ns = 0;  // of a thread: it may have ended that much earlier
  const CallTree* tree = nullptr;
  NodeIndex root = kNoNode;
};

// Returns the number that tells the groups of a report apart: the ThreadIndex, the
// ProcessIndex, or 0. REQUIRES: not kName.
uint32_t group_index(const Definitions& definitions, Grouping grouping,
                     ThreadIndex thread);

// A thread's last name, else its program's, else "thread".
std::string thread_label(const Definitions& definitions, ThreadIndex thread);
// The name by which a process' program was called, which may be that of a link; else that
// of its file; empty if nothing says either.
std::string process_name(const Definitions& definitions, ProcessIndex process);
// Returns process_name(); else "process", beside which reports show its number.
std::string process_label(const Definitions& definitions, ProcessIndex process);

// The trees of a finished replay, as they are or merged. The replay must outlive this
// object.
class TreeGroups {
 public:
  // Whether the CPUs' `Interrupt` threads stand behind the others, and are merged into
  // "all". By process they are a group of their own.
  enum class Of : uint8_t { kThreads, kThreadsAndInterrupts };

  TreeGroups(const Replay& replay, Grouping grouping, Of of = Of::kThreads);

  // Removes the groups that have no call, as filters of functions leave them, and returns
  // how many. A group of all threads stays.
  size_t remove_without_calls(const Functions& functions);

  std::span<const TreeGroup> groups() const { return groups_; }
  Grouping grouping() const { return grouping_; }

 private:
  void add_threads(const Replay& replay, std::span<const ThreadTree> trees);
  void add_merged(const Replay& replay, std::span<const ThreadTree> trees);
  // Adds a group of no thread to those of merged_.
  TreeGroup& add_group(std::string name);

  Grouping grouping_;
  CallTree merged_;
  std::vector<TreeGroup> groups_;
};

}  // namespace arctrace::reader
