// The export of Chrome's trace format. A call that ended is one complete event (X), so
// that its name is written once; a call that did not end is a beginning without an end
// (B).
//
// Viewers sort events by their times and keep the order of those of one time. They add
// the time and the duration of a complete event in floating point: of two calls that
// touch, the first may seem to end in the second. So a call that ends in the nanosecond
// in which its caller ends or another call begins has a begin and an end. The next event
// of its thread tells whether it does. And a call that begins in the nanosecond in which
// its caller does is written after its caller's begin, which is known only when the
// caller ends.
#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reader/export/chrome_events.hpp"
#include "reader/export/export_formats.hpp"
#include "reader/export/export_names.hpp"
#include "reader/export/whole_calls.hpp"
#include "reader/render/labels.hpp"
#include "reader/streams/json_writer.hpp"
#include "reader/trace/format_names.hpp"

namespace arctrace::reader {
namespace {

class ChromeExport : public CallExporter {
 public:
  using CallExporter::CallExporter;

  void begin(Replay& replay, const WriteText& write) override;
  void gap(const Gap& gap) override;
  absl::Status finish() override;

 private:
  std::string describe(const Record& record) override {
    return content_members(settings().describe, record);
  }
  void call_began(const FrameInfo& frame) override;
  void call(const WholeCall& call) override;
  void point(const PointInfo& point) override;
  void state_ended(const StateInfo& state) override;

  // The call of a thread that ended last, which waits for the thread's next event.
  struct DeferredCall {
    std::optional<WholeCall> call;
    bool touches = false;  // another call begins or ends where it ends
  };
  DeferredCall& deferred_of(ThreadIndex thread);
  void write_deferred(DeferredCall& deferred);
  void write_call(const WholeCall& call, bool in_one);
  void write_begin(const WholeCall& call);
  const std::string& quoted_name(const FrameInfo& frame);

  void begin_event(const char* phase, const LaneKey& lane, int64_t time_ns);
  void add_stretch(const LaneKey& lane, int64_t start_ns, int64_t stop_ns,
                   std::string_view name, std::string_view args);
  void add_flow(const char* phase, const LaneKey& lane, int64_t time_ns);

