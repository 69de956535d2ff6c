// The names that exports use: of functions, processes and threads, of the lanes of a time
// line, of instants, and of what a trace lacks.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <arctrace/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/export/exporter.hpp"
#include "reader/render/labels.hpp"
#include "reader/replay/listener.hpp"
#include "reader/replay/replay.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/gaps.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

// The names of functions, processes and threads as exports have them. Each name of a
// function is made once.
class ExportNames {
 public:
  // Both must outlive this object.
  ExportNames(const Definitions& definitions, ShownNames& shown)
      : definitions_(definitions), shown_(shown) {}

  const std::string& function(FunctionId function) {
    if (function < known_.size() && known_[function].made) return known_[function].name;
    return make(function);
  }

  // The name of a frame where viewers count frames by their names: "main [inherited by
  // fork]" if the frame is no call, else the function's.
  std::string frame(FunctionId function, uint16_t flags);
  // Returns a number that tells such names apart; if the frame is a call, it is the
  // function's.
  static uint64_t frame_id(FunctionId function, uint16_t flags) {
    return uint64_t{flags & unsigned{kFrameCountedElsewhere}} << 32 | function;
  }

  // The program of a process, by the last part of its path.
  std::string process(ProcessIndex process) const;
  // The thread's last name, else its program's.
  std::string thread(ThreadIndex thread) const;
  // The thread's name as a field of its own, beside which no number stands: "process 7"
  // if its program has no name either.
  std::string thread_field(ThreadIndex thread) const;

 private:
  struct Known {
    bool made = false;
    std::string name;
  };
  const std::string& make(FunctionId function);

  const Definitions& definitions_;
  ShownNames& shown_;
  std::vector<Known> known_;  // by FunctionId
};

// The lanes of a time line: which calls, states and gaps stand in a lane of their own,
// and what each lane is called. The formats that have lanes share this.
enum class LaneKind : uint8_t { kOfCalls, kOfCoroutine, kOfAdopted, kOfStates, kOfGaps };

struct LaneKey {
  ThreadIndex thread;
  LaneKind kind;
  uint32_t number;  // of the coroutine, the adopted call, or the CPU; else 0
  bool operator==(const LaneKey&) const = default;
  template <class H>
  friend H AbslHashValue(H hash, const LaneKey& lane) {
    return H::combine(std::move(hash), lane.thread, lane.kind, lane.number);
  }
};

// The lane of the calls on a coroutine's stack, or, if `coroutine` is 0, on the thread's
// own.
inline LaneKey lane_of_calls(ThreadIndex thread, uint32_t coroutine) {
  return {thread, coroutine == 0 ? LaneKind::kOfCalls : LaneKind::kOfCoroutine,
          coroutine};
}

// Returns the lane's name below its thread: "coroutine 3", "entered before tracing", "on
// and off the CPU", "gaps", "cpu 3 gaps". A lane of calls has the thread's name, or that
// of the session.
std::string lane_name(const LaneKey& lane, const Definitions& definitions,
                      const ExportNames& names);

// Names of instants that have no name of their own.
inline constexpr const char* kOrphanExitName = "orphan exit";
inline constexpr const char* kContradictionName = "contradiction";

// Gives each gap a stretch of its lane. Two gaps of one lane may overlap, which no
// nesting can show: the later one begins where the earlier one ends.
class GapLanes {
 public:
  struct Stretch {
    LaneKey lane;
    int64_t from_ns, to_ns;
  };

  // A gap whose begin is not known has no length.
  Stretch add(const Gap& gap);

 private:
  absl::flat_hash_map<LaneKey, int64_t> last_stop_;
};

// The type of a row of an event, in all exports that have such rows.
inline const char* point_type_text(uint16_t record_type) {
  switch (record_type) {
    case ARCTRACE_TYPE_EVENT:
      return "event";
    case ARCTRACE_TYPE_INSTANT:
      return "instant";
    case ARCTRACE_TYPE_COUNTER:
      return "counter";
    case ARCTRACE_TYPE_TEXT:
      return "text";
    case ARCTRACE_TYPE_MARK:
      return "mark";
    case ARCTRACE_TYPE_LOST:
      return "lost";
    default:
      return "record";
  }
}

// A sink for the fields of a record but for its title, which an exporter shows elsewhere.
// `Fields` is a FieldSink, which gets the other fields. If a record is about a call, its
// title is the function, which stays a field: the name of the record is another one.
template <class Fields>
class Untitled : public Fields {
 public:
  using Fields::Fields;

  // The text that names the record; empty if nothing does. Raw bytes.
  const std::string& title_text() const { return title_; }

  void title(std::string_view name, std::string_view value) override {
    if (name == "function") {
      Fields::title(name, value);
    } else {
      title_ = value;
    }
  }

 private:
  std::string title_;
};

// A line about what a trace lacks, for formats that have a place for remarks: what was
// left out on purpose, and how many records are missing.
struct LeftOutLine {
  int64_t from_ns;   // or the beginning of what was replayed
  std::string text;  // safe
};

// "calls of leaf left out: switched off from 12.0 ms on", a line for each function that
// is not complete and each filter without functions that have calls; the first ones, and
// how many there are more. `replay` is finished.
std::vector<LeftOutLine> left_out_lines(Replay& replay, ExportNames& names);

// Returns the same lines for formats that have events: adds how many events --where left
// out, and how many the filter with which they were recorded left out.
std::vector<LeftOutLine> left_out_lines_with_events(Replay& replay, ExportNames& names,
                                                    const ExportSettings& settings);

// Returns "records missing: 1,234 lost (full 1,234), those of a program before it was
// joined", for formats that do not show when; empty: none are missing. `summary`, which
// may be null, is complete.
std::string missing_line(const Summary* summary, const Definitions& definitions);

}  // namespace arctrace::reader
