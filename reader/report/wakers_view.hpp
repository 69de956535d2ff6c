// Who woke whom, from which frames.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "reader/render/json_writer.hpp"
#include "reader/render/view_options.hpp"
#include "reader/render/write_text.hpp"
#include "reader/replay/schedule_listener.hpp"

namespace arctrace::reader {

// A listener that adds up the wake-ups, and writes them at the end: a row for each waker
// with its frames and each woken thread with those in which it was blocked, by the time
// it was, or by the number of wake-ups if they are sorted by calls.
class WakersView : public ScheduleListener {
 public:
  explicit WakersView(const ViewOptions& options) : options_(options) {}

  void write_text(Replay& replay, const WriteText& write);
  // Member "wakers" of the object that is open: an array of wake_ups, blocked_ns, waker
  // and woken (pid, tid, name, path), from_interrupt.
  void write_json(Replay& replay, JsonWriter& json);

  void state_ended(const StateInfo& state) override;

 private:
  // Waker, its node, woken, its node, whether an interrupt did it.
  using Key = std::tuple<ThreadIndex, NodeIndex, ThreadIndex, NodeIndex, bool>;
  struct Row {
    StateInfo state;  // one of them
    uint64_t wake_ups = 0, blocked_ns = 0;
  };

  // Those that are shown, in order.
  std::vector<Row> rows() const;

  const ViewOptions& options_;
  absl::flat_hash_map<Key, Row> by_key_;
};

}  // namespace arctrace::reader
