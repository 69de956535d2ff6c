// Each lane (a thread's calls, its states, its gaps ...) is one track and one sequence of
// packets: within a sequence names are written once, times are differences, and the
// track is a default, so that a plain call takes some 27 bytes.
#include "reader/export/perfetto_export.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/export/export_names.hpp"
#include "reader/export/perfetto_fields.hpp"
#include "reader/export/run_states.hpp"
#include "reader/render/frame_marks.hpp"
#include "reader/report/event_stream.hpp"
#include "reader/trace/format_names.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

using protozero::pbf_writer;
namespace pf = perfetto;

// Of the packets that belong to no lane.
constexpr uint32_t kCommonSequence = 1;

class PerfettoExport : public Exporter, private EventSink, private ScheduleListener {
 public:
  explicit PerfettoExport(const ExportSettings& settings)
      : settings_(settings), stream_(*this, settings.min_duration_ns) {}

  ReplayListener* call_listener() override { return &stream_; }
  ScheduleListener* schedule_listener() override { return this; }
  void begin(Replay& replay, const WriteText& write) override;
  void gap(const Gap& gap) override;
  absl::Status finish() override;

 private:
  enum class LaneKind : uint8_t {
    kOfCalls,
    kOfCoroutine,
    kOfAdopted,
    kOfStates,
    kOfGaps
  };
  struct LaneKey {
    ThreadIndex thread;
    LaneKind kind;
    uint32_t number;  // of the coroutine, the adopted call, or the CPU
    bool operator==(const LaneKey&) const = default;
    template <class H>
    friend H AbslHashValue(H hash, const LaneKey& lane) {
      return H::combine(std::move(hash), lane.thread, lane.kind, lane.number);
    }
  };
  struct Lane {
    uint32_t sequence = 0;
    uint64_t track = 0;
    uint64_t last_time = 0;         // from which the next difference is taken
    std::vector<bool> has_name;     // by the name's id: written in this sequence
    uint64_t flow = 0;              // which the next slice ends; 0: none
    int64_t last_stop = INT64_MIN;  // of its gaps
  };

  std::string describe(const Record& record) override;
  void add(const StreamEvent& event) override;
  void state_ended(const StateInfo& state) override;

  // Times of the trace's clock, which cannot be negative.
  uint64_t trace_time(int64_t time_ns) const {
    const auto time = static_cast<int64_t>(origin_ + static_cast<uint64_t>(time_ns));
    return static_cast<uint64_t>(std::max<int64_t>(time, 0));
  }

  Lane& lane_of(LaneKey key);
  Lane& add_lane(LaneKey key, Lane& lane);
  void describe_track(const LaneKey& key, uint64_t track);
  uint64_t process_track(ProcessIndex process);
  uint64_t counter_track(ProcessIndex process, const std::string& name);
  uint64_t next_track() { return first_track_ + tracks_++; }

  void write_event(Lane& lane, int64_t time_ns, uint32_t type, std::string_view content,
                   uint64_t name_id = 0, const std::string* name = nullptr);
  void write_plain_event(Lane& lane, uint64_t time, uint32_t type, uint64_t name_id);
  void write_packet(std::string_view packet);
  void flush_piece();
  void write_call_begin(Lane& lane, FunctionId function, int64_t time_ns,
                        std::string_view content);

  const ExportSettings settings_;
  EventStream stream_;
  const WriteText* write_ = nullptr;
  std::optional<ExportNames> names_;
  uint64_t origin_ = 0;       // the trace's clock at the session's start
  uint64_t first_track_ = 1;  // ids are meant to be unique among traces
  uint64_t tracks_ = 0;
  uint32_t sequences_ = kCommonSequence;
  uint32_t adopted_ = 0;
  uint64_t flows_ = 0;
  absl::flat_hash_map<LaneKey, std::unique_ptr<Lane>> lanes_;
  std::vector<Lane*> calls_of_;  // lanes of kOfCalls, by thread
  absl::flat_hash_map<ProcessIndex, uint64_t> process_tracks_;
  absl::flat_hash_map<std::pair<ProcessIndex, std::string>, uint64_t> counter_tracks_;
  std::vector<std::string> state_names_;
  std::string event_, packet_;  // that are being made
  std::string bytes_;           // that are not yet written
};

