#include "reader/streams/event_stream.hpp"

#include <arctrace/format.h>

#include <utility>

namespace arctrace::reader {

EventStream::EventStream(EventSink& sink, uint64_t min_duration_ns)
    : sink_(sink), min_duration_ns_(min_duration_ns), waiting_(1) {}

// ---- From the replay ----

void EventStream::fill(StreamEvent& event, StreamEvent::Kind kind,
                       const FrameInfo& frame) {
  event.kind = kind;
  event.thread = frame.thread;
  event.function = frame.function;
  event.depth = frame.depth;
  event.count = frame.count;
  event.flags = frame.flags;
  event.coroutine = frame.coroutine;
  event.time_ns = frame.time_ns;
  event.start_ns = frame.start_ns;
  event.stop_ns = frame.stop_ns;
  event.duration_ns = frame.duration_ns;
  event.self_ns = frame.self_ns;
  event.cpu = frame.cpu;
  event.has_no_entry = false;
  event.type = 0;
  event.content.clear();
}

uint64_t EventStream::frame_opened(const FrameInfo& frame) {
  release(frame.time_ns);
  const uint32_t index = enqueue(min_duration_ns_ == 0);
  fill(waiting_[index].event, StreamEvent::Kind::kEnter, frame);
  return uint64_t{waiting_[index].generation} << 32 | index;
}

void EventStream::frame_closed(const FrameInfo& frame, uint64_t token, bool shown) {
  release(frame.time_ns);
  if (Waiting* entry = waiting_entry(token)) {
    entry->decided = shown;
    if (!shown) unlink(static_cast<uint32_t>(token));
  }
  std::string content;
  if (!retvals_.empty()) {
    if (const auto found = retvals_.find(frame.thread); found != retvals_.end()) {
      if (found->second.token == token) content = std::move(found->second.content);
      retvals_.erase(found);
    }
  }
  if (!shown) return;
  if ((frame.flags & kFrameOpen) != 0) {
    open_.push_back(frame);
  } else if ((frame.flags & kFrameCutStop) == 0) {
    fill(exit_, StreamEvent::Kind::kExit, frame);
    exit_.content = std::move(content);
    put(exit_);
  }
}

void EventStream::args(const ArgsInfo& args) {
  if (!sink_.wants_content()) return;
  release(args.time_ns);
  if (args.record->type == ARCTRACE_TYPE_RESULT) {
    retvals_[args.thread] = {args.token, sink_.describe(*args.record)};
  } else if (Waiting* entry = waiting_entry(args.token)) {
    std::string& text = entry->event.content;
    if (text.empty()) text = sink_.describe(*args.record);
  }
}

void EventStream::frame_adopted(const FrameInfo& frame) {
  if ((frame.flags & kFrameCutStop) != 0) return;
  fill(exit_, StreamEvent::Kind::kExit, frame);
  exit_.has_no_entry = true;
  put(exit_);
}

void EventStream::point(const PointInfo& point) {
  StreamEvent event;
  switch (point.kind) {
    case PointInfo::Kind::kRecord:
      event.kind = StreamEvent::Kind::kRecord;
      break;
    case PointInfo::Kind::kOrphan:
      event.kind = StreamEvent::Kind::kOrphanExit;
      break;
    case PointInfo::Kind::kResync:
      event.kind = StreamEvent::Kind::kResync;
      break;
  }
  event.thread = point.thread;
  event.function = point.function;
  event.depth = point.depth + 1;
  event.time_ns = point.time_ns;
  event.type = point.record->type;
  if (point.kind == PointInfo::Kind::kRecord && sink_.wants_content()) {
    event.content = sink_.describe(*point.record);
  }
  put(event);
}

// ---- The queue ----

void EventStream::put(const StreamEvent& event) {
  release(event.time_ns);
  if (waiting_[0].next == 0) {
    sink_.add(event);
  } else {
    waiting_[enqueue(true)].event = event;
  }
}

// Returns the entry of a frame, if it still waits; else null.
EventStream::Waiting* EventStream::waiting_entry(uint64_t token) {
  Waiting& entry = waiting_[static_cast<uint32_t>(token)];
  return entry.generation == token >> 32 ? &entry : nullptr;
}

// Adds an element, whose event is to be filled in.
uint32_t EventStream::enqueue(bool decided) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(waiting_.size()));
    waiting_.emplace_back();
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  Waiting& entry = waiting_[index];
  entry.decided = decided;
  entry.next = 0;
  entry.previous = waiting_[0].previous;
  waiting_[entry.previous].next = index;
  waiting_[0].previous = index;
  return index;
}

void EventStream::unlink(uint32_t index) {
  Waiting& entry = waiting_[index];
  waiting_[entry.previous].next = entry.next;
  waiting_[entry.next].previous = entry.previous;
  ++entry.generation;
  free_.push_back(index);
}

// Adds the oldest events up to the first one that may still change. An entry may get
// arguments as long as its time is not over.
void EventStream::release(int64_t now_ns) {
  for (uint32_t index = waiting_[0].next; index != 0; index = waiting_[0].next) {
    const Waiting& oldest = waiting_[index];
    const int64_t time_ns = oldest.event.time_ns;
    const uint64_t age = static_cast<uint64_t>(now_ns) - static_cast<uint64_t>(time_ns);
    if (oldest.event.kind == StreamEvent::Kind::kEnter && now_ns == time_ns) return;
    if (!oldest.decided && (now_ns < time_ns || age < min_duration_ns_)) return;
    sink_.add(oldest.event);
    unlink(index);
  }
}

void EventStream::finish() {
  // Events that still wait are open entries, or came after one.
  while (waiting_[0].next != 0) {
    const uint32_t index = waiting_[0].next;
    sink_.add(waiting_[index].event);
    unlink(index);
  }
}

}  // namespace arctrace::reader
