// The messages of a Perfetto trace: the numbers of their fields, its packets, and its
// tracks.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reader/export/export_names.hpp"
#include "reader/export/exporter.hpp"
#include "reader/streams/field_sink.hpp"

namespace arctrace::reader::perfetto {

// The numbers of the fields of Perfetto's protobuf messages that the exporter writes, by
// its public reference (TracePacket and what it contains), and the fields of a record as
// debug annotations.
using Tag = uint32_t;

inline constexpr Tag kTracePacket = 1;

namespace packet {
inline constexpr Tag kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10,
                     kTrackEvent = 11, kInternedData = 12, kSequenceFlags = 13,
                     kTimestampClockId = 58, kDefaults = 59, kTrackDescriptor = 60;
inline constexpr uint32_t kStateCleared = 1, kNeedsState = 2;  // of kSequenceFlags
}  // namespace packet

namespace defaults {
inline constexpr Tag kTrackEvent = 11, kTimestampClockId = 58;
}  // namespace defaults

namespace snapshot {
inline constexpr Tag kClock = 1;
inline constexpr Tag kClockId = 1, kTimestamp = 2, kIsIncremental = 3;  // of a clock
}  // namespace snapshot

// Clocks by their ids; those from 64 on belong to one sequence.
inline constexpr uint32_t kRealtime = 1, kMonotonic = 3, kTraceClock = 6, kDeltas = 64;

namespace descriptor {
inline constexpr Tag kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5,
                     kCounter = 8;
}  // namespace descriptor
namespace process {
inline constexpr Tag kPid = 1, kCommandLine = 2, kName = 6;
}  // namespace process
namespace thread {
inline constexpr Tag kPid = 1, kTid = 2, kName = 5;
}  // namespace thread

namespace event {
inline constexpr Tag kAnnotation = 4, kType = 9, kNameId = 10, kTrack = 11, kName = 23,
                     kCounterValue = 30, kFlow = 47, kLastFlow = 48;
inline constexpr uint32_t kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4;  // of kType
}  // namespace event

namespace interned {
inline constexpr Tag kEventName = 2;
inline constexpr Tag kId = 1, kText = 2;  // of a name
}  // namespace interned

namespace annotation {
inline constexpr Tag kBool = 2, kUnsigned = 3, kSigned = 4, kDouble = 5, kString = 6,
                     kPointer = 7, kName = 10;
}  // namespace annotation

// Appends each field of a record to a TrackEvent as a debug annotation.
class AnnotationFields : public FieldSink {
 public:
  // `event` must outlive this object.
  explicit AnnotationFields(std::string& event) : event_(event) {}

  void title(std::string_view name, std::string_view value) override;
  void field(std::string_view name, const ShownValue& value) override;
  void begin_list(std::string_view name) override;
  void begin_object(std::string_view name) override;
  void end() override;
  void args(std::span<const std::byte> body, std::string_view names) override;
  void retval(std::span<const std::byte> body, std::string_view names) override;

 private:
  std::string& event_;
  std::string list_name_, list_;  // the list that is open
  bool in_list_ = false;
};

}  // namespace arctrace::reader::perfetto

namespace arctrace::reader {

// The packets of a Perfetto trace. Those of one lane are a sequence, within which names
// are written once, times are differences, and the track is a default: so a plain call
// takes 24 to 27 bytes.
class PerfettoPackets {
 public:
  // The sequence of packets that belong to no lane.
  static constexpr uint32_t kCommonSequence = 1;

  struct Sequence {
    uint32_t id = 0;
    uint64_t last_time = 0;               // from which the next difference is taken
    absl::flat_hash_set<uint64_t> names;  // ids that it has
  };

  // Writes the clocks. `write` must outlive this object. `session`: null if nothing is
  // known.
  void begin(const WriteText& write, const Session* session);
  void finish();

  // A new sequence, whose events are on `track`.
  Sequence add_sequence(uint64_t track);

  // `content`: fields of the TrackEvent. `name`: the text of `name_id`, if that is not 0.
  void write_event(Sequence& sequence, int64_t time_ns, uint32_t type,
                   std::string_view content, uint64_t name_id = 0,
                   const std::string* name = nullptr);

  // Any packet.
  void write(std::string_view packet);

 private:
  // Times of the trace's clock, which cannot be negative.
  uint64_t trace_time(int64_t time_ns) const;
  void write_plain_event(Sequence& sequence, uint64_t time, uint32_t type,
                         uint64_t name_id);
  void flush_piece();

  const WriteText* write_ = nullptr;
  uint64_t origin_ = 0;  // the trace's clock at the session's start
  uint32_t sequences_ = kCommonSequence;
  std::string event_, packet_;  // that are being made
  std::string bytes_;           // that are not yet written
};

// The tracks of a Perfetto trace: processes, threads, lanes of threads, counters. Each is
// described in the file before the first event on it.
class PerfettoTracks {
 public:
  struct Lane {
    PerfettoPackets::Sequence packets;
    uint64_t track = 0;
    uint64_t flow = 0;  // which the next slice ends; 0: none
  };

  // All must outlive this object. `session`: null if nothing is known.
  PerfettoTracks(const Definitions& definitions, const ExportNames& names,
                 const Session* session, PerfettoPackets& packets);

  // Good as long as this object.
  Lane& lane_of(const LaneKey& key);

  // The id of the track of a counter of this process, or of none (kNoIndex).
  uint64_t counter_track(ProcessIndex process, const std::string& name);

 private:
  uint64_t next_track() { return first_track_ + tracks_++; }
  void describe_lane(const LaneKey& key, uint64_t track);
  uint64_t process_track(ProcessIndex process);

  const Definitions& definitions_;
  const ExportNames& names_;
  PerfettoPackets& packets_;
  uint64_t first_track_ = 1;  // ids are meant to be unique among traces
  uint64_t tracks_ = 0;
  absl::flat_hash_map<LaneKey, std::unique_ptr<Lane>> lanes_;
  std::vector<Lane*> calls_of_;  // lanes of kOfCalls, by thread
  absl::flat_hash_map<ProcessIndex, uint64_t> process_tracks_;
  absl::flat_hash_map<std::pair<ProcessIndex, std::string>, uint64_t> counter_tracks_;
};

}  // namespace arctrace::reader
