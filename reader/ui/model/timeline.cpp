#include "reader/ui/model/timeline.hpp"

#include <algorithm>
#include <optional>

#include "reader/analysis/function_kinds.hpp"

namespace arctrace::reader {

// Each function is checked once.
bool WaitFunctions::contains(FunctionId function) {
  while (is_wait_.size() <= function) {
    const std::optional<FunctionKind> kind =
        function_kind((*functions_)[static_cast<FunctionId>(is_wait_.size())]);
    is_wait_.push_back(kind.has_value() && may_wait(*kind));
  }
  return is_wait_[function];
}

Lane& Timeline::lane_of(ThreadIndex thread, uint32_t coroutine, bool is_adopted) {
  const Key key{thread, coroutine, is_adopted};
  if (key == recent_key_ && !lanes_.empty()) return lanes_[recent_];
  const auto [entry, is_new] =
      index_.try_emplace(key, static_cast<uint32_t>(lanes_.size()));
  if (is_new) {
    Lane& lane = lanes_.emplace_back();
    lane.thread = thread;
    lane.coroutine = coroutine;
    lane.is_adopted = is_adopted;
  }
  recent_key_ = key;
  recent_ = entry->second;
  return lanes_[recent_];
}

void Timeline::add(Lane& lane, uint32_t level, Stretch stretch) {
  stretch.exact_for = exact_.exact_for(lane.thread, stretch.start_ns, stretch.stop_ns);
  constexpr uint32_t kNoRow = UINT32_MAX;
  if (level >= lane.rows.size()) lane.rows.resize(level + size_t{1}, kNoRow);
  uint32_t& row = lane.rows[level];
  if (row == kNoRow) row = row_count_++;
  lane.levels = std::max(lane.levels, level + 1);
  rows_.add(row, stretch);
}

const Lane* Timeline::find(const Lane& like) const {
  const auto found = index_.find({like.thread, like.coroutine, like.is_adopted});
  return found == index_.end() ? nullptr : &lanes_[found->second];
}

std::optional<uint32_t> Timeline::number_of(const Lane& like) const {
  const Lane* lane = find(like);
  if (lane == nullptr) return std::nullopt;
  return static_cast<uint32_t>(lane - lanes_.data());
}

const TimeRow& Timeline::row(const Lane& lane, uint32_t level) const {
  return rows_.row(level < lane.rows.size() ? lane.rows[level] : UINT32_MAX);
}

void Timeline::frame_closed(const FrameInfo& frame, uint64_t /*token*/, bool shown) {
  if (!shown) return;
  Lane& lane = lane_of(frame.thread, frame.coroutine, false);
  const Stretch stretch{frame.start_ns, frame.stop_ns, frame.function, frame.flags};
  if (is_call(frame.flags)) ++lane.calls;
  if (frame.depth == 1 && frame.coroutine != 0) lane.cpu_ns += frame.cpu.cpu_ns;
  if (!waits_.contains(frame.function)) lane.work_ns += frame.self_ns;
  if (frame.depth > kShownDepthMax) {
    ++calls_without_row_;
    return;
  }
  add(lane, kStateLevels + frame.depth - 1, stretch);
}

// Each adopted frame is around all that the thread did before it, so each has a row of
// its own.
void Timeline::frame_adopted(const FrameInfo& frame) {
  Lane& lane = lane_of(frame.thread, frame.coroutine, true);
  ++lane.calls;
  const uint32_t level = std::max(lane.levels, kStateLevels);
  if (level >= kStateLevels + kShownDepthMax) {
    ++calls_without_row_;
    return;
  }
  add(lane, level, {frame.start_ns, frame.stop_ns, frame.function, frame.flags});
}

void Timeline::part_ended(const FrameInfo& part) {
  if (part.coroutine != 0 || part.stop_ns <= part.start_ns) return;
  lane_of(part.thread, 0, false)
      .parts.push_back({part.start_ns, part.stop_ns, part.function,
                        static_cast<uint16_t>(part.flags & ~kFrameResumed)});
}

void Timeline::state_ended(const StateInfo& state) {
  Lane& lane = lane_of(state.thread, 0, false);
  const Stretch stretch{state.start_ns, state.stop_ns, static_cast<uint32_t>(state.state),
                        0};
  add(lane, static_cast<uint32_t>(state.state), stretch);
}

}  // namespace arctrace::reader
