#include "reader/live/live_reader.hpp"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <utility>

#include "reader/trace/record_types.hpp"
#include "src/buffer/clock.hpp"

namespace arctrace::reader {
namespace {

// Ticks stay this far behind, for records that are being written.
constexpr double kLagSeconds = 0.02;

// Gives a frame that was open before the time at which it was first entered.
void restore_starts(const OpenStack& before, int64_t from_ns, OpenStack& now) {
  for (size_t i = 0; i < std::min(before.frames.size(), now.frames.size()); ++i) {
    const OpenFrame& was = before.frames[i];
    OpenFrame& is = now.frames[i];
    if (was.key != is.key || is.start_ns > from_ns) return;
    is.start_ns = std::min(is.start_ns, was.start_ns);
  }
}

}  // namespace

LiveReader::LiveReader(SessionCopy copy, Symbolizer& symbolizer, bool since_start)
    : copy_(std::move(copy)), symbolizer_(symbolizer), from_now_(!since_start) {}

absl::Status LiveReader::tick(LiveTick& tick, bool is_last) {
  const Session& session = copy_.session();
  const uint64_t now_ticks = read_ticks(session.clock);
  const auto lag_ticks =
      static_cast<uint64_t>(static_cast<double>(session.ticks_per_second) * kLagSeconds);
  const uint64_t limit_ticks = now_ticks - std::min(now_ticks, lag_ticks);
  if (absl::Status s = copy_.update(); !s.ok()) return s;
  absl::StatusOr<Trace> trace = copy_.trace();
  if (!trace.ok()) return trace.status();
  const Definitions& definitions = trace->definitions();
  const int64_t limit_ns = trace->clock().to_ns(is_last ? now_ticks : limit_ticks);
  const int64_t until_ns = std::max(limit_ns, from_ns_);
  if (std::exchange(from_now_, false)) from_ns_ = until_ns;

  LiveStacks stacks(tick.call_listener());
  ReplayOptions options;
  options.listener = &stacks;
  options.filter.from_ns = from_ns_;
  options.max_findings = 0;
  options.ticks = &trace->clock();
  options.mode = session.mode;
  options.has_wake_ups = !session.has_perf_records;
  options.had_dispatches = has_dispatches_;
  options.own_numbers = std::move(own_numbers_);
  Replay replay(definitions, &symbolizer_, options);
  tick.begin(*trace, replay);
  give_stacks(definitions, stacks, replay);
  absl::Status read = trace->read([&](const Record& record) {
    if (!is_last && record.time_ns >= until_ns) return false;
    const SessionCopy::Taken taken = copy_.take(record);
    if (!taken.is_new) {
      // The set of recorded classes is in force until it changes.
      if (record.type == ARCTRACE_TYPE_ENABLED) replay.add(record);
      return true;
    }
    Record now = record;
    now.after_gap = taken.after_gap;
    // A definition may be written long after its time.
    if (class_of(record.type) != RecordClass::kDefinition) {
      now.time_ns = std::max(record.time_ns, from_ns_);
    }
    tick.before(now);
    stacks.before(replay, now);
    replay.add(now);
    tick.after(now);
    return true;
  });
  if (!read.ok()) return read;
  Record end{};  // threads go on in their states up to this record
  end.time_ns = until_ns;
  end.thread = kNoIndex;
  end.type = ARCTRACE_TYPE_CLOCK_SYNC;
  replay.add(end);
  has_dispatches_ = replay.has_dispatches();
  own_numbers_ = replay.own_numbers();
  const std::vector<LiveThread> threads = take_threads(stacks, replay);
  replay.finish();
  tick.end(*trace, replay, from_ns_, until_ns, threads);
  from_ns_ = until_ns;
  copy_.forget(limit_ticks);
  return absl::OkStatus();
}

// Feeds the stacks that the last tick ended with as if their threads recorded them now,
// in the states in which the tick ended.
void LiveReader::give_stacks(const Definitions& definitions, LiveStacks& stacks,
                             Replay& replay) {
  for (const auto& [writer, stack] : carried_) {
    const std::vector<std::byte> body = stack.record_body();
    Record record{};
    record.time_ns = from_ns_;
    record.thread = definitions.find_thread(writer);
    record.type = ARCTRACE_TYPE_STACK;
    record.body = body;
    if (record.thread == kNoIndex) continue;
    stacks.before(replay, record, true);
    replay.add(record);
    for (const auto& [type, kernel_body] : stack.kernel_records()) {
      record.type = type;
      record.body = kernel_body;
      stacks.before(replay, record, true);
      replay.go_on_in_kernel(record);
    }
  }
  for (const auto& [writer, state] : states_) {
    replay.go_on(definitions.find_thread(writer), from_ns_, state);
  }
}

std::vector<LiveThread> LiveReader::take_threads(const LiveStacks& stacks,
                                                 const Replay& replay) {
  const Definitions& definitions = replay.definitions();
  states_.clear();
  absl::flat_hash_set<uint32_t> alive;
  for (const BufferState::Slot& slot : copy_.buffer().slots) {
    if (slot.alive) alive.insert(slot.writer);
  }
  absl::flat_hash_map<uint32_t, OpenStack> next;
  std::vector<LiveThread> threads;
  for (ThreadIndex i = 0; i < definitions.threads().size(); ++i) {
    const uint32_t writer = definitions.threads()[i].writer;
    const auto found = stacks.stacks().find(i);
    if (!alive.contains(writer)) continue;
    LiveThread thread{i, found == stacks.stacks().end() ? OpenStack() : found->second,
                      replay.state_of(i)};
    if (thread.state.has_value()) states_[writer] = *thread.state;
    if (const auto before = carried_.find(writer); before != carried_.end()) {
      restore_starts(before->second, from_ns_, thread.stack);
    }
    if (found != stacks.stacks().end()) next[writer] = thread.stack;
    threads.push_back(std::move(thread));
  }
  carried_ = std::move(next);
  return threads;
}

}  // namespace arctrace::reader
