// Calls, points, states and gaps of a replayed trace as Perfetto's track events.
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/export/export_formats.hpp"
#include "reader/export/export_names.hpp"
#include "reader/export/perfetto_packets.hpp"
#include "reader/render/labels.hpp"
#include "reader/streams/event_stream.hpp"
#include "reader/trace/format_names.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

using protozero::pbf_writer;
namespace pf = perfetto;

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
  using Lane = PerfettoTracks::Lane;

  std::string describe(const Record& record) override;
  void add(const StreamEvent& event) override;
  void state_ended(const StateInfo& state) override;

  void add_enter(const StreamEvent& event);
  void add_exit(const StreamEvent& event);
  void write_call_begin(Lane& lane, const StreamEvent& event, std::string_view content);
  void write_moment(const StreamEvent& event, uint32_t type, std::string_view content);

  const ExportSettings settings_;
  EventStream stream_;
  PerfettoPackets packets_;
  Replay* replay_ = nullptr;
  std::optional<ExportNames> names_;
  std::optional<PerfettoTracks> tracks_;
  GapLanes gaps_;
  uint32_t adopted_ = 0;
  uint64_t flows_ = 0;
  std::vector<std::string> state_names_;
};

void PerfettoExport::begin(Replay& replay, const WriteText& write) {
  replay_ = &replay;
  names_.emplace(replay.definitions(), replay.shown_names());
  tracks_.emplace(*settings_.definitions, *names_, settings_.session, packets_);
  packets_.begin(write, settings_.session);
}

// Returns the fields of the TrackEvent.
std::string PerfettoExport::describe(const Record& record) {
  std::string content;
  Untitled<pf::AnnotationFields> fields(content);
  settings_.describe(record, fields);
  const std::string name = safe_name(fields.title_text());
  if (record.type == ARCTRACE_TYPE_COUNTER) {
    const auto body = load_part_untrusted<arctrace_counter_body>(record.body);
    const Thread* thread = settings_.definitions->thread(record.thread);
    const uint64_t track =
        tracks_->counter_track(thread == nullptr ? kNoIndex : thread->process, name);
    content.clear();
    pbf_writer event(content);
    event.add_uint64(pf::event::kTrack, track);
    event.add_int64(pf::event::kCounterValue, body.value);
    return content;
  }
  const bool is_of_call =
      record.type == ARCTRACE_TYPE_ARGUMENTS || record.type == ARCTRACE_TYPE_RESULT;
  if (is_of_call) return content;
  pbf_writer(content).add_string(pf::event::kName,
                                 name.empty() ? record_type_text(record.type) : name);
  return content;
}

void PerfettoExport::write_call_begin(Lane& lane, const StreamEvent& event,
                                      std::string_view content) {
  // 0 is no id of a name, and FunctionId 0 no function.
  const uint64_t id = ExportNames::frame_id(event.function, event.flags);
  const auto write = [&](const std::string& name) {
    packets_.write_event(lane.packets, event.start_ns, pf::event::kBegin, content, id,
                         &name);
  };
  if (is_call(event.flags)) return write(names_->function(event.function));
  write(names_->frame(event.function, event.flags));
}

void PerfettoExport::add_enter(const StreamEvent& event) {
  Lane& lane = tracks_->lane_of(lane_of_calls(event.thread, event.coroutine));
  if (event.flags == 0 && event.count == 1) {
    return write_call_begin(lane, event, event.content);
  }
  std::string content = event.content;
  pf::AnnotationFields fields(content);
  if (event.count > 1) fields.number("frames", event.count);
  if (event.flags != 0) fields.text("unusual", flags_text(event.flags));
  write_call_begin(lane, event, content);
}

void PerfettoExport::add_exit(const StreamEvent& event) {
  LaneKey key = lane_of_calls(event.thread, event.coroutine);
  // An adopted call would not nest with calls that began at the same time.
  if (event.has_no_entry) key = {event.thread, LaneKind::kOfAdopted, ++adopted_};
  Lane& lane = tracks_->lane_of(key);
  if (event.has_no_entry) write_call_begin(lane, event, {});
  if (event.flags == 0 && event.coroutine == 0) {
    return packets_.write_event(lane.packets, event.stop_ns, pf::event::kEnd,
                                event.content);
  }
  std::string content = event.content;
  pf::AnnotationFields fields(content);
  if (event.flags != 0) fields.text("unusual", flags_text(event.flags));
  // A coroutine's call lasts while others run.
  if (event.coroutine != 0) fields.number("running_ns", event.duration_ns);
  packets_.write_event(lane.packets, event.stop_ns, pf::event::kEnd, content);
}