  ChromeEvents events_;
  Replay* replay_ = nullptr;
  std::optional<ExportNames> names_;
  std::optional<ChromeLanes> lanes_;
  GapLanes gaps_;
  std::vector<DeferredCall> deferred_;         // by ThreadIndex
  std::vector<std::string> quoted_functions_;  // by FunctionId; empty: not yet made
  std::string quoted_frame_;                   // of the last frame that was no call
  // By the token of an open call: the begins of calls that began with it, in their order.
  using Begins = std::list<std::string>;
  absl::flat_hash_map<uint64_t, Begins> waiting_;
  uint32_t adopted_ = 0;
  uint64_t flows_ = 0;
};

void ChromeExport::begin(Replay& replay, const WriteText& write) {
  replay_ = &replay;
  names_.emplace(replay.definitions(), replay.shown_names());
  lanes_.emplace(*settings().definitions, *names_, events_);
  events_.begin_file(write, settings().session);
}

void ChromeExport::begin_event(const char* phase, const LaneKey& lane, int64_t time_ns) {
  const std::string& ids = lanes_->ids_of(lane);
  events_.begin(phase, ids);
  events_.add_time(time_ns);
}

// ---- Calls ---------------------------------------------------------------------------

ChromeExport::DeferredCall& ChromeExport::deferred_of(ThreadIndex thread) {
  if (thread >= deferred_.size()) deferred_.resize(thread + size_t{1});
  return deferred_[thread];
}

void ChromeExport::write_deferred(DeferredCall& deferred) {
  if (!deferred.call.has_value()) return;
  // A call without duration is exact in one event, because nothing is added to its time;
  // and complete events that begin together are sorted by their durations, which begins
  // are not.
  const FrameInfo& frame = deferred.call->frame;
  write_call(*deferred.call, !deferred.touches || frame.start_ns == frame.stop_ns);
  deferred.call.reset();
}

void ChromeExport::call_began(const FrameInfo& frame) {
  DeferredCall& deferred = deferred_of(frame.thread);
  if (!deferred.call.has_value()) return;
  deferred.touches |= deferred.call->frame.stop_ns == frame.start_ns;
  write_deferred(deferred);
}

void ChromeExport::call(const WholeCall& call) {
  DeferredCall& deferred = deferred_of(call.frame.thread);
  bool touches = false;
  if (deferred.call.has_value()) {
    touches = deferred.call->frame.stop_ns == call.frame.stop_ns;
    deferred.touches |= touches;
    write_deferred(deferred);
  }
  if (!call.has_ended) return write_call(call, false);
  deferred.call = call;
  deferred.touches = touches;
}

const std::string& ChromeExport::quoted_name(const FrameInfo& frame) {
  const FunctionId function = frame.function;
  if (!is_call(frame.flags)) {
    return quoted_frame_ = json_quoted(names_->frame(function, frame.flags));
  }
  if (function >= quoted_functions_.size()) {
    quoted_functions_.resize(function + size_t{1});
  }
  std::string& name = quoted_functions_[function];
  if (name.empty()) name = json_quoted(names_->function(function));
  return name;
}

// `in_one`: a complete event.
void ChromeExport::write_call(const WholeCall& call, bool in_one) {
  const FrameInfo& frame = call.frame;
  LaneKey lane = lane_of_calls(frame.thread, frame.coroutine);
  // An adopted call would not nest with calls that began at the same time.
  if (call.is_adopted) lane = {frame.thread, LaneKind::kOfAdopted, ++adopted_};
  std::string args;
  if (!call.args.empty() || !call.retval.empty() || frame.flags != 0 || frame.count > 1) {
    args = json_members([&](JsonWriter& json) {
      json.members(call.args);
      json.members(call.retval);
      if (frame.count > 1) json.member("frames", frame.count);
      write_flags_json(frame.flags, json);
    });
  }
  begin_event(in_one ? "X" : "B", lane, frame.start_ns);
  if (in_one) events_.add_duration(frame.start_ns, frame.stop_ns);
  events_.add_name(quoted_name(frame));
  events_.add_args(args);
  write_begin(call);
  if (in_one || !call.has_ended) return;
  // speedscope compares name and args with those of the begin.
  begin_event("E", lane, frame.stop_ns);
  events_.add_name(quoted_name(frame));
  events_.add_args(args);
  events_.add();
}

// Adds the event that was begun, and the begins that wait for it, to the file or to the
// begins that wait for the caller.
void ChromeExport::write_begin(const WholeCall& call) {
  Begins inner;
  if (!waiting_.empty()) {
    if (const auto found = waiting_.find(call.token); found != waiting_.end()) {
      inner = std::move(found->second);
      waiting_.erase(found);
    }
  }
  // Calls that did not end come last, after their callers.
  if (call.began_with != 0 && call.has_ended) {
    Begins& begins = waiting_[call.began_with];
    begins.push_back(events_.take());
    begins.splice(begins.end(), inner);
    return;
  }
  events_.add();
  for (const std::string& begin : inner) events_.add_taken(begin);
}

void ChromeExport::point(const PointInfo& point) {
  const LaneKey lane = lane_of_calls(point.thread, 0);
  std::string name;
  const std::string members = json_members([&](JsonWriter& json) {
    Untitled<JsonFields> fields(json);
    if (point.kind == PointInfo::Kind::kRecord) {
      settings().describe(*point.record, fields);
    }
    name = fields.title_text();
  });
  if (point.kind != PointInfo::Kind::kRecord) {
    name = point.kind == PointInfo::Kind::kOrphan ? kOrphanExitName : kContradictionName;
  } else if (name.empty()) {
    name = record_type_text(point.record->type);
  }
  const bool is_counter = point.record->type == ARCTRACE_TYPE_COUNTER;
  begin_event(is_counter ? "C" : "i", lane, point.time_ns);
  if (!is_counter) {
    events_.add_members(point.thread == kNoIndex ? ",\"s\":\"g\"" : ",\"s\":\"t\"");
  }
  events_.add_name(json_quoted(safe_name(name)));
  events_.add_args(members);
  events_.add();
}

// ---- Stretches of other lanes ---------------------------------------------------------

// Adds a begin and an end. Stretches follow one another without a break: of complete
// events a viewer adds time and duration in floating point, and may find that the sum is
// after the next one's begin.
void ChromeExport::add_stretch(const LaneKey& lane, int64_t start_ns, int64_t stop_ns,
                               std::string_view name, std::string_view args) {
  const auto add = [&](const char* phase, int64_t time_ns) {
    begin_event(phase, lane, time_ns);
    events_.add_name(json_quoted(name));
    events_.add_args(args);
    events_.add();
  };
  add("B", start_ns);
  add("E", stop_ns);
}

void ChromeExport::state_ended(const StateInfo& state) {
  const LaneKey lane{state.thread, LaneKind::kOfStates, 0};
  add_stretch(lane, state.start_ns, state.stop_ns, run_state_text(state), {});
  if (state.waker.thread == kNoIndex || state.waker.interrupt) return;
  // The flow leads from the waking thread's call to the stretch in which this thread is
  // ready.
  ++flows_;
  add_flow("s", lane_of_calls(state.waker.thread, 0), state.stop_ns);
  add_flow("f", lane, state.stop_ns);
}

void ChromeExport::add_flow(const char* phase, const LaneKey& lane, int64_t time_ns) {
  begin_event(phase, lane, time_ns);
  events_.add_members(absl::StrCat(",\"bp\":\"e\",\"cat\":\"wake-up\",\"id\":", flows_));
  events_.add_name("\"wakes\"");
  events_.add();
}

void ChromeExport::gap(const Gap& gap) {
  const GapLanes::Stretch stretch = gaps_.add(gap);
  const std::string args = json_members([&](JsonWriter& json) {
    json.member("records", gap.records);
    if (!gap.from_known) json.member("from", "not known");
  });
  add_stretch(stretch.lane, stretch.from_ns, stretch.to_ns, gap_reason_text(gap), args);
}

absl::Status ChromeExport::finish() {
  for (DeferredCall& deferred : deferred_) write_deferred(deferred);
  finish_calls();
  events_.finish_file(left_out_lines_with_events(*replay_, *names_, settings()));
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Exporter> make_chrome_export(const ExportSettings& settings) {
  return std::make_unique<ChromeExport>(settings);
}

}  // namespace arctrace::reader
