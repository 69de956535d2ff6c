// One call in full, and the search for calls by their arguments.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reader/replay/listener.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/streams/record_describer.hpp"
#include "reader/ui/model/timeline.hpp"

namespace arctrace::reader {

// The key by which a call is found.
struct CallKey {
  ThreadIndex thread = kNoIndex;
  uint32_t coroutine = 0, depth = 0;
  int64_t start_ns = 0;
};

// A listener of a replay that reads the time of the call, and a little before it.
class CallDetail : public ReplayListener, public ScheduleListener {
 public:
  // `definitions` must outlive this object.
  CallDetail(const CallKey& key, const Definitions& definitions)
      : key_(key), definitions_(definitions) {}
  // To be called before the first record; both must outlive this object.
  void begin(const Replay& replay, RecordDescriber& describer) {
    replay_ = &replay;
    describer_ = &describer;
  }

  bool is_found() const { return frame_.has_value(); }
  // Its arguments as text; empty: none are recorded.
  const std::string& args_text() const { return args_; }
  // Writes function, start_ns, stop_ns, self_ns, duration_ns, off_ns, ready_ns,
  // not_known_ns, args, retval, flags, path (functions, outermost first), callees
  // ([function, calls, ns], ...), waits ([begin, end, task state, thread that ended it or
  // null, its functions], ...). `ids`: as for write_totals_json().
  void write_json(std::span<const FunctionId> ids, JsonWriter& json) const;

  uint64_t frame_opened(const FrameInfo& frame) override;
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& /*frame*/) override {}
  void point(const PointInfo& /*point*/) override {}
  void args(const ArgsInfo& args) override;
  void state_ended(const StateInfo& state) override;

 private:
  struct Wait {
    StateInfo state;
    std::string waker;             // "lua 100/101"
    std::vector<FunctionId> path;  // the waker's frames
  };

  const CallKey key_;
  const Definitions& definitions_;
  const Replay* replay_ = nullptr;
  RecordDescriber* describer_ = nullptr;
  bool is_open_ = false;
  std::optional<FrameInfo> frame_;
  std::string args_, retval_;
  std::vector<FunctionId> stack_, path_;
  absl::btree_map<FunctionId, std::pair<uint64_t, uint64_t>> callees_;
  std::vector<Wait> waits_;
  uint64_t waits_left_out_ = 0;
};

// A listener of a replay of the whole trace that searches args and retvals.
class ArgsSearch : public ReplayListener {
 public:
  static constexpr size_t kFoundMax = 100;

  // `timeline`: has the lanes; it must outlive this object.
  ArgsSearch(std::string text, const Timeline& timeline)
      : text_(std::move(text)), timeline_(timeline) {}
  void begin(RecordDescriber& describer) { describer_ = &describer; }

  // Writes found: an array of [lane, level, begin, end, function, text].
  void write_json(std::span<const FunctionId> ids, JsonWriter& json) const;

  uint64_t frame_opened(const FrameInfo& frame) override;
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& /*frame*/) override {}
  void point(const PointInfo& /*point*/) override {}
  void args(const ArgsInfo& args) override;

 private:
  struct Found {
    FrameInfo frame;
    std::string text;
  };

  const std::string text_;
  const Timeline& timeline_;
  RecordDescriber* describer_ = nullptr;
  uint64_t last_token_ = 0;
  absl::flat_hash_map<uint64_t, std::string> open_;  // that match, by token
  std::vector<Found> found_;
};

// Returns lines of a source file, if it is on this machine: up to `count` lines from line
// `first` (1: the first one) on, each valid UTF-8 without control characters, and cut if
// it is long. Empty if `path` is not absolute, or no regular file that can be read, or
// shorter: the path is untrusted, because it comes from the debug data of a program.
// Reads 8 MiB at most.
std::vector<std::string> source_text(const std::string& path, uint32_t first,
                                     uint32_t count);

}  // namespace arctrace::reader