void PerfettoExport::begin(Replay& replay, const WriteText& write) {
  write_ = &write;
  names_.emplace(replay.definitions(), replay.functions());
  uint64_t realtime = 0;
  uint64_t monotonic = 0;
  if (settings_.session != nullptr) {
    constexpr uint64_t kTimeMax = uint64_t{1} << 62;
    const Session& session = *settings_.session;
    realtime = std::min(session.start_realtime_ns, kTimeMax);
    monotonic = std::min(session.start_monotonic_ns, kTimeMax);
    uint64_t seed = 0;
    for (size_t i = 0; i < 7; ++i) seed = seed << 8 | session.id[i];
    first_track_ = (seed << 7) + 1;
  }
  origin_ = realtime;
  pbf_writer packet(packet_);
  packet.add_uint32(pf::packet::kSequenceId, kCommonSequence);
  {
    pbf_writer snapshot(packet, pf::packet::kClockSnapshot);
    const std::pair<uint32_t, uint64_t> clocks[] = {{pf::kTraceClock, origin_},
                                                    {pf::kRealtime, realtime},
                                                    {pf::kMonotonic, monotonic}};
    for (const auto& [id, time] : clocks) {
      pbf_writer clock(snapshot, pf::snapshot::kClock);
      clock.add_uint32(pf::snapshot::kClockId, id);
      clock.add_uint64(pf::snapshot::kTimestamp, time);
    }
  }
  write_packet(packet_);
}

// ---- Packets -------------------------------------------------------------------------

void PerfettoExport::write_packet(std::string_view packet) {
  pbf_writer trace(bytes_);
  trace.add_message(pf::kTracePacket, packet.data(), packet.size());
  flush_piece();
}

void PerfettoExport::flush_piece() {
  if (bytes_.size() < kExportPiece) return;
  (*write_)(bytes_);
  bytes_.clear();
}

// Adds a field to a message in memory, and moves to its end.
inline void put_field(char*& end, pf::Tag tag, uint64_t value) {
  constexpr unsigned kTypeBits = 3;  // a varint's type is 0
  end += protozero::write_varint(end, uint64_t{tag} << kTypeBits);
  end += protozero::write_varint(end, value);
}

// The same bytes as write_event() makes, in a third of the time: nearly all events have
// no content and a name that is known.
void PerfettoExport::write_plain_event(Lane& lane, uint64_t time, uint32_t type,
                                       uint64_t name_id) {
  constexpr char kMessageType = 2;
  constexpr size_t kPacketMax = 64;  // ten bytes at most for each number
  char event[kPacketMax];
  char* event_end = event;
  put_field(event_end, pf::event::kType, type);
  if (name_id != 0) put_field(event_end, pf::event::kNameId, name_id);
  const auto event_size = static_cast<size_t>(event_end - event);

  // The packet's tag and length take a byte each.
  char packet[2 * kPacketMax];
  char* end = packet + 2;
  put_field(end, pf::packet::kTimestamp, time - lane.last_time);
  lane.last_time = time;
  put_field(end, pf::packet::kSequenceId, lane.sequence);
  if (name_id != 0) put_field(end, pf::packet::kSequenceFlags, pf::packet::kNeedsState);
  *end++ = static_cast<char>(pf::packet::kTrackEvent << 3 | kMessageType);
  *end++ = static_cast<char>(event_size);
  end = std::copy(event, event_end, end);
  packet[0] = static_cast<char>(pf::kTracePacket << 3 | kMessageType);
  packet[1] = static_cast<char>(end - packet - 2);
  bytes_.append(packet, static_cast<size_t>(end - packet));
  flush_piece();
}

// `content`: fields of the TrackEvent. `name`: the text of `name_id`, if that is not 0.
void PerfettoExport::write_event(Lane& lane, int64_t time_ns, uint32_t type,
                                 std::string_view content, uint64_t name_id,
                                 const std::string* name) {
  const uint64_t time = trace_time(time_ns);
  const bool has_name =
      name_id == 0 || (name_id < lane.has_name.size() && lane.has_name[name_id]);
  if (content.empty() && has_name && time >= lane.last_time) {
    return write_plain_event(lane, time, type, name_id);
  }
  event_.clear();
  packet_.clear();
  {
    pbf_writer event(event_);
    event.add_uint32(pf::event::kType, type);
    if (name_id != 0) event.add_uint64(pf::event::kNameId, name_id);
  }
  event_ += content;
  pbf_writer packet(packet_);
  if (time >= lane.last_time) {
    packet.add_uint64(pf::packet::kTimestamp, time - lane.last_time);
    lane.last_time = time;
  } else {
    packet.add_uint64(pf::packet::kTimestamp, time);
    packet.add_uint32(pf::packet::kTimestampClockId, pf::kTraceClock);
  }
  packet.add_uint32(pf::packet::kSequenceId, lane.sequence);
  if (name_id != 0) {
    // An end needs the state of its sequence no less; but no packet of a file is lost,
    // so that two bytes of each call are better saved.
    packet.add_uint32(pf::packet::kSequenceFlags, pf::packet::kNeedsState);
    if (!has_name) {
      if (name_id >= lane.has_name.size()) lane.has_name.resize(name_id + 1);
      lane.has_name[name_id] = true;
      pbf_writer data(packet, pf::packet::kInternedData);
      pbf_writer entry(data, pf::interned::kEventName);
      entry.add_uint64(pf::interned::kId, name_id);
      entry.add_string(pf::interned::kText, *name);
    }
  }
  packet.add_message(pf::packet::kTrackEvent, event_);
  write_packet(packet_);
}