void PerfettoExport::write_moment(const StreamEvent& event, uint32_t type,
                                  std::string_view content) {
  packets_.write_event(tracks_->lane_of(lane_of_calls(event.thread, 0)).packets,
                       event.time_ns, type, content);
}

void PerfettoExport::add(const StreamEvent& event) {
  switch (event.kind) {
    case StreamEvent::Kind::kEnter:
      return add_enter(event);
    case StreamEvent::Kind::kExit:
      return add_exit(event);
    case StreamEvent::Kind::kRecord:
      return write_moment(
          event,
          event.type == ARCTRACE_TYPE_COUNTER ? pf::event::kCounter : pf::event::kInstant,
          event.content);
    case StreamEvent::Kind::kOrphanExit:
    case StreamEvent::Kind::kResync: {
      std::string content;
      pbf_writer(content).add_string(pf::event::kName,
                                     event.kind == StreamEvent::Kind::kOrphanExit
                                         ? kOrphanExitName
                                         : kContradictionName);
      return write_moment(event, pf::event::kInstant, content);
    }
  }
}

void PerfettoExport::state_ended(const StateInfo& state) {
  const std::string name = run_state_text(state);
  const auto found = std::find(state_names_.begin(), state_names_.end(), name);
  const auto id = static_cast<uint64_t>(found - state_names_.begin()) + 1;
  if (found == state_names_.end()) state_names_.push_back(name);
  Lane& lane = tracks_->lane_of({state.thread, LaneKind::kOfStates, 0});
  std::string content;
  if (lane.flow != 0) {
    pbf_writer(content).add_fixed64(pf::event::kLastFlow, std::exchange(lane.flow, 0));
  }
  if (state.waker.interrupt) {
    pf::AnnotationFields(content).boolean("woken_by_interrupt", true);
  }
  packets_.write_event(lane.packets, state.start_ns, pf::event::kBegin, content, id,
                       &name);
  packets_.write_event(lane.packets, state.stop_ns, pf::event::kEnd, {});
  if (state.waker.thread == kNoIndex || state.waker.interrupt) return;
  // The flow leads from the waking thread's call to the stretch in which this thread is
  // ready.
  lane.flow = ++flows_;
  content.clear();
  pbf_writer event(content);
  event.add_string(pf::event::kName,
                   absl::StrCat("wakes ", names_->thread(state.thread)));
  event.add_fixed64(pf::event::kFlow, lane.flow);
  packets_.write_event(tracks_->lane_of(lane_of_calls(state.waker.thread, 0)).packets,
                       state.stop_ns, pf::event::kInstant, content);
}

void PerfettoExport::gap(const Gap& gap) {
  const GapLanes::Stretch stretch = gaps_.add(gap);
  std::string content;
  {
    pf::AnnotationFields fields(content);
    if (gap.records.has_value()) fields.number("records", *gap.records);
    if (!gap.from_known) fields.text("from", "not known");
  }
  pbf_writer(content).add_string(pf::event::kName, gap_reason_text(gap));
  Lane& lane = tracks_->lane_of(stretch.lane);
  packets_.write_event(lane.packets, stretch.from_ns, pf::event::kBegin, content);
  packets_.write_event(lane.packets, stretch.to_ns, pf::event::kEnd, {});
}

absl::Status PerfettoExport::finish() {
  stream_.finish();
  for (const LeftOutLine& line :
       left_out_lines_with_events(*replay_, *names_, settings_)) {
    std::string content;
    pbf_writer(content).add_string(pf::event::kName, line.text);
    packets_.write_event(tracks_->lane_of(lane_of_calls(kNoIndex, 0)).packets,
                         line.from_ns, pf::event::kInstant, content);
  }
  packets_.finish();
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Exporter> make_perfetto_export(const ExportSettings& settings) {
  return std::make_unique<PerfettoExport>(settings);
}

}  // namespace arctrace::reader
