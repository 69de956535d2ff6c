// Reads a live session tick by tick: each tick replays the records that came since the
// one before, and each record is replayed once.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "reader/live/live_stacks.hpp"
#include "reader/live/session_copy.hpp"
#include "reader/replay/replay.hpp"
#include "reader/symbols/symbolizer.hpp"

namespace arctrace::reader {

// The open frames and the state of a living thread at the end of a tick.
struct LiveThread {
  ThreadIndex thread = kNoIndex;  // in the tick's trace
  // Frames have the times at which they were entered, as far as this tick or an earlier
  // one tells these.
  OpenStack stack;
  // Whether the thread is on a CPU, and since when, by the kernel's records; nullopt: not
  // known.
  std::optional<StateInfo> state;
};

// A receiver of a tick's records. All references hold until end() has returned.
class LiveTick {
 public:
  virtual ~LiveTick() = default;
  // The listener to which the replay reports calls; null: none.
  virtual ReplayListener* call_listener() { return nullptr; }
  virtual void begin(const Trace& trace, Replay& replay) = 0;
  // Called before and after the replay gets a new record.
  virtual void before(const Record& /*record*/) {}
  virtual void after(const Record& /*record*/) {}
  // Called when the replay is finished: its sums cover the time in between.
  virtual void end(const Trace& trace, Replay& replay, int64_t from_ns, int64_t until_ns,
                   const std::vector<LiveThread>& threads) = 0;
};

class LiveReader {
 public:
  // `since_start`: the first tick covers all that the buffer has; else only what comes
  // from now on. `symbolizer` must outlive this object.
  LiveReader(SessionCopy copy, Symbolizer& symbolizer, bool since_start);

  // Copies what is new, and replays it up to some milliseconds ago: a record that a
  // writer is about to commit may be older than others that are there already. A record
  // that comes even later gets the time at which its tick begins. `is_last`: replays up
  // to now. Error: the session can no longer be read.
  absl::Status tick(LiveTick& tick, bool is_last = false);

  SessionCopy& copy() { return copy_; }

 private:
  void give_stacks(const Definitions& definitions, LiveStacks& stacks, Replay& replay);
  std::vector<LiveThread> take_threads(const LiveStacks& stacks, const Replay& replay);

  SessionCopy copy_;
  Symbolizer& symbolizer_;
  int64_t from_ns_ = INT64_MIN;
  bool from_now_;
  // The stacks that the next tick's replay begins with, by writer, and those of the
  // kernel's records.
  absl::flat_hash_map<uint32_t, OpenStack> carried_;
  absl::flat_hash_map<uint32_t, StateInfo> states_;
  bool has_dispatches_ = false;
  OwnNumbers own_numbers_;
};

}  // namespace arctrace::reader
