// Several threads write events with a payload that can be checked into a tiny buffer,
// while a collector's thread drains it: nothing is torn or doubled, and written plus lost
// is attempted, for each writer. Under ThreadSanitizer: no data race.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "src/process/session.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/drain/drain.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "tests/support/test_session.hpp"
#include "tests/support/trace_decoder.hpp"

namespace arctrace::testing {
namespace {

constexpr uint64_t kThreads = 4;
constexpr uint64_t kEvents = 20000;

struct Payload {
  uint64_t writer;
  uint64_t sequence;
  uint64_t check;
};

uint64_t check_of(uint64_t writer, uint64_t sequence) {
  return (writer * 0x9E3779B97F4A7C15u) ^ (sequence * 0xBF58476D1CE4E5B9u);
}

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes;
  for (std::istreambuf_iterator<char> at(file), end; at != end; ++at) {
    bytes.push_back(static_cast<std::byte>(*at));
  }
  return bytes;
}

std::vector<Payload> payloads_of(const DecodedTrace& trace, uint32_t event) {
  std::vector<Payload> payloads;
  for (const DecodedBlock& block : trace.blocks) {
    for (const DecodedRecord& record : block.records) {
      if (record.type != ARCTRACE_TYPE_EVENT || record.in_progress) continue;
      REQUIRE(record.u32(0) == event);
      payloads.push_back({record.u64(4), record.u64(12), record.u64(20)});
    }
  }
  return payloads;
}

arctrace_scope scope_of(const std::string& name) {
  if (name == "thread") return ARCTRACE_SCOPE_THREAD;
  return name == "shared" ? ARCTRACE_SCOPE_SHARED : ARCTRACE_SCOPE_ADAPTIVE;
}

TEST_CASE("threads write, one collects: written + lost = attempted") {
  const char* scope = getenv("ARCTRACE_TEST_SCOPE");
  recorder::BufferOptions options;
  options.block_size = 512;
  options.buffer_size = uint64_t{512} * 48;
  options.slot_count = 16;
  options.pin = recorder::PinPolicy::kNo;
  options.scope = scope_of(scope != nullptr ? scope : "thread");
  absl::StatusOr<recorder::Buffer> buffer = recorder::Buffer::create(options);
  REQUIRE(buffer.ok());
  const std::string path = "/tmp/arctrace-writers-" + std::to_string(getpid());
  absl::StatusOr<recorder::TraceFile> file = recorder::TraceFile::create(path);
  REQUIRE(file.ok());
  file->write_header(buffer->header());
  recorder::set_gate(buffer->view(), ARCTRACE_GATE_ALL);
  REQUIRE(arctrace_attach(buffer->path().c_str()) == 0);
  // The drain uses the writers' own mapping, because ThreadSanitizer distinguishes words
  // by their addresses.
  recorder::Drain drain(writer::session.view, *file);
  std::atomic<bool> done{false};
  std::thread collector([&] {
    while (!done.load()) {
      drain.round();
      usleep(500);
    }
  });
  const arctrace_field fields[] = {{"writer", ARCTRACE_FIELD_U64},
                                   {"sequence", ARCTRACE_FIELD_U64},
                                   {"check", ARCTRACE_FIELD_U64}};
  const uint32_t event = arctrace_define_event("event", 0, fields, 3);

  std::array<uint64_t, kThreads> lost{};
  // There is space for the first record of each thread, even if the collector gets no
  // CPU.
  std::atomic<uint64_t> have_written{0};
  std::vector<std::thread> threads;
  for (uint64_t writer = 0; writer < kThreads; ++writer) {
    threads.emplace_back([&lost, &have_written, event, writer] {
      for (uint64_t sequence = 0; sequence < kEvents; ++sequence) {
        const Payload payload{writer, sequence, check_of(writer, sequence)};
        arctrace_write(event, &payload, sizeof payload);
        if (sequence == 0) {
          ++have_written;
          while (have_written < kThreads) usleep(100);
        }
        if (sequence % 512 == 0) usleep(2000);  // lets the collector have a CPU
      }
      lost[writer] = arctrace_lost(nullptr);
      arctrace_flush();
    });
  }
  for (std::thread& thread : threads) thread.join();
  done.store(true);
  collector.join();
  recorder::set_gate(buffer->view(), 0);
  drain.finish();
  write_finished(*file);
  REQUIRE(file->publish().ok());

  const DecodedTrace trace = decode_trace(bytes_of(path));
  unlink(path.c_str());
  CHECK(trace.problems.empty());
  std::array<uint64_t, kThreads> written{};
  std::map<uint64_t, uint64_t> seen;
  for (const Payload& payload : payloads_of(trace, event)) {
    REQUIRE(payload.writer < kThreads);
    CHECK(payload.check == check_of(payload.writer, payload.sequence));
    CHECK(++seen[payload.writer * kEvents + payload.sequence] == 1);
    ++written[payload.writer];
  }
  for (uint64_t writer = 0; writer < kThreads; ++writer) {
    CAPTURE(writer);
    CHECK(written[writer] > 0);
    CHECK(written[writer] + lost[writer] == kEvents);
  }
  CHECK(drain.totals().torn + drain.totals().unfinished == 0);
}

}  // namespace
}  // namespace arctrace::testing
