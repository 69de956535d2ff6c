// The tracks of a Perfetto trace: processes, threads, what belongs to a thread, counters.
// Each is described in the file before the first event on it.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reader/export/export_lanes.hpp"
#include "reader/export/perfetto_packets.hpp"

namespace arctrace::reader {

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
