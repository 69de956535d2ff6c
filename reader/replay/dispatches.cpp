#include "reader/replay/dispatches.hpp"

#include <algorithm>
#include <utility>

#include "reader/replay/thread_stack.hpp"
#include "reader/trace/bytes.hpp"

namespace arctrace::reader {

Dispatches::Dispatches(const Definitions& definitions,
                       std::function<ThreadStack*(ThreadIndex)> stack_of)
    : definitions_(definitions), stack_of_(std::move(stack_of)) {
  const std::span<const Thread> threads = definitions.threads();
  for (ThreadIndex i = 0; i < threads.size(); ++i) {
    if (!threads[i].of_kernel()) by_tid_[threads[i].tid].push_back(i);
  }
  for (auto& [tid, list] : by_tid_) {
    std::stable_sort(list.begin(), list.end(), [&](ThreadIndex a, ThreadIndex b) {
      return threads[a].start_ns < threads[b].start_ns;
    });
  }
}

ThreadStack* Dispatches::find(uint32_t tid, int64_t time_ns) const {
  const auto list = by_tid_.find(tid);
  if (list == by_tid_.end()) return nullptr;
  // The last one that had begun: of an earlier one with the same number the end is known
  // late, or never.
  const auto next = std::upper_bound(list->second.begin(), list->second.end(), time_ns,
                                     [&](int64_t time, ThreadIndex i) {
                                       return time < definitions_.threads()[i].start_ns;
                                     });
  return next == list->second.begin() ? nullptr : stack_of_(*(next - 1));
}

void Dispatches::apply(const Record& record) {
  BodyReader body(record.body);
  body.u32();  // cpu
  body.u32();  // tgid
  if (record.type == ARCTRACE_TYPE_WAKING) {
    if (ThreadStack* woken = find(body.u32(), record.time_ns))
      woken->woken(record.time_ns);
    return;
  }
  if (record.type != ARCTRACE_TYPE_SWITCH) return;
  any_ = true;
  const uint32_t state = body.u32();
  const uint32_t next_tid = body.u32();
  const Thread* previous = definitions_.thread(record.thread);
  if (previous != nullptr) {
    if (ThreadStack* stack = find(previous->tid, record.time_ns)) {
      stack->left_cpu(record.time_ns, state == 0);
    }
  }
  if (ThreadStack* stack = find(next_tid, record.time_ns)) stack->got_cpu(record.time_ns);
}

}  // namespace arctrace::reader
