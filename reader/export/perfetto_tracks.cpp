#include "reader/export/perfetto_tracks.hpp"

#include <absl/functional/function_ref.h>

#include <protozero/pbf_writer.hpp>

#include "reader/export/perfetto_fields.hpp"

namespace arctrace::reader {
namespace {

using protozero::pbf_writer;
namespace pf = perfetto;

// A packet that describes a track. `parent`: 0: none. `add` adds what the track is.
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

// 0: the process is not known.
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
