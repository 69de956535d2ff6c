#include "reader/analysis/path_state.hpp"

#include <arctrace/format.h>

#include <algorithm>
#include <optional>

#include "reader/analysis/function_kinds.hpp"

namespace arctrace::reader {

std::vector<FunctionId> path_of(const Replay& replay, NodeIndex node) {
  std::vector<FunctionId> path;
  const CallTree& tree = replay.tree();
  for (; node != kNoNode && tree[node].parent != kNoNode; node = tree[node].parent) {
    if (path.empty() && replay.functions()[tree[node].function].name.starts_with("K:")) {
      continue;
    }
    path.push_back(tree[node].function);
  }
  return path;
}

uint64_t cpu_after_start(const Replay& replay, NodeIndex root) {
  const CallTree& tree = replay.tree();
  uint64_t cpu_ns = tree.cpu_total(root).cpu_ns;
  for (NodeIndex at = tree[root].first_child; at != kNoNode; at = tree[at].next_sibling) {
    const Function& function = replay.functions()[tree[at].function];
    if (!function.module.empty() || !function.name.starts_with('[')) continue;
    cpu_ns -= std::min(cpu_ns, tree.cpu_total(at).cpu_ns);
  }
  return cpu_ns;
}

NodeIndex find_path(const CallTree& tree, NodeIndex root,
                    const std::vector<FunctionId>& path) {
  NodeIndex at = root;
  for (auto function = path.rbegin(); function != path.rend() && at != kNoNode;
       ++function) {
    NodeIndex child = tree[at].first_child;
    while (child != kNoNode && tree[child].function != *function) {
      child = tree[child].next_sibling;
    }
    at = child;
  }
  return at;
}

namespace {

constexpr uint32_t kInterrupts = ARCTRACE_WAKING_INTERRUPT | ARCTRACE_WAKING_SOFTIRQ;

// Returns what the innermost function that has a kind waits for; nullopt: none has one.
std::optional<FunctionKind> kind_around(const Replay& replay, NodeIndex node) {
  const CallTree& tree = replay.tree();
  for (int i = 0; i < 8 && node != kNoNode && tree[node].parent != kNoNode; ++i) {
    Function function = replay.functions()[tree[node].function];
    if (function.name.starts_with("K:")) {
      function.name.erase(0, 2);
      function.module = {};
    }
    if (const std::optional<FunctionKind> kind = function_kind(function)) return kind;
    node = tree[node].parent;
  }
  return std::nullopt;
}

}  // namespace

std::string_view path_state_name(PathState state) {
  constexpr std::string_view kStateNames[kPathStates] = {
      "running", "preempted", "disk",     "timer",    "network",
      "thread",  "ambiguous", "arctrace", "not known"};
  return kStateNames[static_cast<size_t>(state)];
}

bool is_woken_by_thread(const Waker& waker) {
  if (waker.thread == kNoIndex || waker.interrupt) return false;
  return (waker.context & ARCTRACE_WAKING_SOFTIRQ) == 0 ||
         (waker.context & ARCTRACE_WAKING_RAISED) != 0;
}

bool may_be_fault(const Replay& replay, const Waker& waker) {
  const Thread* thread = replay.definitions().thread(waker.thread);
  const bool is_idle = thread == nullptr || thread->tid == 0;
  return waker.interrupt && !is_idle && (waker.context & kInterrupts) == kInterrupts &&
         (waker.context & ARCTRACE_WAKING_TIMER) == 0 &&
         ARCTRACE_WAKING_VECTOR(waker.context) == 0;
}

PathState wait_state(const Replay& replay, const StateInfo& state, NodeIndex node) {
  const Waker& waker = state.waker;
  if (state.task_state != ARCTRACE_SWITCH_UNKNOWN &&
      (state.task_state & ARCTRACE_SWITCH_IO) != 0) {
    return PathState::kDisk;
  }
  if (waker.thread == kNoIndex) return PathState::kNotKnown;
  if ((waker.context & ARCTRACE_WAKING_TIMER) != 0) return PathState::kTimer;
  switch (ARCTRACE_WAKING_VECTOR(waker.context)) {
    case ARCTRACE_SOFTIRQ_TIMER + 1:
    case ARCTRACE_SOFTIRQ_HRTIMER + 1:
      return PathState::kTimer;
    case ARCTRACE_SOFTIRQ_NET_SEND + 1:
    case ARCTRACE_SOFTIRQ_NET_RECEIVE + 1:
      return PathState::kNetwork;
    case ARCTRACE_SOFTIRQ_BLOCK + 1:
      return PathState::kDisk;
    default:
      break;
  }
  if (!waker.interrupt && (waker.context & kInterrupts) == 0) return PathState::kNotKnown;
  // Nothing but a timer or a signal ends a sleep.
  return kind_around(replay, node) == FunctionKind::kSleep ? PathState::kTimer
                                                           : PathState::kAmbiguous;
}

}  // namespace arctrace::reader
