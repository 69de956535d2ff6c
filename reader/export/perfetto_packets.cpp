#include "reader/export/perfetto_packets.hpp"

#include <absl/functional/function_ref.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>
#include <utility>
#include <vector>

#include "reader/export/export_names.hpp"
#include "reader/trace/call_args.hpp"

namespace arctrace::reader::perfetto {

namespace {

using protozero::pbf_writer;

}  // namespace

void AnnotationFields::title(std::string_view name, std::string_view value) {
  text(name, value);
}

void AnnotationFields::field(std::string_view name, const ShownValue& value) {
  if (in_list_) {
    if (!list_.empty()) list_ += ", ";
    list_ += field_text(value);
    return;
  }
  pbf_writer event(event_);
  pbf_writer annotation(event, event::kAnnotation);
  annotation.add_string(annotation::kName, safe_name(name));
  switch (value.kind) {
    case ShownValue::Kind::kNumber:
      return annotation.add_uint64(annotation::kUnsigned, value.number);
    case ShownValue::Kind::kSigned:
      return annotation.add_int64(annotation::kSigned,
                                  static_cast<int64_t>(value.number));
    case ShownValue::Kind::kHex:
      return annotation.add_uint64(annotation::kPointer, value.number);
    case ShownValue::Kind::kBoolean:
      return annotation.add_bool(annotation::kBool, value.number != 0);
    case ShownValue::Kind::kReal:
      if (double real = 0; absl::SimpleAtod(std::string(value.text), &real)) {
        return annotation.add_double(annotation::kDouble, real);
      }
      break;
    case ShownValue::Kind::kText:
      break;
  }
  annotation.add_string(annotation::kString, safe_name(value.text));
}

void AnnotationFields::begin_list(std::string_view name) {
  in_list_ = true;
  list_name_ = name;
  list_.clear();
}

void AnnotationFields::begin_object(std::string_view /*name*/) {}

void AnnotationFields::end() {
  if (!in_list_) return;
  in_list_ = false;
  text(list_name_, list_);
}

void AnnotationFields::args(std::span<const std::byte> body, std::string_view names) {
  for (const CallArg& arg : decode_args(body, names)) {
    const std::string name =
        arg.name.empty() ? absl::StrCat("arg", arg.index) : std::string(arg.name);
    if (arg.kind == ARCTRACE_VALUE_SIGNED && arg.words.empty()) {
      signed_number(name, arg.signed_number);
    } else {
      text(name, arg_text(arg));
    }
  }
}

void AnnotationFields::retval(std::span<const std::byte> body, std::string_view names) {
  const std::vector<CallArg> values = decode_args(body, names);
  if (values.empty()) return;
  CallArg first = values.front();
  if (first.kind == ARCTRACE_VALUE_ERRNO) first.kind = ARCTRACE_VALUE_SIGNED;
  if (first.kind == ARCTRACE_VALUE_SIGNED && first.words.empty()) {
    signed_number("retval", first.signed_number);
  } else {
    text("retval", arg_text(first));
  }
  if (const int64_t error = errno_of(values); error != 0) {
    text("errno", errno_word(error));
  }
}

}  // namespace arctrace::reader::perfetto

