// --to=perfetto: packets as protozero decodes them. In tests/integration/test_export.py
// protoc decodes them by Perfetto's schema.
#include <doctest/doctest.h>

#include <map>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

#include "reader/export/perfetto_packets.hpp"
#include "tests/support/kernel_script.hpp"
#include "tests/support/random.hpp"
#include "tests/unit/export/exported.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;
namespace pf = arctrace::reader::perfetto;

namespace {

struct TrackEvent {
  uint64_t track = 0, time = 0;
  uint32_t type = 0;
  std::string name;
  int64_t counter = 0;
  uint64_t flow = 0, last_flow = 0;
  std::map<std::string, std::string> notes;  // texts and numbers among the annotations
};

// A consumer's state of a sequence of packets.
struct Sequence {
  uint64_t track = 0, last_time = 0;
  bool is_incremental = false;
  std::map<uint64_t, std::string> names;
};

struct Decoded {
  std::vector<TrackEvent> events;
  std::map<uint64_t, std::string> tracks;  // names
  std::map<uint64_t, uint64_t> parents;

  std::string track_of(const TrackEvent& event) const { return tracks.at(event.track); }
};

std::string bytes_of(protozero::pbf_reader& reader) {
  return std::string(reader.get_view());
}

void decode_annotation(const std::string& bytes, TrackEvent& event) {
  std::string name;
  std::string value;
  for (protozero::pbf_reader r(bytes); r.next();) {
    if (r.tag() == pf::annotation::kName) {
      name = bytes_of(r);
    } else if (r.tag() == pf::annotation::kString) {
      value = bytes_of(r);
    } else if (r.tag() == pf::annotation::kSigned) {
      value = std::to_string(r.get_int64());
    } else if (r.tag() == pf::annotation::kUnsigned) {
      value = std::to_string(r.get_uint64());
    } else {
      r.skip();
    }
  }
  event.notes[name] = value;
}

TrackEvent decode_event(const std::string& bytes, const Sequence& sequence) {
  TrackEvent event;
  event.track = sequence.track;
  for (protozero::pbf_reader r(bytes); r.next();) {
    switch (r.tag()) {
      case pf::event::kType:
        event.type = r.get_uint32();
        break;
      case pf::event::kNameId:
        event.name = sequence.names.at(r.get_uint64());
        break;
      case pf::event::kName:
        event.name = bytes_of(r);
        break;
      case pf::event::kTrack:
        event.track = r.get_uint64();
        break;
      case pf::event::kCounterValue:
        event.counter = r.get_int64();
        break;
      case pf::event::kFlow:
        event.flow = r.get_fixed64();
        break;
      case pf::event::kLastFlow:
        event.last_flow = r.get_fixed64();
        break;
      case pf::event::kAnnotation:
        decode_annotation(bytes_of(r), event);
        break;
      default:
        r.skip();
    }
  }
  return event;
}

void decode_names(const std::string& bytes, Sequence& sequence) {
  for (protozero::pbf_reader data(bytes); data.next();) {
    REQUIRE(data.tag() == pf::interned::kEventName);
    uint64_t id = 0;
    std::string text;
    for (protozero::pbf_reader r(data.get_view()); r.next();) {
      if (r.tag() == pf::interned::kId) {
        id = r.get_uint64();
      } else {
        text = bytes_of(r);
      }
    }
    CHECK(id != 0);
    CHECK(sequence.names.emplace(id, text).second);
  }
}

void decode_snapshot(const std::string& bytes, Sequence& sequence) {
  for (protozero::pbf_reader clocks(bytes); clocks.next();) {
    std::map<uint32_t, uint64_t> clock;
    for (protozero::pbf_reader r(clocks.get_view()); r.next();) {
      const uint32_t tag = r.tag();
      clock[tag] = r.get_uint64();
    }
    if (clock[pf::snapshot::kClockId] != pf::kDeltas) continue;
    CHECK(clock[pf::snapshot::kIsIncremental] == 1);
    sequence.is_incremental = true;
    sequence.last_time = clock[pf::snapshot::kTimestamp];
  }
}

void decode_track(const std::string& bytes, Decoded& decoded) {
  uint64_t uuid = 0;
  uint64_t parent = 0;
  std::string name;
  for (protozero::pbf_reader r(bytes); r.next();) {
    if (r.tag() == pf::descriptor::kUuid) {
      uuid = r.get_uint64();
    } else if (r.tag() == pf::descriptor::kParent) {
      parent = r.get_uint64();
    } else if (r.tag() == pf::descriptor::kName) {
      name = bytes_of(r);
    } else {
      r.skip();
    }
  }
  CHECK(uuid != 0);
  if (parent != 0) CHECK(decoded.tracks.contains(parent));
  decoded.parents[uuid] = parent;
  CHECK(decoded.tracks.emplace(uuid, name).second);
}

Decoded decode(const std::string& trace) {
  Decoded decoded;
  std::map<uint32_t, Sequence> sequences;
  for (protozero::pbf_reader packets(trace); packets.next();) {
    std::map<uint32_t, uint64_t> numbers;
    std::map<uint32_t, std::string> messages;
    for (protozero::pbf_reader r(packets.get_view()); r.next();) {
      const uint32_t tag = r.tag();
      if (r.wire_type() == protozero::pbf_wire_type::varint) {
        numbers[tag] = r.get_uint64();
      } else {
        messages[tag] = bytes_of(r);
      }
    }
    const auto id = static_cast<uint32_t>(numbers.at(pf::packet::kSequenceId));
    if (numbers[pf::packet::kSequenceFlags] == pf::packet::kStateCleared) {
      sequences[id] = {};
    }
    Sequence& sequence = sequences[id];
    if (messages.contains(pf::packet::kDefaults)) {
      for (protozero::pbf_reader r(messages[pf::packet::kDefaults]); r.next();) {
        if (r.tag() == pf::defaults::kTimestampClockId) {
          CHECK(r.get_uint32() == pf::kDeltas);
          continue;
        }
        protozero::pbf_reader event(r.get_view());
        REQUIRE(event.next(pf::event::kTrack));
        sequence.track = event.get_uint64();
      }
    }
    if (messages.contains(pf::packet::kClockSnapshot)) {
      decode_snapshot(messages[pf::packet::kClockSnapshot], sequence);
    }
    if (messages.contains(pf::packet::kTrackDescriptor)) {
      decode_track(messages[pf::packet::kTrackDescriptor], decoded);
    }
    if (messages.contains(pf::packet::kInternedData)) {
      decode_names(messages[pf::packet::kInternedData], sequence);
    }
    if (!messages.contains(pf::packet::kTrackEvent)) continue;
    TrackEvent event = decode_event(messages[pf::packet::kTrackEvent], sequence);
    event.time = numbers.at(pf::packet::kTimestamp);
    if (!numbers.contains(pf::packet::kTimestampClockId)) {
      CHECK(sequence.is_incremental);
      event.time = sequence.last_time += event.time;
    }
    decoded.events.push_back(event);
  }
  return decoded;
}

// Calls by name: number and time of those that ended; and by "NAME open" of those that
// did not.
std::map<std::string, Sums> calls_of(const Decoded& decoded) {
  std::map<std::string, Sums> sums;
  std::map<uint64_t, std::vector<const TrackEvent*>> stacks;
  for (const TrackEvent& event : decoded.events) {
    std::vector<const TrackEvent*>& stack = stacks[event.track];
    if (event.type == pf::event::kBegin) stack.push_back(&event);
    if (event.type != pf::event::kEnd) continue;
    REQUIRE(!stack.empty());
    CHECK(event.time >= stack.back()->time);
    Sums& sum = sums[stack.back()->name];
    ++sum.calls;
    sum.total_ns += event.time - stack.back()->time;
    stack.pop_back();
  }
  for (const auto& [track, stack] : stacks) {
    for (const TrackEvent* event : stack) ++sums[event->name + " open"].calls;
  }
  return sums;
}

}  // namespace