// ---- Calls and points
// ------------------------------------------------------------------

// Fields of the TrackEvent.
std::string PerfettoExport::describe(const Record& record) {
  std::string content;
  if (record.type == ARCTRACE_TYPE_COUNTER) {
    const auto body = load_part_untrusted<arctrace_counter_body>(record.body);
    pf::AnnotationFields fields(content);
    settings_.describe(record, fields);
    const Thread* thread = settings_.definitions->thread(record.thread);
    const uint64_t track = counter_track(thread == nullptr ? kNoIndex : thread->process,
                                         export_name(fields.title_text()));
    content.clear();
    pbf_writer event(content);
    event.add_uint64(pf::event::kTrack, track);
    event.add_int64(pf::event::kCounterValue, body.value);
    return content;
  }
  std::string name;
  {
    pf::AnnotationFields fields(content);
    settings_.describe(record, fields);
    name = fields.title_text();
  }
  const bool is_of_call =
      record.type == ARCTRACE_TYPE_ARGUMENTS || record.type == ARCTRACE_TYPE_RESULT;
  if (is_of_call) return content;
  pbf_writer event(content);
  event.add_string(pf::event::kName,
                   name.empty() ? record_type_text(record.type) : export_name(name));
  return content;
}

void PerfettoExport::write_call_begin(Lane& lane, FunctionId function, int64_t time_ns,
                                      std::string_view content) {
  // 0 is no id of a name, and FunctionId 0 no function.
  write_event(lane, time_ns, pf::event::kBegin, content, function,
              &names_->function(function));
}

void PerfettoExport::add(const StreamEvent& event) {
  switch (event.kind) {
    case StreamEvent::Kind::kEnter: {
      Lane& lane =
          lane_of({event.thread,
                   event.coroutine == 0 ? LaneKind::kOfCalls : LaneKind::kOfCoroutine,
                   event.coroutine});
      if (event.flags == 0 && event.count == 1) {
        return write_call_begin(lane, event.function, event.start_ns, event.content);
      }
      std::string content = event.content;
      pf::AnnotationFields fields(content);
      if (event.count > 1) fields.number("frames", event.count);
      if (event.flags != 0) fields.text("unusual", flags_text(event.flags));
      return write_call_begin(lane, event.function, event.start_ns, content);
    }
    case StreamEvent::Kind::kExit: {
      LaneKey key{event.thread,
                  event.coroutine == 0 ? LaneKind::kOfCalls : LaneKind::kOfCoroutine,
                  event.coroutine};
      // It would not nest with what began at the same time.
      if (event.has_no_entry) key = {event.thread, LaneKind::kOfAdopted, ++adopted_};
      Lane& lane = lane_of(key);
      if (event.has_no_entry) {
        write_call_begin(lane, event.function, event.start_ns, {});
      }
      if (event.flags == 0 && event.coroutine == 0) {
        return write_event(lane, event.stop_ns, pf::event::kEnd, event.content);
      }
      std::string content = event.content;
      pf::AnnotationFields fields(content);
      if (event.flags != 0) fields.text("unusual", flags_text(event.flags));
      // A coroutine's call lasts while others run.
      if (event.coroutine != 0) fields.number("running_ns", event.delta_ns);
      return write_event(lane, event.stop_ns, pf::event::kEnd, content);
    }
    case StreamEvent::Kind::kRecord:
      return write_event(
          lane_of({event.thread, LaneKind::kOfCalls, 0}), event.time_ns,
          event.type == ARCTRACE_TYPE_COUNTER ? pf::event::kCounter : pf::event::kInstant,
          event.content);
    case StreamEvent::Kind::kOrphanExit:
    case StreamEvent::Kind::kResync: {
      std::string content;
      pbf_writer(content).add_string(
          pf::event::kName,
          event.kind == StreamEvent::Kind::kOrphanExit ? "orphan exit" : "contradiction");
      return write_event(lane_of({event.thread, LaneKind::kOfCalls, 0}), event.time_ns,
                         pf::event::kInstant, content);
    }
  }
}

