// The packets of a Perfetto trace. Those of one lane are a sequence, within which names
// are written once, times are differences, and the track is a default: so a plain call
// takes 24 to 27 bytes.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "reader/export/exporter.hpp"

namespace arctrace::reader {

class PerfettoPackets {
 public:
  // The sequence of packets that belong to no lane.
  static constexpr uint32_t kCommonSequence = 1;

  struct Sequence {
    uint32_t id = 0;
    uint64_t last_time = 0;               // from which the next difference is taken
    absl::flat_hash_set<uint64_t> names;  // the ids of those that it has
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

}  // namespace arctrace::reader
