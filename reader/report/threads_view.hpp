// What each thread did over time: ran, waited for a CPU, or was blocked, and until when.
#pragma once

#include <absl/container/btree_map.h>

#include <cstdint>
#include <vector>

#include "reader/render/json_writer.hpp"
#include "reader/render/view_options.hpp"
#include "reader/render/write_text.hpp"
#include "reader/replay/schedule_listener.hpp"

namespace arctrace::reader {

// A listener that collects the stretches, and writes them at the end: a table for each
// thread, in order of time, or the longest first if they are sorted by cum. Memory is
// that of the stretches; in order of time, of as many as the limit has.
class ThreadsView : public ScheduleListener {
 public:
  explicit ThreadsView(const ViewOptions& options) : options_(options) {}

  void write_text(Replay& replay, const WriteText& write);
  // Member "threads" of the object that is open: an array of pid, tid, name, running_ns,
  // ready_ns (of it preempted_ns; if wake-ups are not known, it is part of blocked_ns but
  // for that), blocked_ns and states.
  void write_json(Replay& replay, JsonWriter& json);

  void state_ended(const StateInfo& state) override;

 private:
  struct States {
    std::vector<StateInfo> rows;
    uint64_t left_out = 0;
    uint64_t running_ns = 0, ready_ns = 0, preempted_ns = 0, blocked_ns = 0;
  };

  void order_rows();

  const ViewOptions& options_;
  absl::btree_map<ThreadIndex, States> threads_;
};

}  // namespace arctrace::reader