// ---- On and off the CPU, gaps --------------------------------------------------------

void PerfettoExport::state_ended(const StateInfo& state) {
  const std::string name = run_state_text(state);
  const auto found = std::find(state_names_.begin(), state_names_.end(), name);
  const auto id = static_cast<uint64_t>(found - state_names_.begin()) + 1;
  if (found == state_names_.end()) state_names_.push_back(name);
  Lane& lane = lane_of({state.thread, LaneKind::kOfStates, 0});
  std::string content;
  if (lane.flow != 0) {
    pbf_writer(content).add_fixed64(pf::event::kLastFlow, std::exchange(lane.flow, 0));
  }
  if (state.waker.interrupt) {
    pf::AnnotationFields(content).boolean("woken_by_interrupt", true);
  }
  write_event(lane, state.start_ns, pf::event::kBegin, content, id, &name);
  write_event(lane, state.stop_ns, pf::event::kEnd, {});
  if (state.waker.thread == kNoIndex || state.waker.interrupt) return;
  // From the call of the thread that woke it to the stretch in which it is ready.
  lane.flow = ++flows_;
  content.clear();
  pbf_writer event(content);
  event.add_string(pf::event::kName,
                   absl::StrCat("wakes ", names_->thread(state.thread)));
  event.add_fixed64(pf::event::kFlow, lane.flow);
  write_event(lane_of({state.waker.thread, LaneKind::kOfCalls, 0}), state.stop_ns,
              pf::event::kInstant, content);
}

void PerfettoExport::gap(const Gap& gap) {
  Lane& lane = lane_of({gap.thread, LaneKind::kOfGaps, gap.cpu.value_or(UINT32_MAX)});
  // Gaps that overlap would not nest.
  const int64_t from = std::clamp(gap.from_known ? gap.from_ns : gap.to_ns,
                                  std::min(lane.last_stop, gap.to_ns), gap.to_ns);
  lane.last_stop = std::max(lane.last_stop, gap.to_ns);
  std::string content;
  {
    pf::AnnotationFields fields(content);
    if (gap.records.has_value()) fields.number("records", *gap.records);
    if (!gap.from_known) fields.text("from", "not known");
  }
  pbf_writer(content).add_string(pf::event::kName, gap_reason_text(gap));
  write_event(lane, from, pf::event::kBegin, content);
  write_event(lane, gap.to_ns, pf::event::kEnd, {});
}

// ---- Tracks
// ----------------------------------------------------------------------------

PerfettoExport::Lane& PerfettoExport::lane_of(LaneKey key) {
  const bool is_calls = key.kind == LaneKind::kOfCalls && key.thread != kNoIndex;
  if (is_calls && key.thread < calls_of_.size() && calls_of_[key.thread] != nullptr) {
    return *calls_of_[key.thread];
  }
  std::unique_ptr<Lane>& lane = lanes_[key];
  if (lane != nullptr) return *lane;
  lane = std::make_unique<Lane>();
  Lane& added = *lane;
  if (is_calls) {
    if (key.thread >= calls_of_.size()) calls_of_.resize(key.thread + size_t{1});
    calls_of_[key.thread] = &added;
  }
  return add_lane(key, added);
}

PerfettoExport::Lane& PerfettoExport::add_lane(LaneKey key, Lane& lane) {
  lane.sequence = ++sequences_;
  lane.track = next_track();
  lane.last_time = origin_;
  describe_track(key, lane.track);
  std::string made;
  {
    pbf_writer packet(made);
    packet.add_uint32(pf::packet::kSequenceId, lane.sequence);
    packet.add_uint32(pf::packet::kSequenceFlags, pf::packet::kStateCleared);
    {
      pbf_writer defaults(packet, pf::packet::kDefaults);
      defaults.add_uint32(pf::defaults::kTimestampClockId, pf::kDeltas);
      pbf_writer event(defaults, pf::defaults::kTrackEvent);
      event.add_uint64(pf::event::kTrack, lane.track);
    }
    pbf_writer snapshot(packet, pf::packet::kClockSnapshot);
    {
      pbf_writer clock(snapshot, pf::snapshot::kClock);
      clock.add_uint32(pf::snapshot::kClockId, pf::kTraceClock);
      clock.add_uint64(pf::snapshot::kTimestamp, origin_);
    }
    pbf_writer clock(snapshot, pf::snapshot::kClock);
    clock.add_uint32(pf::snapshot::kClockId, pf::kDeltas);
    clock.add_uint64(pf::snapshot::kTimestamp, origin_);
    clock.add_bool(pf::snapshot::kIsIncremental, true);
  }
  write_packet(made);
  return lane;
}

