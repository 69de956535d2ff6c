#include "reader/analysis/process_tree.hpp"

#include <absl/container/btree_map.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "reader/analysis/tree_groups.hpp"
#include "reader/trace/process_identities.hpp"

namespace arctrace::reader {
namespace {

// Hostile parents may form a chain of any length.
constexpr uint32_t kCommandDepthMax = 200;

// A process of the kernel's: the identities that it has had, in turn.
struct Command {
  std::vector<ProcessIndex> identities;
  size_t parent = SIZE_MAX;
  std::vector<size_t> children;
  bool is_shown = false;  // it has threads in the report
  int64_t start_ns = INT64_MAX, stop_ns = INT64_MIN;
  int64_t alive_ns = INT64_MIN;  // until when it is known to have lived
  uint64_t threads = 0;
  CpuTime cpu;
};

class Commands {
 public:
  explicit Commands(const Replay& replay)
      : replay_(replay), definitions_(replay.definitions()) {
    add_identities();
    find_parents();
    add_threads(replay);
  }

  std::vector<CommandSums> tree() const { return merged(roots(), 0); }

  // Returns the runs in the order of the tree.
  std::vector<ProcessRun> runs(size_t limit) const {
    const std::vector<bool> is_wanted = longest(limit);
    std::vector<std::pair<size_t, uint32_t>> open;  // with depths, the next one last
    const auto add = [&](std::vector<size_t> commands, uint32_t depth) {
      std::stable_sort(commands.begin(), commands.end(), [&](size_t a, size_t b) {
        return commands_[a].start_ns > commands_[b].start_ns;
      });
      for (const size_t i : commands) {
        if (is_wanted[i]) open.emplace_back(i, depth);
      }
    };
    std::vector<ProcessRun> runs;
    add(roots(), 0);
    while (!open.empty()) {
      const auto [i, depth] = open.back();
      open.pop_back();
      const Command& command = commands_[i];
      ProcessRun& run = runs.emplace_back();
      run.process = command.identities.back();
      run.depth = depth;
      run.pid = process(command.identities.front()).pid;
      run.threads = command.threads;
      run.start_ns = command.start_ns;
      if (is_end_known(command)) run.wall_ns = wall_ns(command);
      run.cpu = command.cpu;
      run.exit =
          process_exit_text(process(run.process), replay_.wait_status(run.process));
      add(command.children, depth + 1);
    }
    return runs;
  }

 private:
  void add_identities() {
    command_of_.assign(definitions_.processes().size(), 0);
    for (std::vector<ProcessIndex>& identities : join_identities(definitions_)) {
      for (const ProcessIndex i : identities) command_of_[i] = commands_.size();
      commands_.emplace_back().identities = std::move(identities);
    }
  }

  std::vector<size_t> roots() const {
    std::vector<size_t> roots;
    for (size_t i = 0; i < commands_.size(); ++i) {
      if (commands_[i].parent == SIZE_MAX) roots.push_back(i);
    }
    return roots;
  }

  // Marks the shown commands that lasted longest, and those above them.
  std::vector<bool> longest(size_t limit) const {
    std::vector<size_t> shown;
    for (size_t i = 0; i < commands_.size(); ++i) {
      if (commands_[i].is_shown) shown.push_back(i);
    }
    std::stable_sort(shown.begin(), shown.end(), [&](size_t a, size_t b) {
      return wall_ns(commands_[a]) > wall_ns(commands_[b]);
    });
    shown.resize(std::min(shown.size(), limit));
    std::vector<bool> is_wanted(commands_.size());
    for (const size_t first : shown) {
      for (size_t i = first; i != SIZE_MAX && !is_wanted[i]; i = commands_[i].parent) {
        is_wanted[i] = true;
      }
    }
    return is_wanted;
  }

  const Process& process(ProcessIndex i) const { return definitions_.processes()[i]; }

  // Finds each command's parent by its identity, or, if the program was executed by a
  // child that recorded nothing, by its number.
  void find_parents() {
    for (size_t i = 0; i < commands_.size(); ++i) {
      const Process& first = process(commands_[i].identities.front());
      const ProcessIndex parent = definitions_.find_process(first.parent_id);
      if (parent != kNoIndex) {
        set_parent(i, command_of_[parent]);
        continue;
      }
      for (size_t j = 0; j < commands_.size() && first.ppid != 0; ++j) {
        const Process& other = process(commands_[j].identities.front());
        if (j != i && other.pid == first.ppid &&
            other.pid_namespace == first.pid_namespace &&
            other.start_ns <= first.start_ns) {
          commands_[i].parent = j;
        }
      }
      if (commands_[i].parent != SIZE_MAX) set_parent(i, commands_[i].parent);
    }
  }

