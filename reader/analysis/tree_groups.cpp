#include "reader/analysis/tree_groups.hpp"

#include <absl/container/flat_hash_map.h>
#include <arctrace/format.h>

#include <algorithm>
#include <utility>

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
    // Children are sorted in reverse, because the last one is taken first.
    std::sort(waiting.begin() + first, waiting.end(),
              [&](const Waiting& a, const Waiting& b) {
                return sorts_before(sort, values(b.node), values(a.node));
              });
  }
}

namespace {

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// The process that executed the program which `process` runs: itself, or the one that it
// was forked from, whose arguments nobody has written over.
const Process& first_of_program(const Definitions& definitions, const Process& process) {
  const Process* found = &process;
  for (int i = 0; i < Definitions::kForkDepthMax; ++i) {
    if (found->origin != ARCTRACE_ORIGIN_FORK) break;
    const Process* parent =
        definitions.process(definitions.find_process(found->parent_id));
    if (parent == nullptr || parent->executable != process.executable) break;
    found = parent;
  }
  return *found;
}

// The name in the first argument, without the - of a login shell; empty if there is none.
// If the program was not seen to begin, the argument may be a title, such as "nginx:
// worker process", whose first word is the name, unless it is a path, which may have
// blanks. A program that executes itself through /proc gives that path.
std::string called_name(const Process& process) {
  if (process.arguments.empty()) return {};
  std::string first = process.arguments.front();
  if (first.starts_with("/proc/")) return {};
  const size_t blank = first.find(' ');
  if (process.main_ns == INT64_MAX && blank != std::string::npos) {
    first.resize(blank);
    if (first.find('/') != std::string::npos) return {};
    if (first.ends_with(':')) first.pop_back();
  }
  std::string name = last_part(first);
  return name.starts_with('-') ? name.substr(1) : name;
}

}  // namespace

// ---- Groups -----------------------------------------------------------------------

uint32_t group_index(const Definitions& definitions, Grouping grouping,
                     ThreadIndex thread) {
  switch (grouping) {
    case Grouping::kThread:
      return thread;
    case Grouping::kProcess:
      return definitions.threads()[thread].process;
    case Grouping::kAll:
    case Grouping::kName:
      break;
  }
  return 0;
}

std::string process_name(const Definitions& definitions, ProcessIndex process) {
  const Process* facts = definitions.process(process);
  if (facts == nullptr) return {};
  std::string name = called_name(first_of_program(definitions, *facts));
  if (name.empty()) name = last_part(facts->executable);
  return name;
}

std::string process_label(const Definitions& definitions, ProcessIndex process) {
  std::string name = process_name(definitions, process);
  return name.empty() ? "process" : name;
}

std::string thread_label(const Definitions& definitions, ThreadIndex thread) {
  const std::string_view name = definitions.thread_name(thread, INT64_MAX);
  if (!name.empty()) return std::string(name);
  const Thread* facts = definitions.thread(thread);
  if (facts == nullptr || definitions.process(facts->process) == nullptr) return "thread";
  return process_label(definitions, facts->process);
}

TreeGroups::TreeGroups(const Replay& replay, Grouping grouping, Of of)
    : grouping_(grouping) {
  std::vector<ThreadTree> trees(replay.threads().begin(), replay.threads().end());
  if (of == Of::kThreadsAndInterrupts) {
    trees.insert(trees.end(), replay.interrupts().begin(), replay.interrupts().end());
  }
  if (grouping == Grouping::kThread) {
    add_threads(replay, trees);
  } else {
    add_merged(replay, trees);
  }
}

void TreeGroups::add_threads(const Replay& replay, std::span<const ThreadTree> trees) {
  const Definitions& definitions = replay.definitions();
  for (const ThreadTree& thread : trees) {
    TreeGroup group;
    group.index = thread.thread;
    group.name = thread_label(definitions, thread.thread);
    group.tid = definitions.threads()[thread.thread].tid;
    group.pid = definitions.pid_of(thread.thread);
    group.tree = &replay.tree();
    group.root = thread.root;
    group.end_within_ns = thread.end_within_ns;
    groups_.push_back(std::move(group));
  }
}

void TreeGroups::add_merged(const Replay& replay, std::span<const ThreadTree> trees) {
  const Definitions& definitions = replay.definitions();
  if (grouping_ == Grouping::kAll) add_group("all");
  absl::flat_hash_map<ProcessIndex, size_t> of_process;
  absl::flat_hash_map<std::string, size_t> of_name;
  for (const ThreadTree& thread : trees) {
    size_t index = 0;
    if (grouping_ == Grouping::kName) {
      std::string name = thread_label(definitions, thread.thread);
      const auto [found, added] = of_name.try_emplace(name, groups_.size());
      index = found->second;
      if (added) add_group(std::move(name));
    } else if (grouping_ == Grouping::kProcess) {
      const ProcessIndex process = group_index(definitions, grouping_, thread.thread);
      const auto [found, added] = of_process.try_emplace(process, groups_.size());
      index = found->second;
      if (added) {
        const Process* facts = definitions.process(process);
        TreeGroup& group =
            add_group(definitions.threads()[thread.thread].interrupts_of.has_value()
                          ? "Interrupt"
                          : process_label(definitions, process));
        group.index = process;
        group.pid = facts == nullptr ? 0 : facts->pid;
      }
    }
    merged_.merge(groups_[index].root, replay.tree(), thread.root);
    ++groups_[index].threads;
  }
  for (TreeGroup& group : groups_) {
    merged_.sum_up(group.root);
    group.tree = &merged_;
  }
}

namespace {

// The time of gaps stands in all trees, whatever calls are shown.
bool has_call(const TreeGroup& group, const Functions& functions) {
  const CallTree& tree = *group.tree;
  for (NodeIndex at = tree[group.root].first_child; at != kNoNode;
       at = tree[at].next_sibling) {
    if (!MadeUpFunctions::is_gap(functions[tree[at].function])) return true;
  }
  return false;
}

}  // namespace

size_t TreeGroups::remove_without_calls(const Functions& functions) {
  if (grouping_ == Grouping::kAll) return 0;
  return std::erase_if(
      groups_, [&](const TreeGroup& group) { return !has_call(group, functions); });
}

TreeGroup& TreeGroups::add_group(std::string name) {
  TreeGroup& group = groups_.emplace_back();
  group.name = std::move(name);
  group.threads = 0;
  group.root = merged_.add_root();
  return group;
}

}  // namespace arctrace::reader
