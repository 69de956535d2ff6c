#include "reader/analysis/tree_groups.hpp"

#include <absl/container/flat_hash_map.h>
#include <arctrace/format.h>

namespace arctrace::reader {
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
// Of a program that was not seen to begin that may be a title, which has more words. One
// that executes itself through /proc gives that path.
std::string called_name(const Process& process) {
  if (process.arguments.empty()) return {};
  const std::string& first = process.arguments.front();
  if (first.starts_with("/proc/")) return {};
  if (process.main_ns == INT64_MAX && first.find(' ') != std::string::npos) return {};
  std::string name = last_part(first);
  return name.starts_with('-') ? name.substr(1) : name;
}

}  // namespace

uint32_t group_index(const Definitions& definitions, Grouping grouping,
                     ThreadIndex thread) {
  switch (grouping) {
    case Grouping::kThread:
      return thread;
    case Grouping::kProcess:
      return definitions.threads()[thread].process;
    case Grouping::kAll:
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
  absl::flat_hash_map<ProcessIndex, size_t> group_of;
  if (grouping_ == Grouping::kAll) {
    TreeGroup& all = groups_.emplace_back();
    all.name = "all";
    all.threads = 0;
    all.root = merged_.add_root();
  }
  for (const ThreadTree& thread : trees) {
    size_t index = 0;
    if (grouping_ == Grouping::kProcess) {
      const ProcessIndex process = group_index(definitions, grouping_, thread.thread);
      const auto [found, added] = group_of.try_emplace(process, groups_.size());
      index = found->second;
      if (added) {
        TreeGroup& group = groups_.emplace_back();
        const Process* facts = definitions.process(process);
        group.index = process;
        group.name = definitions.threads()[thread.thread].interrupts_of.has_value()
                         ? "Interrupt"
                         : process_label(definitions, process);
        group.pid = facts == nullptr ? 0 : facts->pid;
        group.threads = 0;
        group.root = merged_.add_root();
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

}  // namespace arctrace::reader
