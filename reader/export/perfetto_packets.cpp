#include "reader/export/perfetto_packets.hpp"

#include <algorithm>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>
#include <utility>

#include "reader/export/perfetto_fields.hpp"

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

// The same bytes as write_event() makes, in a third of the time: nearly all events have
// no content and a name that is known. They are stored where they stay, because bytes
// that were just stored one by one take long to be copied.
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

}  // namespace arctrace::reader
