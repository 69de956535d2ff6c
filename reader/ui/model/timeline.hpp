// The time line of a trace: a lane for each thread and each coroutine, in it rows of
// calls by depth, and above them rows of the states of the thread.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "reader/replay/functions.hpp"
#include "reader/replay/listener.hpp"
#include "reader/ui/model/time_rows.hpp"

namespace arctrace::reader {

// Rows of a lane: one for each RunState, then one for each depth of calls.
inline constexpr uint32_t kStateLevels = 4;
// Deeper calls are counted, and have no row.
inline constexpr uint32_t kShownDepthMax = 400;

struct Lane {
  ThreadIndex thread = kNoIndex;
  uint32_t coroutine = 0;   // 0: the thread's own stack
  bool is_adopted = false;  // of calls that were entered before tracing began
  uint32_t levels = 0;      // rows that it has, with those of states
  uint64_t calls = 0;       // as a report counts them, with those that have no row
  uint64_t cpu_ns = 0;      // of a coroutine: on the CPU, within its calls
  uint64_t work_ns = 0;     // in its calls themselves, but for functions that wait
  // The parts of the process' lifetime in which the thread was, such as "[loader]", in
  // order of time.
  std::vector<Stretch> parts;
  std::vector<uint32_t> rows;  // in TimeRows, by level
};

// Remembers which functions mostly wait, such as pthread_cond_wait.
class WaitFunctions {
 public:
  // `functions` must outlive this object.
  void set_functions(const Functions& functions) { functions_ = &functions; }
  bool contains(FunctionId function);

 private:
  const Functions* functions_ = nullptr;
  std::vector<bool> is_wait_;  // by FunctionId, as far as functions were asked for
};

class Timeline : public ReplayListener, public ScheduleListener {
 public:
  // `exact` must outlive this object.
  Timeline(size_t max_items, const ExactTimes& exact) : exact_(exact), rows_(max_items) {}
  // To be called before the first record; `functions` must outlive this object.
  void begin(const Functions& functions) { waits_.set_functions(functions); }

  std::span<const Lane> lanes() const { return lanes_; }
  // Returns the lane that corresponds to one of another time line of the trace; null:
  // there is none.
  const Lane* find(const Lane& like) const;
  // Returns the number of that lane in lanes().
  std::optional<uint32_t> number_of(const Lane& like) const;
  // Returns an empty row if the lane has none at this level.
  const TimeRow& row(const Lane& lane, uint32_t level) const;
  TimeRows& rows() { return rows_; }
  const TimeRows& rows() const { return rows_; }
  uint64_t calls_without_row() const { return calls_without_row_; }

  uint64_t frame_opened(const FrameInfo& /*frame*/) override { return 0; }
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& frame) override;
  void point(const PointInfo& /*point*/) override {}
  void part_ended(const FrameInfo& part) override;
  void state_ended(const StateInfo& state) override;

 private:
  using Key = std::tuple<ThreadIndex, uint32_t, bool>;

  Lane& lane_of(ThreadIndex thread, uint32_t coroutine, bool is_adopted);
  void add(Lane& lane, uint32_t level, Stretch stretch);

  const ExactTimes& exact_;
  TimeRows rows_;
  WaitFunctions waits_;
  std::vector<Lane> lanes_;
  absl::flat_hash_map<Key, uint32_t> index_;
  Key recent_key_{kNoIndex, 0, false};
  uint32_t recent_ = 0;
  uint32_t row_count_ = 0;
  uint64_t calls_without_row_ = 0;
};

}  // namespace arctrace::reader
