// Whether a program as a whole serves others, by the loops that were found, and what it
// did apart from waiting for work.
#include <algorithm>
#include <string_view>

#include "reader/analysis/path_state.hpp"
#include "reader/analysis/work_loops.hpp"

namespace arctrace::reader {

// Returns the threads of the loops that get their work from outside, each with the time
// since when it serves. Threads of the same program that call the same waiting function
// again and again serve, too, though they hardly wait: a busy server's workers find their
// next work at once.
absl::flat_hash_map<ThreadIndex, int64_t> WorkLoops::serving_threads(
    const std::vector<WorkLoop>& loops) const {
  absl::flat_hash_map<ThreadIndex, int64_t> serving;
  const Definitions& definitions = replay_->definitions();
  const auto program_of = [&](ThreadIndex thread) {
    const ProcessIndex process = definitions.threads()[thread].process;
    return process == kNoIndex ? std::string_view()
                               : definitions.processes()[process].executable;
  };
  for (const WorkLoop& loop : loops) {
    if (loop.is_from_outside) serving[loop.thread] = loop.first_ns;
  }
  for (const WorkLoop& loop : loops) {
    if (!loop.is_from_outside) continue;
    const std::vector<FunctionId> path = path_of(*replay_, loop.node);
    for (const ThreadTree& tree : replay_->threads()) {
      const NodeIndex node = find_path(replay_->tree(), tree.root, path);
      if (node != kNoNode && replay_->tree()[node].calls >= kWaitsMin &&
          program_of(tree.thread) == program_of(loop.thread)) {
        serving.try_emplace(tree.thread, loop.first_ns);
      }
    }
  }
  return serving;
}

// Compares the CPU time of the threads that serve, and of those that they created for
// their work, with that of all threads, each without the start of its program.
bool WorkLoops::is_server(const std::vector<WorkLoop>& loops) const {
  const absl::flat_hash_map<ThreadIndex, int64_t> serving = serving_threads(loops);
  if (serving.empty()) return false;
  uint64_t all_ns = 0, serving_ns = 0;
  for (const ThreadTree& tree : replay_->threads()) {
    const uint64_t cpu_ns = cpu_after_start(*replay_, tree.root);
    all_ns += cpu_ns;
    ThreadIndex thread = tree.thread;
    int64_t since_ns = INT64_MAX;
    for (int i = 0; i < Definitions::kForkDepthMax; ++i) {
      const auto found = serving.find(thread);
      if (found != serving.end() && found->second <= since_ns) {
        serving_ns += cpu_ns;
        break;
      }
      const auto made = made_.find(thread);
      if (made == made_.end()) break;
      thread = made->second.parent;
      since_ns = made->second.time_ns;
    }
  }
  return serving_ns * 2 >= all_ns;
}

std::vector<ThreadIndex> WorkLoops::sleepers(const std::vector<WorkLoop>& loops) const {
  std::vector<ThreadIndex> found;
  for (const ThreadTree& tree : replay_->threads()) {
    uint64_t waits = 0;
    uint64_t cpu_ns = cpu_after_start(*replay_, tree.root);
    if (tree.thread < threads_.size()) {
      const Waits& thread = threads_[tree.thread];
      for (const auto& [node, place] : thread.places) waits += place.waits;
      cpu_ns -= std::min(cpu_ns, thread.taken_down_ns);
    }
    if (waits < kWaitsMin && replay_->tree().cpu_total(tree.root).off_ns / 99 > cpu_ns &&
        std::none_of(loops.begin(), loops.end(),
                     [&](const WorkLoop& loop) { return loop.thread == tree.thread; })) {
      found.push_back(tree.thread);
    }
  }
  return found;
}

FunctionId WorkLoop::function(const Replay& replay) const {
  return path_of(replay, node).front();
}

BusyGroup::BusyGroup(const Replay& replay, const Serving& serving, const TreeGroup& all)
    : group_(all) {
  if (!serving.is_server) return;
  CallTree busy = replay.tree();
  for (const WorkLoop& loop : serving.loops) {
    CpuTime& cpu = busy.cpu_time(loop.node);
    const uint64_t off_ns = std::min(cpu.off_ns, loop.no_work_ns);
    cpu.off_ns -= off_ns;
    cpu.ready_ns = std::min(cpu.ready_ns, cpu.off_ns);
    CallNode& node = busy[loop.node];
    if (replay.clock() != ReportClock::kCpu) {
      node.self_ns -= std::min(node.self_ns, off_ns);
    }
  }
  group_.tree = &tree_;
  group_.root = tree_.add_root();
  for (const ThreadTree& tree : replay.threads()) {
    if (std::find(serving.sleepers.begin(), serving.sleepers.end(), tree.thread) !=
        serving.sleepers.end()) {
      continue;
    }
    busy.sum_up(tree.root);
    tree_.merge(group_.root, busy, tree.root);
  }
  tree_.sum_up(group_.root);
}

}  // namespace arctrace::reader
