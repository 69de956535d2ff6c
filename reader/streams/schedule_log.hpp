// What all threads did, in pieces of one state each, stored until a trace is read: for
// views that go through it from its end to its beginning.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "reader/replay/listener.hpp"
#include "reader/streams/spools.hpp"

namespace arctrace::reader {

// The time that a piece spent in one path.
struct PathShare {
  NodeIndex node = kNoNode;
  uint64_t time_ns = 0;
};

// A piece ends where its thread changed its state, or woke or created another thread.
struct SchedulePiece {
  StateInfo state;               // without the node
  std::vector<PathShare> paths;  // their times add up to the piece's
  uint64_t previous = 0;         // the thread's piece before it
  uint32_t previous_size = 0;    // 0: there is none
};

// A listener that writes the log. Memory is bounded by the number of threads and of paths
// in one piece: the pieces are in a temporary file.
class ScheduleLog : public ScheduleListener {
 public:
  // Ends the thread's piece now, so that a walk can begin or end here.
  void cut(ThreadIndex thread);

  // Returns the last piece of a thread, or the one before a piece. Empty: there is none.
  std::optional<SchedulePiece> last(ThreadIndex thread);
  std::optional<SchedulePiece> before(const SchedulePiece& piece);
  // All threads have indices below this one.
  size_t thread_count() const { return threads_.size(); }
  // Returns how the thread was created. Empty: that is not known.
  std::optional<ThreadMade> made(ThreadIndex thread) const;

  // Error: the pieces could not be stored.
  const absl::Status& status() const { return spool_.status(); }

  void state_ended(const StateInfo& state) override;
  void time_passed(const PathTime& time) override;
  void thread_made(const ThreadMade& made) override;

 private:
  struct Log {
    StateInfo state;               // of the piece that has begun
    std::vector<PathShare> paths;  // of the same; empty: none has begun
    uint64_t last = 0;             // the last piece that has ended
    uint32_t last_size = 0;        // 0: none has
  };

  Log& log_of(ThreadIndex thread);
  void add(Log& log);
  std::optional<SchedulePiece> read(ThreadIndex thread, uint64_t offset, uint32_t size);

  std::vector<Log> threads_;                           // by ThreadIndex
  absl::flat_hash_map<ThreadIndex, ThreadMade> made_;  // by child
  TextSpool spool_;
};

}  // namespace arctrace::reader
