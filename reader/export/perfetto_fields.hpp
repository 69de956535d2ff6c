// The numbers of the fields of Perfetto's protobuf messages that the exporter writes, by
// its public reference (TracePacket and what it contains), and the fields of a record as
// debug annotations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "reader/streams/field_sink.hpp"

namespace arctrace::reader::perfetto {

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