  void set_parent(size_t command, size_t parent) {
    commands_[command].parent = SIZE_MAX;
    size_t at = parent;
    for (uint32_t depth = 0; at != SIZE_MAX; at = commands_[at].parent) {
      if (at == command || ++depth == kCommandDepthMax) return;  // no tree
    }
    commands_[command].parent = parent;
    commands_[parent].children.push_back(command);
  }

  void add_threads(const Replay& replay) {
    for (const ThreadTree& tree : replay.threads()) {
      const ProcessIndex index = definitions_.threads()[tree.thread].process;
      if (index >= command_of_.size()) continue;
      Command& command = commands_[command_of_[index]];
      command.is_shown = true;
      command.start_ns = std::min(command.start_ns, tree.start_ns);
      command.stop_ns = std::max(command.stop_ns, tree.stop_ns);
      command.alive_ns = std::max(
          command.alive_ns,
          static_cast<int64_t>(static_cast<uint64_t>(tree.stop_ns) - tree.end_within_ns));
      ++command.threads;
      command.cpu += replay.tree().cpu_total(tree.root);
    }
  }

  // Merges the commands that are alike. `children` are those of one command, or those
  // without a parent.
  std::vector<CommandSums> merged(const std::vector<size_t>& children,
                                  uint32_t depth) const {
    absl::btree_map<std::string, CommandSums> by_name;
    absl::btree_map<std::string, std::vector<size_t>> below;
    for (const size_t i : children) {
      const Command& command = commands_[i];
      std::string name = process_label(definitions_, command.identities.back());
      CommandSums& sums = by_name[name];
      std::vector<size_t>& grandchildren = below[name];
      grandchildren.insert(grandchildren.end(), command.children.begin(),
                           command.children.end());
      sums.name = std::move(name);
      if (!command.is_shown) continue;
      if (sums.runs == 0) sums.pid = process(command.identities.front()).pid;
      ++sums.runs;
      sums.threads += command.threads;
      add_wall(sums, command);
      sums.cpu += command.cpu;
      const ProcessIndex last = command.identities.back();
      ++sums.exits[process_exit_text(process(last), replay_.wait_status(last))];
    }
    std::vector<CommandSums> rows;
    for (auto& [name, sums] : by_name) {
      if (depth < kCommandDepthMax) sums.children = merged(below[name], depth + 1);
      if (sums.runs != 0 || !sums.children.empty()) rows.push_back(std::move(sums));
    }
    std::stable_sort(
        rows.begin(), rows.end(),
        [](const CommandSums& a, const CommandSums& b) { return a.wall_ns > b.wall_ns; });
    return rows;
  }

  static uint64_t wall_ns(const Command& command) {
    return static_cast<uint64_t>(command.stop_ns) -
           static_cast<uint64_t>(command.start_ns);
  }
  static uint64_t within_ns(const Command& command) {
    return static_cast<uint64_t>(command.stop_ns) -
           static_cast<uint64_t>(command.alive_ns);
  }

  // A run that did not record its end lasted at least until its last sign of life. If the
  // collector did not check for it, as in the modes stop and overwrite, that may be all
  // that is known.
  bool is_end_known(const Command& command) const {
    const Process& last = process(command.identities.back());
    const bool is_unseen = last.ended_ns() == INT64_MAX && last.died_unseen;
    const uint64_t whole_ns = wall_ns(command);
    return command.is_shown && whole_ns != 0 && within_ns(command) <= whole_ns / 2 &&
           !is_unseen;
  }

  void add_wall(CommandSums& sums, const Command& command) const {
    if (!is_end_known(command)) {
      ++sums.ends_not_known;
      return;
    }
    sums.wall_ns += wall_ns(command);
    sums.longest_ns = std::max(sums.longest_ns, wall_ns(command));
    sums.end_within_ns += within_ns(command);
  }

  const Replay& replay_;
  const Definitions& definitions_;
  std::vector<Command> commands_;
  std::vector<size_t> command_of_;  // by ProcessIndex
};

}  // namespace

std::string process_exit_text(const Process& process,
                              std::optional<int32_t> wait_status) {
  if (wait_status.has_value()) {
    return WIFSIGNALED(*wait_status) ? absl::StrCat("signal ", WTERMSIG(*wait_status))
                                     : absl::StrCat(WEXITSTATUS(*wait_status));
  }
  if (process.end_how == ARCTRACE_END_EXIT ||
      process.end_how == ARCTRACE_END_EXIT_DIRECT) {
    return process.end_status < 0 ? "exited" : absl::StrCat(process.end_status & 0xff);
  }
  return process.ended_ns() == INT64_MAX && !process.died_unseen ? "open" : "not known";
}

std::vector<CommandSums> process_tree(const Replay& replay) {
  return Commands(replay).tree();
}

std::vector<ProcessRun> process_runs(const Replay& replay, size_t limit) {
  return Commands(replay).runs(limit);
}

}  // namespace arctrace::reader
