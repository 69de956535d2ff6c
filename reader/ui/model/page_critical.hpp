// The critical path on the page: where the time was, what the whole depended on, and
// where the path runs on the time line.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "reader/analysis/work_loops.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/critical_path.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/trace/session.hpp"
#include "reader/ui/model/timeline.hpp"

namespace arctrace::reader {

// Returns the number that a lane has on the page; nullopt: it has none there.
using LaneNumber = absl::FunctionRef<std::optional<uint32_t>(const Lane& like)>;

// Writes the number of a thread's own lane, or null, as a member or an element.
void write_lane_of(ThreadIndex thread, LaneNumber number, JsonWriter& json);

using PathPieces = std::vector<PathPiece>;

// Returns the pieces in order of thread and time. If there are more than `limit`, those
// that are nearer to one another than some time are one; `grain_ns` is that time.
PathPieces joined_pieces(PathPieces pieces, size_t limit, uint64_t& grain_ns);

// The listener that collects what the path is found from. What threads did is stored in a
// temporary file.
class PageCritical : public ReplayListener, public ScheduleListener {
 public:
  static constexpr size_t kRowsMax = 500;
  static constexpr size_t kNamesMax = 8;
  static constexpr size_t kPiecesMax = 20'000;

  // To be called before the first record; both must outlive this object. `session` may be
  // null.
  void begin(const Replay& replay, const Session* session);

  // REQUIRES: the replay is finished, and has dispatches and wake-ups. Writes the members
  // of `report --view=critical-path --format=json`, where each row has also lane (null:
  // none), at_ns and until_ns, which is where it was longest; and states, is_explanation,
  // by_name, grain_ns and pieces. `states`: [name, ns], of the whole path. `by_name`:
  // what the summary's text says that the time depended on, as objects of name, path, ns
  // and states; is_explanation says whether it is said there. `pieces`: arrays of lane,
  // and begin and duration of each piece, where a begin is relative to the begin before
  // it, the first to start_ns.
  absl::Status write_json(Replay& replay, LaneNumber number, JsonWriter& json);

  uint64_t frame_opened(const FrameInfo& frame) override {
    return is_known_ ? loops_.frame_opened(frame) : 0;
  }
  void frame_closed(const FrameInfo& /*frame*/, uint64_t /*token*/,
                    bool /*shown*/) override {}
  void frame_adopted(const FrameInfo& /*frame*/) override {}
  void point(const PointInfo& /*point*/) override {}
  void state_ended(const StateInfo& state) override {
    log_.state_ended(state);
    if (is_known_) loops_.state_ended(state);
  }
  void time_passed(const PathTime& time) override { log_.time_passed(time); }
  void thread_made(const ThreadMade& made) override {
    log_.thread_made(made);
    if (is_known_) loops_.thread_made(made);
  }

 private:
  ScheduleLog log_;
  WorkLoops loops_;
  const Session* session_ = nullptr;
  bool is_known_ = false;
};

}  // namespace arctrace::reader