namespace arctrace::reader {
namespace {

using protozero::pbf_writer;
namespace pf = perfetto;

// Adds a field to a message in memory, and moves to its end.
inline void put_field(char*& end, pf::Tag tag, uint64_t value) {
  constexpr unsigned kTypeBits = 3;  // a varint's type is 0
  end += protozero::write_varint(end, uint64_t{tag} << kTypeBits);
  end += protozero::write_varint(end, value);
}

}  // namespace

void PerfettoPackets::begin(const WriteText& write, const Session* session) {
  write_ = &write;
  uint64_t realtime = 0;
  uint64_t monotonic = 0;
  if (session != nullptr) {
    constexpr uint64_t kTimeMax = uint64_t{1} << 62;
    realtime = std::min(session->start_realtime_ns, kTimeMax);
    monotonic = std::min(session->start_monotonic_ns, kTimeMax);
  }
  origin_ = realtime;
  std::string made;
  {
    pbf_writer packet(made);
    packet.add_uint32(pf::packet::kSequenceId, kCommonSequence);
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
  this->write(made);
}

PerfettoPackets::Sequence PerfettoPackets::add_sequence(uint64_t track) {
  Sequence sequence;
  sequence.id = ++sequences_;
  sequence.last_time = origin_;
  std::string made;
  {
    pbf_writer packet(made);
    packet.add_uint32(pf::packet::kSequenceId, sequence.id);
    packet.add_uint32(pf::packet::kSequenceFlags, pf::packet::kStateCleared);
    {
      pbf_writer defaults(packet, pf::packet::kDefaults);
      defaults.add_uint32(pf::defaults::kTimestampClockId, pf::kDeltas);
      pbf_writer event(defaults, pf::defaults::kTrackEvent);
      event.add_uint64(pf::event::kTrack, track);
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
  write(made);
  return sequence;
}

void PerfettoPackets::write(std::string_view packet) {
  pbf_writer trace(bytes_);
  trace.add_message(pf::kTracePacket, packet.data(), packet.size());
  flush_piece();
}

void PerfettoPackets::flush_piece() {
  if (bytes_.size() < kExportPiece) return;
  (*write_)(bytes_);
  bytes_.clear();
}

void PerfettoPackets::finish() {
  (*write_)(bytes_);
  bytes_.clear();
}

uint64_t PerfettoPackets::trace_time(int64_t time_ns) const {
  const auto time = static_cast<int64_t>(origin_ + static_cast<uint64_t>(time_ns));
  return static_cast<uint64_t>(std::max<int64_t>(time, 0));
}

// Makes the same bytes as write_event(), in a third of the time: nearly all events have
// no content and a name that is known. The bytes are stored at their final place, because
// copying bytes that were just stored one by one takes long.
void PerfettoPackets::write_plain_event(Sequence& sequence, uint64_t time, uint32_t type,
                                        uint64_t name_id) {
  constexpr char kMessageType = 2;
  constexpr size_t kPacketMax = 64;  // ten bytes at most for each number
  const size_t size = bytes_.size();
  bytes_.resize(size + kPacketMax);
  char* const packet = bytes_.data() + size;
  // The packet's tag and length take a byte each, and so do the event's.
  char* end = packet + 2;
  put_field(end, pf::packet::kTimestamp, time - sequence.last_time);
  sequence.last_time = time;
  put_field(end, pf::packet::kSequenceId, sequence.id);
  if (name_id != 0) put_field(end, pf::packet::kSequenceFlags, pf::packet::kNeedsState);
  char* const event = end + 2;
  end = event;
  put_field(end, pf::event::kType, type);
  if (name_id != 0) put_field(end, pf::event::kNameId, name_id);
  event[-2] = static_cast<char>(pf::packet::kTrackEvent << 3 | kMessageType);
  event[-1] = static_cast<char>(end - event);
  packet[0] = static_cast<char>(pf::kTracePacket << 3 | kMessageType);
  packet[1] = static_cast<char>(end - packet - 2);
  bytes_.resize(static_cast<size_t>(end - bytes_.data()));
  flush_piece();
}

void PerfettoPackets::write_event(Sequence& sequence, int64_t time_ns, uint32_t type,
                                  std::string_view content, uint64_t name_id,
                                  const std::string* name) {
  const uint64_t time = trace_time(time_ns);
  const bool has_name = name_id == 0 || sequence.names.contains(name_id);
  if (content.empty() && has_name && time >= sequence.last_time) {
    return write_plain_event(sequence, time, type, name_id);
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
  if (time >= sequence.last_time) {
    packet.add_uint64(pf::packet::kTimestamp, time - sequence.last_time);
    sequence.last_time = time;
  } else {
    packet.add_uint64(pf::packet::kTimestamp, time);
    packet.add_uint32(pf::packet::kTimestampClockId, pf::kTraceClock);
  }
  packet.add_uint32(pf::packet::kSequenceId, sequence.id);
  if (name_id != 0) {
    // The end of a call needs the state of its sequence as well. But no packet of a file
    // is lost, so that the flag is left out there, which saves two bytes a call.
    packet.add_uint32(pf::packet::kSequenceFlags, pf::packet::kNeedsState);
    if (!has_name) {
      sequence.names.insert(name_id);
      pbf_writer data(packet, pf::packet::kInternedData);
      pbf_writer entry(data, pf::interned::kEventName);
      entry.add_uint64(pf::interned::kId, name_id);
      entry.add_string(pf::interned::kText, *name);
    }
  }
  packet.add_message(pf::packet::kTrackEvent, event_);
  write(packet_);
}

namespace {

// Returns a packet that describes a track. `parent`: 0: none. `add` adds what the track
// is.
std::string description(uint64_t track, uint64_t parent,
                        absl::FunctionRef<void(pbf_writer&)> add) {
  std::string made;
  pbf_writer packet(made);
  packet.add_uint32(pf::packet::kSequenceId, PerfettoPackets::kCommonSequence);
  pbf_writer descriptor(packet, pf::packet::kTrackDescriptor);
  descriptor.add_uint64(pf::descriptor::kUuid, track);
  if (parent != 0) descriptor.add_uint64(pf::descriptor::kParent, parent);
  add(descriptor);
  descriptor.commit();
  return made;
}

}  // namespace

PerfettoTracks::PerfettoTracks(const Definitions& definitions, const ExportNames& names,
                               const Session* session, PerfettoPackets& packets)
    : definitions_(definitions), names_(names), packets_(packets) {
  if (session == nullptr) return;
  uint64_t seed = 0;
  for (size_t i = 0; i < 7; ++i) seed = seed << 8 | session->id[i];
  first_track_ = (seed << 7) + 1;
}

PerfettoTracks::Lane& PerfettoTracks::lane_of(const LaneKey& key) {
  const bool is_calls = key.kind == LaneKind::kOfCalls && key.thread != kNoIndex;
  if (is_calls && key.thread < calls_of_.size() && calls_of_[key.thread] != nullptr) {
    return *calls_of_[key.thread];
  }
  std::unique_ptr<Lane>& known = lanes_[key];
  if (known != nullptr) return *known;
  known = std::make_unique<Lane>();
  Lane& lane = *known;
  if (is_calls) {
    if (key.thread >= calls_of_.size()) calls_of_.resize(key.thread + size_t{1});
    calls_of_[key.thread] = &lane;
  }
  lane.track = next_track();
  describe_lane(key, lane.track);
  lane.packets = packets_.add_sequence(lane.track);
  return lane;
}

void PerfettoTracks::describe_lane(const LaneKey& key, uint64_t track) {
  const Thread* thread = definitions_.thread(key.thread);
  uint64_t parent = 0;
  if (thread != nullptr) {
    parent = key.kind == LaneKind::kOfCalls ? process_track(thread->process)
                                            : lane_of(lane_of_calls(key.thread, 0)).track;
  }
  const std::string name = lane_name(key, definitions_, names_);
  packets_.write(description(track, parent, [&](pbf_writer& descriptor) {
    descriptor.add_string(pf::descriptor::kName, name);
    if (thread == nullptr || key.kind != LaneKind::kOfCalls) return;
    // To viewers the number 0 is that of the idle thread.
    if (thread->interrupts_of.has_value()) return;
    pbf_writer facts(descriptor, pf::descriptor::kThread);
    facts.add_int32(pf::thread::kPid,
                    static_cast<int32_t>(definitions_.pid_of(key.thread)));
    facts.add_int32(pf::thread::kTid, static_cast<int32_t>(thread->tid));
    facts.add_string(pf::thread::kName, name);
  }));
}

// Returns 0 if the process is not known.
uint64_t PerfettoTracks::process_track(ProcessIndex process) {
  const Process* facts = definitions_.process(process);
  if (facts == nullptr) return 0;
  uint64_t& track = process_tracks_[process];
  if (track != 0) return track;
  track = next_track();
  packets_.write(description(track, 0, [&](pbf_writer& descriptor) {
    pbf_writer process_facts(descriptor, pf::descriptor::kProcess);
    process_facts.add_int32(pf::process::kPid, static_cast<int32_t>(facts->pid));
    for (const std::string& argument : facts->arguments) {
      process_facts.add_string(pf::process::kCommandLine, safe_name(argument));
    }
    process_facts.add_string(pf::process::kName, names_.process(process));
  }));
  return track;
}

uint64_t PerfettoTracks::counter_track(ProcessIndex process, const std::string& name) {
  uint64_t& track = counter_tracks_[{process, name}];
  if (track != 0) return track;
  track = next_track();
  packets_.write(description(track, process_track(process), [&](pbf_writer& descriptor) {
    descriptor.add_string(pf::descriptor::kName, name);
    // An empty message, which says what the track is.
    descriptor.add_message(pf::descriptor::kCounter, std::string());
  }));
  return track;
}

}  // namespace arctrace::reader
