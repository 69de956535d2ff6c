// Entries, exits and records one by one, in order of time: for views and exporters that
// write while a trace is replayed.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reader/replay/listener.hpp"

namespace arctrace::reader {

struct StreamEvent {
  enum class Kind : uint8_t {
    kEnter,
    kExit,
    kRecord,      // EVENT, INSTANT, COUNTER, TEXT, MARK, VFORK_BEGIN, VFORK_END, LOST
    kOrphanExit,  // an exit that matches no frame
    kResync,      // a STACK that contradicts the stack so far
  };

  Kind kind = Kind::kEnter;
  ThreadIndex thread = kNoIndex;
  FunctionId function = kUnknownFunction;
  uint32_t depth = 0;         // shown frames around it, and itself
  uint32_t count = 1;         // of an entry: frames that it represents
  uint32_t coroutine = 0;     // of an entry or exit: on whose stack; 0: the thread's own
  bool has_no_entry = false;  // of an exit: the call began with the thread, unseen
  uint16_t flags = 0;         // of an entry or exit: enum FrameFlag
  uint16_t type = 0;          // of the record, unless it is an entry or exit
  int64_t time_ns = 0;
  int64_t start_ns = 0;  // of an entry or exit: when the call began
  int64_t stop_ns = 0;   // of an exit: when it ended, which may be before time_ns
  uint64_t duration_ns = 0, self_ns = 0;  // of an exit: the time of the call
  CpuTime cpu;                            // of an exit
  std::string content;  // EventSink::describe() of the record, or of args or retval
};

// The receiver of a stream.
class EventSink {
 public:
  virtual ~EventSink() = default;

  // Returns the content of a record, or the arguments or result of a call, in the form
  // that StreamEvent::content has for this sink. Called when the record comes, before the
  // event is added.
  virtual std::string describe(const Record& record) = 0;

  // Gets the next event in order of time.
  virtual void add(const StreamEvent& event) = 0;

  // Whether contents of later events are still needed: false saves the time of
  // describe().
  virtual bool wants_content() const { return true; }
};

// The listener that makes the stream. The replay tells an entry before the arguments of
// the call, and only an exit shows whether a call was long enough to be shown. So each
// entry waits until both are known, and all that follows waits with it. Memory is bounded
// by what happens within `min_duration_ns`.
class EventStream : public ReplayListener {
 public:
  // Calls that ended and were shorter than `min_duration_ns` do not appear. `sink` must
  // outlive this object.
  EventStream(EventSink& sink, uint64_t min_duration_ns);

  // Adds the events that still wait. To be called after the replay's finish().
  void finish();

  // REQUIRES: finish() was called. The frames that are open at the end, whose exits the
  // stream does not have.
  const std::vector<FrameInfo>& open_frames() const { return open_; }

  uint64_t frame_opened(const FrameInfo& frame) override;
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& frame) override;
  void point(const PointInfo& point) override;
  void args(const ArgsInfo& args) override;

 private:
  // Events that wait, oldest first: a list, so that those in its middle can be removed.
  struct Waiting {
    StreamEvent event;
    uint32_t previous = 0, next = 0;  // indices; 0: none
    uint32_t generation = 0;          // counts the uses of this element
    bool decided = true;              // the event is to be added
  };
  struct Retval {
    uint64_t token = 0;  // of the frame
    std::string content;
  };

  // Fills `event` in as that of a frame.
  static void fill(StreamEvent& event, StreamEvent::Kind kind, const FrameInfo& frame);
  void put(const StreamEvent& event);
  Waiting* waiting_entry(uint64_t token);
  uint32_t enqueue(bool decided);
  void unlink(uint32_t index);
  void release(int64_t now_ns);

  EventSink& sink_;
  const uint64_t min_duration_ns_;
  std::vector<Waiting> waiting_;  // [0]: the list's ends
  std::vector<uint32_t> free_;
  absl::flat_hash_map<ThreadIndex, Retval> retvals_;  // of calls that are about to end
  std::vector<FrameInfo> open_;
  StreamEvent exit_;  // that is being added
};

}  // namespace arctrace::reader
