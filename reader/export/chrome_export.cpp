// One event a line. A call that ended is one complete event (X), so that its name is
// written once; one that did not is a beginning without an end (B).
//
// Viewers add the time and the duration of a complete event in floating point, and sort
// by the sums: of two calls that touch, the first may seem to end in the second. So a
// call that ends in the nanosecond in which its caller ends or another call begins has a
// begin and an end. Whether it does is known at the next event of its thread.
#include "reader/export/chrome_export.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "reader/analysis/tree_groups.hpp"
#include "reader/export/export_names.hpp"
#include "reader/export/run_states.hpp"
#include "reader/export/whole_calls.hpp"
#include "reader/render/frame_marks.hpp"
#include "reader/render/json_writer.hpp"
#include "reader/trace/format_names.hpp"

namespace arctrace::reader {
namespace {

// What does not fit the nesting of a thread's calls has lanes of its own. Viewers know
// lanes as threads; these have numbers above the kernel's largest one.
constexpr uint32_t kFirstLane = 1u << 22;

std::string quoted(std::string_view text) {
  const std::string members =
      json_members([&](JsonWriter& json) { json.key("").value(text); });
  return members.substr(members.find(':') + 1);
}

// The fields of a record but for its title, which names the event.
class PointFields : public JsonFields {
 public:
  using JsonFields::JsonFields;
  void title(std::string_view name, std::string_view value) override {
    if (name == "function") return JsonFields::title(name, value);
    name_ = value;
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

class ChromeExport : public Exporter, private CallSink, private ScheduleListener {
 public:
  explicit ChromeExport(const ExportSettings& settings)
      : settings_(settings), calls_(*this) {}

  ReplayListener* call_listener() override { return &calls_; }
  ScheduleListener* schedule_listener() override { return this; }
  void begin(Replay& replay, const WriteText& write) override;
  void gap(const Gap& gap) override;
  absl::Status finish() override;

 private:
  // What a lane is beside a thread's calls.
  enum class LaneKind : uint8_t { kOfCalls, kOfCoroutine, kOfStates, kOfGaps };
  struct Lane {
    ThreadIndex thread;
    LaneKind kind;
    uint32_t number;  // of the coroutine, or the CPU
    bool operator==(const Lane&) const = default;
    template <class H>
    friend H AbslHashValue(H hash, const Lane& lane) {
      return H::combine(std::move(hash), lane.thread, lane.kind, lane.number);
    }
  };

  std::string describe(const Record& record) override {
    return content_members(settings_.describe, record);
  }
  void call_began(const FrameInfo& frame) override;
  void call(const WholeCall& call) override;
  void point(const PointInfo& point) override;
  void state_ended(const StateInfo& state) override;

  // The call of a thread that ended last.
  struct Held {
    std::optional<WholeCall> call;
    bool touches = false;  // another call begins or ends where it ends
  };
  Held& held_by(ThreadIndex thread);
  void write_held(Held& held);
  void write_call(const WholeCall& call, bool in_one);
  const std::string& quoted_name(FunctionId function);

  const std::string& ids_of(Lane lane);
  void add_programs();
  std::string lane_name(const Lane& lane) const;
  void name_lane(const Lane& lane, uint32_t pid, uint32_t tid);
  void begin_event(const char* phase, const Lane& lane, int64_t time_ns);
  void add_time(int64_t time_ns);
  void add_duration(int64_t start_ns, int64_t stop_ns);
  void add_name(std::string_view quoted_name);
  void end_event(std::string_view args = {});
  void add_stretch(const Lane& lane, int64_t start_ns, int64_t stop_ns,
                   std::string_view name, std::string_view args);
  void add_flow(const char* phase, const Lane& lane, int64_t time_ns);

  const ExportSettings settings_;
  WholeCalls calls_;
  const WriteText* write_ = nullptr;
  std::optional<ExportNames> names_;
  std::vector<Held> held_;                        // by ThreadIndex
  std::vector<std::string> quoted_functions_;     // by FunctionId; empty: not yet made
  absl::flat_hash_map<Lane, std::string> lanes_;  // ,"pid":1,"tid":2
  absl::flat_hash_map<uint32_t, std::string> programs_;  // by pid; not yet written
  std::pair<ThreadIndex, const std::string*> recent_ = {kNoIndex, nullptr};
  uint32_t next_lane_ = kFirstLane;
  uint64_t flows_ = 0;
  bool has_events_ = false;
  std::string text_;  // that is not yet written
};

void ChromeExport::begin(Replay& replay, const WriteText& write) {
  write_ = &write;
  names_.emplace(replay.definitions(), replay.functions());
  add_programs();
  text_ = "{\"displayTimeUnit\":\"ns\"";
  if (settings_.session != nullptr) {
    const Session& session = *settings_.session;
    absl::StrAppend(&text_, ",\"otherData\":{", json_members([&](JsonWriter& json) {
      json.member("producer", "arctrace");
      json.member("start_realtime_ns", session.start_realtime_ns);
      json.member("host", session.host);
    }),
                    "}");
  }
  text_ += ",\"traceEvents\":[";
}

// A process that executes a program is another one to us and the same one to a viewer.
void ChromeExport::add_programs() {
  const auto processes = settings_.definitions->processes();
  for (ProcessIndex i = 0; i < processes.size(); ++i) {
    std::string& programs = programs_[processes[i].pid];
    const std::string program = names_->process(i);
    const bool is_same = programs == program || programs.ends_with(" > " + program);
    if (is_same || programs.size() > kExportNameMax) continue;
    if (!programs.empty()) programs += " > ";
    programs += program;
  }
}

// ---- Events --------------------------------------------------------------------------

// Microseconds, in which the format counts, to the nanosecond.
void ChromeExport::add_time(int64_t time_ns) {
  constexpr uint64_t kNsInUs = 1000;
  char digits[24];
  uint64_t ns = static_cast<uint64_t>(time_ns);
  if (time_ns < 0) {
    text_ += '-';
    ns = 0 - ns;
  }
  const auto whole = std::to_chars(digits, digits + sizeof digits, ns / kNsInUs);
  text_.append(digits, whole.ptr);
  const auto rest = static_cast<uint32_t>(ns % kNsInUs);
  if (rest == 0) return;
  const char fraction[] = {'.', static_cast<char>('0' + rest / 100),
                           static_cast<char>('0' + rest / 10 % 10),
                           static_cast<char>('0' + rest % 10)};
  text_.append(fraction, rest % 100 == 0 ? 2 : rest % 10 == 0 ? 3 : 4);
}

void ChromeExport::begin_event(const char* phase, const Lane& lane, int64_t time_ns) {
  const std::string& ids = ids_of(lane);
  text_ += has_events_ ? ",\n{\"ph\":\"" : "\n{\"ph\":\"";
  has_events_ = true;
  text_ += phase;
  text_ += '"';
  text_ += ids;
  text_ += ",\"ts\":";
  add_time(time_ns);
}

void ChromeExport::add_duration(int64_t start_ns, int64_t stop_ns) {
  text_ += ",\"dur\":";
  add_time(stop_ns - start_ns);
}

void ChromeExport::add_name(std::string_view quoted_name) {
  text_ += ",\"name\":";
  text_ += quoted_name;
}

void ChromeExport::end_event(std::string_view args) {
  if (!args.empty()) {
    text_ += ",\"args\":{";
    text_ += args;
    text_ += '}';
  }
  text_ += '}';
  if (text_.size() < kExportPiece) return;
  (*write_)(text_);
  text_.clear();
}

ChromeExport::Held& ChromeExport::held_by(ThreadIndex thread) {
  if (thread >= held_.size()) held_.resize(thread + size_t{1});
  return held_[thread];
}

void ChromeExport::write_held(Held& held) {
  if (!held.call.has_value()) return;
  // Nothing is added to the time of a call without duration; and complete events that
  // begin together are sorted by their durations, which begins are not.
  const FrameInfo& frame = held.call->frame;
  write_call(*held.call, !held.touches || frame.start_ns == frame.stop_ns);
  held.call.reset();
}

void ChromeExport::call_began(const FrameInfo& frame) {
  Held& held = held_by(frame.thread);
  if (!held.call.has_value()) return;
  held.touches |= held.call->frame.stop_ns == frame.start_ns;
  write_held(held);
}

void ChromeExport::call(const WholeCall& call) {
  Held& held = held_by(call.frame.thread);
  bool touches = false;
  if (held.call.has_value()) {
    touches = held.call->frame.stop_ns == call.frame.stop_ns;
    held.touches |= touches;
    write_held(held);
  }
  if (!call.has_ended) return write_call(call, false);
  held.call = call;
  held.touches = touches;
}

const std::string& ChromeExport::quoted_name(FunctionId function) {
  if (function >= quoted_functions_.size()) {
    quoted_functions_.resize(function + size_t{1});
  }
  std::string& name = quoted_functions_[function];
  if (name.empty()) name = quoted(names_->function(function));
  return name;
}

// `in_one`: a complete event.
void ChromeExport::write_call(const WholeCall& call, bool in_one) {
  const FrameInfo& frame = call.frame;
  const Lane lane{frame.thread,
                  frame.coroutine == 0 ? LaneKind::kOfCalls : LaneKind::kOfCoroutine,
                  frame.coroutine};
  begin_event(in_one ? "X" : "B", lane, frame.start_ns);
  if (in_one) add_duration(frame.start_ns, frame.stop_ns);
  add_name(quoted_name(frame.function));
  std::string args;
  if (!call.args.empty() || !call.retval.empty() || frame.flags != 0 || frame.count > 1) {
    args = json_members([&](JsonWriter& json) {
      json.members(call.args);
      json.members(call.retval);
      if (frame.count > 1) json.member("frames", frame.count);
      write_flags_json(frame.flags, json);
    });
  }
  end_event(args);
  if (in_one || !call.has_ended) return;
  // speedscope compares name and args with those of the begin.
  begin_event("E", lane, frame.stop_ns);
  add_name(quoted_name(frame.function));
  end_event(args);
}

void ChromeExport::point(const PointInfo& point) {
  const Lane lane{point.thread, LaneKind::kOfCalls, 0};
  std::string name;
  const std::string members = json_members([&](JsonWriter& json) {
    PointFields fields(json);
    if (point.kind == PointInfo::Kind::kRecord) {
      settings_.describe(*point.record, fields);
    }
    name = fields.name();
  });
  if (point.kind != PointInfo::Kind::kRecord) {
    name = point.kind == PointInfo::Kind::kOrphan ? "orphan exit" : "contradiction";
  } else if (name.empty()) {
    name = record_type_text(point.record->type);
  }
  const bool is_counter = point.record->type == ARCTRACE_TYPE_COUNTER;
  begin_event(is_counter ? "C" : "i", lane, point.time_ns);
  if (!is_counter) text_ += point.thread == kNoIndex ? ",\"s\":\"g\"" : ",\"s\":\"t\"";
  add_name(quoted(export_name(name)));
  end_event(members);
}

// A begin and an end. Stretches follow one another without a break: of complete events
// a viewer adds time and duration in floating point, and may find that the sum is after
// the next one's begin.
void ChromeExport::add_stretch(const Lane& lane, int64_t start_ns, int64_t stop_ns,
                               std::string_view name, std::string_view args) {
  begin_event("B", lane, start_ns);
  add_name(quoted(name));
  end_event(args);
  begin_event("E", lane, stop_ns);
  add_name(quoted(name));
  end_event(args);
}

// ---- On and off the CPU --------------------------------------------------------------

void ChromeExport::state_ended(const StateInfo& state) {
  const Lane lane{state.thread, LaneKind::kOfStates, 0};
  add_stretch(lane, state.start_ns, state.stop_ns, run_state_text(state), {});
  if (state.waker.thread == kNoIndex || state.waker.interrupt) return;
  // From the call of the thread that woke it to the stretch in which it is ready.
  ++flows_;
  add_flow("s", {state.waker.thread, LaneKind::kOfCalls, 0}, state.stop_ns);
  add_flow("f", lane, state.stop_ns);
}

void ChromeExport::add_flow(const char* phase, const Lane& lane, int64_t time_ns) {
  begin_event(phase, lane, time_ns);
  absl::StrAppend(&text_, ",\"bp\":\"e\",\"cat\":\"wake-up\",\"id\":", flows_);
  add_name("\"wakes\"");
  end_event();
}

// ---- Gaps ----------------------------------------------------------------------------

void ChromeExport::gap(const Gap& gap) {
  const Lane lane{gap.thread, LaneKind::kOfGaps, gap.cpu.value_or(UINT32_MAX)};
  const std::string args = json_members([&](JsonWriter& json) {
    json.member("records", gap.records);
    if (!gap.from_known) json.member("from", "not known");
  });
  add_stretch(lane, gap.from_known ? gap.from_ns : gap.to_ns, gap.to_ns,
              gap_reason_text(gap), args);
}

// ---- Lanes ---------------------------------------------------------------------------

const std::string& ChromeExport::ids_of(Lane lane) {
  const bool is_plain = lane.kind == LaneKind::kOfCalls;
  if (is_plain && recent_.second != nullptr && recent_.first == lane.thread) {
    return *recent_.second;
  }
  const auto found = lanes_.find(lane);
  if (found != lanes_.end()) {
    // Adding a lane would move what it points to, which ends this memory.
    if (is_plain) recent_ = {lane.thread, &found->second};
    return found->second;
  }
  const Definitions& definitions = *settings_.definitions;
  const Thread* thread = definitions.thread(lane.thread);
  const uint32_t pid = definitions.pid_of(lane.thread);
  const uint32_t tid = is_plain ? (thread == nullptr ? 0 : thread->tid) : next_lane_++;
  recent_ = {kNoIndex, nullptr};
  lanes_[lane] = absl::StrCat(",\"pid\":", pid, ",\"tid\":", tid);
  name_lane(lane, pid, tid);
  return lanes_[lane];
}

std::string ChromeExport::lane_name(const Lane& lane) const {
  const bool is_session = settings_.definitions->thread(lane.thread) == nullptr;
  std::string thread = is_session ? "session" : names_->thread(lane.thread);
  switch (lane.kind) {
    case LaneKind::kOfCalls:
      break;
    case LaneKind::kOfCoroutine:
      return absl::StrCat(thread, ": coroutine ", lane.number);
    case LaneKind::kOfStates:
      return absl::StrCat(thread, ": on and off the CPU");
    case LaneKind::kOfGaps:
      return lane.number == UINT32_MAX ? absl::StrCat(thread, ": gaps")
                                       : absl::StrCat("cpu ", lane.number, ": gaps");
  }
  return thread;
}

void ChromeExport::name_lane(const Lane& lane, uint32_t pid, uint32_t tid) {
  const auto add = [&](const char* name, const std::string& key,
                       const std::string& value) {
    absl::StrAppend(&text_, has_events_ ? "," : "", "\n{\"ph\":\"M\",\"pid\":", pid,
                    ",\"tid\":", tid, ",\"name\":\"", name, "\",\"args\":{\"", key,
                    "\":", value, "}}");
    has_events_ = true;
  };
  if (const auto program = programs_.find(pid); program != programs_.end()) {
    add("process_name", "name", quoted(program->second));
    programs_.erase(program);
  }
  add("thread_name", "name", quoted(lane_name(lane)));
  // A thread's lanes stand together.
  const uint64_t order =
      (uint64_t{lane.thread} + 1) << 2 | static_cast<uint32_t>(lane.kind);
  add("thread_sort_index", "sort_index", absl::StrCat(order & INT32_MAX));
}

absl::Status ChromeExport::finish() {
  for (Held& held : held_) write_held(held);
  calls_.finish();
  text_ += "\n]}\n";
  (*write_)(text_);
  text_.clear();
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Exporter> make_chrome_export(const ExportSettings& settings) {
  return std::make_unique<ChromeExport>(settings);
}

}  // namespace arctrace::reader
