#include "reader/replay/replay.hpp"

#include <utility>

#include "reader/trace/bytes.hpp"
#include "reader/trace/record_types.hpp"

namespace arctrace::reader {

Replay::Replay(const Definitions& definitions, Symbolizer* symbolizer,
               ReplayOptions options)
    : state_(definitions, symbolizer, options.filter, options.clock, options.listener,
             options.schedule, options.max_findings),
      dispatches_(definitions, options.all_threads,
                  [this](ThreadIndex thread) { return stack_of_kernel(thread); }),
      wants_thread_(std::move(options.wants_thread)),
      has_wake_ups_(options.has_wake_ups),
      places_(definitions.threads().size()) {}

void Replay::add(const Record& record) {
  if (record.type == ARCTRACE_TYPE_LOST) {
    const uint32_t flags = load_u32(record.body.data() + 4);
    if ((flags & (ARCTRACE_LOST_RESIDUAL | ARCTRACE_LOST_SESSION)) != 0) {
      add_loss_of_collector(record, flags);
      return;
    }
  }
  if (record.thread >= places_.size()) {
    if (record.type == ARCTRACE_TYPE_SESSION) session_point(record);
    return;
  }
  if (class_of(record.type) == RecordClass::kKernel) {
    dispatches_.apply(record);
    return;
  }
  Place& place = places_[record.thread];
  if (place.stack == nullptr) {
    if (place.known || record.type >= ARCTRACE_TYPE_PROCESS) return;
    if (stack_of(record.thread) == nullptr) return;
  }
  place.stack->apply(record);
}

KnownTimes Replay::known_times() const {
  if (!has_dispatches()) return KnownTimes::kNone;
  return has_wake_ups_ ? KnownTimes::kReady : KnownTimes::kOffCpu;
}

ThreadStack* Replay::stack_of(ThreadIndex thread) {
  if (thread >= places_.size()) return nullptr;
  Place& place = places_[thread];
  if (!place.known) {
    place.known = true;
    if (!wants_thread_ || wants_thread_(thread)) {
      place.stack = std::make_unique<ThreadStack>(state_, thread);
    }
  }
  return place.stack.get();
}

// A thread that has records of its own begins with one of these.
ThreadStack* Replay::stack_of_kernel(ThreadIndex thread) {
  return state_.definitions.threads()[thread].of_kernel() ? stack_of(thread)
                                                          : places_[thread].stack.get();
}

// Losses that the threads could not say themselves: their place in time is not known.
void Replay::add_loss_of_collector(const Record& record, uint32_t flags) {
  ThreadStack* stack =
      (flags & ARCTRACE_LOST_SESSION) != 0 ? nullptr : stack_of(record.thread);
  if (stack != nullptr) {
    stack->add_residual_loss(load_u64(record.body.data() + 8));
  } else if (wants_thread_ && record.thread != kNoIndex) {
    return;
  }
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
  for (size_t i = 0; i < places_.size(); ++i) {
    ThreadStack* stack = places_[i].stack.get();
    if (stack == nullptr) continue;
    stack->finish();
    if (!stack->in_report()) continue;
    threads_.push_back({static_cast<ThreadIndex>(i), stack->root(), stack->start_ns(),
                        stack->stop_ns()});
  }
}

}  // namespace arctrace::reader