void PerfettoExport::describe_track(const LaneKey& key, uint64_t track) {
  const Definitions& definitions = *settings_.definitions;
  const Thread* thread = definitions.thread(key.thread);
  uint64_t parent = 0;
  if (thread != nullptr && key.kind != LaneKind::kOfCalls) {
    parent = lane_of({key.thread, LaneKind::kOfCalls, 0}).track;
  } else if (thread != nullptr) {
    parent = process_track(thread->process);
  }
  std::string name;
  switch (key.kind) {
    case LaneKind::kOfCalls:
      name = thread == nullptr ? "session" : names_->thread(key.thread);
      break;
    case LaneKind::kOfCoroutine:
      name = absl::StrCat("coroutine ", key.number);
      break;
    case LaneKind::kOfAdopted:
      name = "entered before tracing";
      break;
    case LaneKind::kOfStates:
      name = "on and off the CPU";
      break;
    case LaneKind::kOfGaps:
      name =
          key.number == UINT32_MAX ? "gaps" : absl::StrCat("cpu ", key.number, " gaps");
      break;
  }
  std::string made;
  {
    pbf_writer packet(made);
    packet.add_uint32(pf::packet::kSequenceId, kCommonSequence);
    pbf_writer descriptor(packet, pf::packet::kTrackDescriptor);
    descriptor.add_uint64(pf::descriptor::kUuid, track);
    if (parent != 0) descriptor.add_uint64(pf::descriptor::kParent, parent);
    descriptor.add_string(pf::descriptor::kName, name);
    if (thread != nullptr && key.kind == LaneKind::kOfCalls) {
      pbf_writer facts(descriptor, pf::descriptor::kThread);
      facts.add_int32(pf::thread::kPid,
                      static_cast<int32_t>(definitions.pid_of(key.thread)));
      facts.add_int32(pf::thread::kTid, static_cast<int32_t>(thread->tid));
      facts.add_string(pf::thread::kName, name);
    }
  }
  write_packet(made);
}

// 0: the process is not known.
uint64_t PerfettoExport::process_track(ProcessIndex process) {
  const Process* facts = settings_.definitions->process(process);
  if (facts == nullptr) return 0;
  uint64_t& track = process_tracks_[process];
  if (track != 0) return track;
  track = next_track();
  std::string made;
  {
    pbf_writer packet(made);
    packet.add_uint32(pf::packet::kSequenceId, kCommonSequence);
    pbf_writer descriptor(packet, pf::packet::kTrackDescriptor);
    descriptor.add_uint64(pf::descriptor::kUuid, track);
    pbf_writer process_facts(descriptor, pf::descriptor::kProcess);
    process_facts.add_int32(pf::process::kPid, static_cast<int32_t>(facts->pid));
    for (const std::string& argument : facts->arguments) {
      process_facts.add_string(pf::process::kCommandLine, export_name(argument));
    }
    process_facts.add_string(pf::process::kName, names_->process(process));
  }
  write_packet(made);
  return track;
}

uint64_t PerfettoExport::counter_track(ProcessIndex process, const std::string& name) {
  uint64_t& track = counter_tracks_[{process, name}];
  if (track != 0) return track;
  track = next_track();
  const uint64_t parent = process_track(process);
  std::string made;
  {
    pbf_writer packet(made);
    packet.add_uint32(pf::packet::kSequenceId, kCommonSequence);
    pbf_writer descriptor(packet, pf::packet::kTrackDescriptor);
    descriptor.add_uint64(pf::descriptor::kUuid, track);
    if (parent != 0) descriptor.add_uint64(pf::descriptor::kParent, parent);
    descriptor.add_string(pf::descriptor::kName, name);
    // An empty message, which says what the track is.
    descriptor.add_message(pf::descriptor::kCounter, std::string());
  }
  write_packet(made);
  return track;
}

absl::Status PerfettoExport::finish() {
  stream_.finish();
  (*write_)(bytes_);
  bytes_.clear();
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Exporter> make_perfetto_export(const ExportSettings& settings) {
  return std::make_unique<PerfettoExport>(settings);
}

}  // namespace arctrace::reader