TEST_CASE("perfetto: calls nest on their thread's track, and sums are right") {
  const RecordScript script = treetest();
  const Decoded decoded = decode(Exported(script).to("perfetto"));
  const auto calls = calls_of(decoded);
  CHECK(calls.at("main") == Sums{1, 0, 100'000});
  CHECK(calls.at("mainB") == Sums{1, 0, 70'000});
  CHECK(calls.at("mainBB") == Sums{1, 0, 40'000});
  const uint64_t track = decoded.events.front().track;
  CHECK(decoded.tracks.at(track) == "treetest");
  CHECK(decoded.parents.at(track) != 0);
}

TEST_CASE("perfetto: a plain call takes at most 30 bytes") {
  const auto size_of = [](int calls) {
    RecordScript script;
    const ThreadIndex thread = script.program(7, "prog");
    for (int64_t i = 0; i < calls; ++i) {
      script.enter(thread, 2000 * i, "f");
      script.exit(thread, 2000 * i + 900);
    }
    return Exported(script).to("perfetto").size();
  };
  CHECK(size_of(1001) - size_of(1) <= 30'000);
}

TEST_CASE("perfetto: a call that did not end has no end") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "prog");
  script.enter(thread, 1000, "main");
  script.enter(thread, 1500, "f");
  script.exit(thread, 2000);
  const auto calls = calls_of(decode(Exported(script).to("perfetto")));
  CHECK(calls.at("main open").calls == 1);
  CHECK(calls.at("f") == Sums{1, 0, 500});
  CHECK(calls.size() == 2);
}

TEST_CASE("perfetto: a call without an entry is whole, on a track of its own") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "prog");
  script.enter(thread, 1000, "f");
  script.exit(thread, 2000);
  script.exit_named(thread, 3000, "main");
  const Decoded decoded = decode(Exported(script).to("perfetto"));
  const auto calls = calls_of(decoded);
  CHECK(calls.at("f") == Sums{1, 0, 1000});
  CHECK(calls.at("main") == Sums{1, 0, 2000});
}

TEST_CASE("perfetto: args, retval, counters, instants") {
  const RecordScript script = call_with_points();
  const Decoded decoded = decode(Exported(script).to("perfetto"));
  REQUIRE(decoded.events.size() == 5);
  CHECK(decoded.events[0].notes.at("arg1") == "5");
  CHECK(decoded.events[1].type == pf::event::kCounter);
  CHECK(decoded.events[1].counter == 12);
  CHECK(decoded.events[2].counter == 13);
  CHECK(decoded.track_of(decoded.events[2]) == "queue");
  CHECK(decoded.events[3].type == pf::event::kInstant);
  CHECK(decoded.events[3].name == "now");
  CHECK(decoded.events[4].notes.at("retval") == "7");
}

TEST_CASE("perfetto: states and wake-ups") {
  const KernelScript s = one_wake_up();
  const Decoded decoded = decode(Exported(s.script).to("perfetto"));
  const auto calls = calls_of(decoded);
  CHECK(calls.at("blocked: sleeps") == Sums{1, 0, 200});
  CHECK(calls.at("ready: woken") == Sums{1, 0, 50});
  uint64_t from = 0;
  uint64_t to = 0;
  for (const TrackEvent& event : decoded.events) {
    if (event.flow != 0) {
      from = event.flow;
      CHECK(decoded.track_of(event) == "second");
      CHECK(event.time == 1300);
    }
    if (event.last_flow != 0) {
      to = event.last_flow;
      CHECK(event.name == "ready: woken");
      CHECK(decoded.track_of(event) == "on and off the CPU");
    }
  }
  CHECK(from != 0);
  CHECK(from == to);
}

TEST_CASE("perfetto: gaps that overlap still nest") {
  const RecordScript script = treetest();
  Exported exported(script);
  exported.gaps = overlapping_gaps(0);
  const Decoded decoded = decode(exported.to("perfetto"));
  CHECK(calls_of(decoded).at("lost: full") == Sums{3, 0, 5000});
  CHECK(decoded.events[decoded.events.size() - 2].notes.at("records") == "5");
  CHECK(decoded.track_of(decoded.events.back()) == "cpu 3 gaps");
}

TEST_CASE("perfetto: a moment says since when calls of a function were left out") {
  RecordScript script = treetest();
  const size_t events = decode(Exported(script).to("perfetto")).events.size();
  script.definitions.mutable_process(0)->switched_off = {{script.key("mainAA"), 12'000}};
  const Decoded decoded = decode(Exported(script).to("perfetto"));
  REQUIRE(decoded.events.size() == events + 1);
  CHECK(decoded.events.back().name ==
        "calls of mainAA left out: switched off from 12.0 us on");
  CHECK(decoded.events.back().type == pf::event::kInstant);
  CHECK(decoded.events.back().time == 12'000);
}
