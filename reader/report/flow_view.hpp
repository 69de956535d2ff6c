// Every entry, exit and event in order of time.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader/render/describe_record.hpp"
#include "reader/render/json_writer.hpp"
#include "reader/render/view_options.hpp"
#include "reader/render/write_text.hpp"

namespace arctrace::reader {

// A listener that writes while the trace is replayed. Times are those of the records;
// what is open at the end is told at the end.
//
// Calls that are shorter than `min_duration_ns` are not shown: each entry waits, and what
// comes behind it, until it is clear whether its call is long enough; in any case until
// its time is over, because its arguments come behind it.
class FlowView : public ReplayListener {
 public:
  // All must outlive this object. Text goes to `write`, or JSON as the elements of the
  // array that is open in `json`; the other one is nullptr.
  FlowView(const ViewOptions& options, uint64_t min_duration_ns, DescribeRecord describe,
           const WriteText* write, JsonWriter* json);

  // Before the first record.
  void begin(Replay& replay);
  // After the replay's finish. JSON: ends the array, and adds member "open_frames".
  void finish();

  uint64_t frame_opened(const FrameInfo& frame) override;
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& frame) override;
  void point(const PointInfo& point) override;
  void args(const ArgsInfo& args) override;

 private:
  enum class Kind : uint8_t { kEnter, kExit, kRecord, kTrouble };
  struct Line {
    Kind kind = Kind::kEnter;
    bool orphan = false;  // of kTrouble: an exit; else a STACK that contradicts
    ThreadIndex thread = kNoIndex;
    FunctionId function = kUnknownFunction;
    uint32_t depth = 0;
    uint32_t count = 1;
    uint16_t flags = 0;
    uint16_t type = 0;  // of kRecord
    int64_t time_ns = 0;
    uint64_t delta_ns = 0, base_ns = 0;  // of kExit
    CpuTime cpu;                         // of kExit
    std::string content;                 // of kRecord; arguments or result of a call
  };

  // Lines that wait, oldest first: a list, so that those in its middle can leave.
  struct Waiting {
    Line line;
    uint32_t previous = 0, next = 0;  // indices; 0: none
    uint32_t generation = 0;          // counts the uses of this place
    bool decided = true;              // is to be shown
  };

  static Line line_of(Kind kind, const FrameInfo& frame);
  void put(Line line);
  Waiting* waiting(uint64_t token);
  uint32_t enqueue(Line line, bool decided);
  void unlink(uint32_t index);
  void release(int64_t now_ns);
  void emit(const Line& line);
  void emit_text(const Line& line);
  void emit_json(const Line& line);
  std::string who(ThreadIndex thread) const;

  const ViewOptions& options_;
  const uint64_t min_duration_ns_;
  const DescribeRecord describe_;
  const WriteText* write_;
  JsonWriter* json_;
  Replay* replay_ = nullptr;
  std::optional<FunctionNames> names_;
  std::vector<Waiting> waiting_;  // [0]: the list's ends
  std::vector<uint32_t> free_;
  struct Result {
    uint64_t token = 0;  // of the frame
    std::string content;
  };
  absl::flat_hash_map<ThreadIndex, Result> results_;  // whose calls are about to end
  std::vector<FrameInfo> open_;                       // at the end
  uint64_t lines_ = 0;
  bool good_ = true;
};

}  // namespace arctrace::reader
