#include "reader/replay/replay.hpp"

#include <algorithm>
#include <utility>

#include "reader/trace/record_types.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {

Replay::Replay(const Definitions& definitions, Symbolizer* symbolizer,
               ReplayOptions options)
    : state_(definitions, symbolizer, options.filter, options.clock, options.listener,
             options.schedule, options.max_findings),
      dispatches_(definitions, options.all_threads,
                  [this](ThreadIndex thread) { return stack_of_kernel(thread); }),
      wants_thread_(std::move(options.wants_thread)),
      has_wake_ups_(options.has_wake_ups),
      entries_(definitions.threads().size()) {
  state_.ticks = options.ticks;
  state_.is_overwritten = options.mode == ARCTRACE_MODE_OVERWRITE;
}

void Replay::add(const Record& record) {
  last_ns_ = std::max(last_ns_, record.time_ns);
  if (record.type == ARCTRACE_TYPE_LOST) {
    const auto lost = load_part_untrusted<arctrace_lost_body>(record.body);
    if ((lost.flags & (ARCTRACE_LOST_RESIDUAL | ARCTRACE_LOST_SESSION)) != 0) {
      add_residual_loss(record, lost);
      return;
    }
  }
  if (record.thread >= entries_.size()) {
    if (record.type == ARCTRACE_TYPE_SESSION) session_point(record);
    if (record.type == ARCTRACE_TYPE_ENABLED) enabled(record);
    return;
  }
  if (class_of(record.type) == RecordClass::kKernel) {
    dispatches_.apply(record);
    return;
  }
  Entry& entry = entries_[record.thread];
  if (entry.stack == nullptr) {
    if (entry.known || record.type >= ARCTRACE_TYPE_PROCESS) return;
    if (stack_of(record.thread) == nullptr) return;
  }
  entry.stack->apply(record);
}

KnownTimes Replay::known_times() const {
  if (!has_dispatches()) return KnownTimes::kNone;
  return has_wake_ups_ ? KnownTimes::kReady : KnownTimes::kOffCpu;
}

ThreadStack* Replay::stack_of(ThreadIndex thread) {
  if (thread >= entries_.size()) return nullptr;
  Entry& entry = entries_[thread];
  if (!entry.known) {
    entry.known = true;
    if (!wants_thread_ || wants_thread_(thread)) {
      entry.stack = std::make_unique<ThreadStack>(state_, thread);
    }
  }
  return entry.stack.get();
}

// A thread that has records of its own begins with one of its own.
ThreadStack* Replay::stack_of_kernel(ThreadIndex thread) {
  return state_.definitions.threads()[thread].of_kernel() ? stack_of(thread)
                                                          : entries_[thread].stack.get();
}

// Losses that the threads could not report themselves; when they came is not known.
void Replay::add_residual_loss(const Record& record, const arctrace_lost_body& lost) {
  ThreadStack* stack =
      (lost.flags & ARCTRACE_LOST_SESSION) != 0 ? nullptr : stack_of(record.thread);
  if (stack != nullptr) {
    stack->add_residual_loss(lost.count);
  } else if (wants_thread_ && record.thread != kNoIndex) {
    return;
  }
  session_point(record);
}

void Replay::enabled(const Record& record) {
  const uint32_t gate = load_part_untrusted<arctrace_enabled_body>(record.body).gate;
  const bool is_on = (gate & ARCTRACE_GATE_FUNCTIONS) != 0;
  const bool was_on = state_.off.empty() || state_.off.back().to_ns != INT64_MAX;
  if (was_on && !is_on) state_.off.push_back({record.time_ns, INT64_MAX});
  if (!was_on && is_on) state_.off.back().to_ns = record.time_ns;
  session_point(record);
}

void Replay::session_point(const Record& record) {
  const ReplayFilter& filter = state_.filter;
  if (state_.listener == nullptr || record.time_ns < filter.from_ns ||
      record.time_ns >= filter.until_ns) {
    return;
  }
  state_.listener->point({PointInfo::Kind::kRecord, record.thread, kUnknownFunction, 0,
                          record.time_ns, &record});
}

void Replay::finish() {
  for (size_t i = 0; i < entries_.size(); ++i) {
    ThreadStack* stack = entries_[i].stack.get();
    if (stack == nullptr) continue;
    stack->finish(last_ns_);
    if (!stack->in_report()) continue;
    threads_.push_back({static_cast<ThreadIndex>(i), stack->root(), stack->start_ns(),
                        stack->stop_ns()});
  }
}

}  // namespace arctrace::reader
