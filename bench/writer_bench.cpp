// Measures what one record costs the program that writes it, each case beside the floor
// of its size. bench/run runs it under `arctrace record` for the live cases, and without
// a session for those that must cost next to nothing.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <arctrace/arctrace.hpp>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "bench/floors.hpp"
#include "bench/live_session.hpp"
#include "bench/measured_call.hpp"

namespace arctrace::bench {
namespace {

using OneNumber = Event<"one_number", Field<"value", uint64_t>>;
using ThreeFields = Event<"three_fields", Field<"id", uint64_t>, Field<"size", uint32_t>,
                          Field<"ok", bool>>;

FloorRing& floor_ring() {
  static FloorRing ring;
  return ring;
}

// Adds a case that records nothing: a floor, or what is switched off.
template <class Body>
void add_plain(const char* name, Body body) {
  benchmark::RegisterBenchmark(name, [body](benchmark::State& state) mutable {
    uint64_t i = 0;
    for (auto _ : state) {
      body(i++);
      benchmark::ClobberMemory();
    }
  })->Iterations(1'000'000);
}

// Adds a case that writes `bytes` of records with each call of body(i). If a record is
// lost, or not written at all, the case is an error instead of a figure.
template <class Body>
void add_live(const LiveSession& session, const char* name, uint32_t bytes, Body body) {
  const int64_t rounds = session.rounds_that_fit(bytes);
  benchmark::RegisterBenchmark(name, [&session, bytes,
                                      body](benchmark::State& state) mutable {
    if (!session.wait_until_drained()) state.SkipWithError("the collector is stuck");
    const uint64_t lost = arctrace_lost(nullptr);
    const uint64_t taken = session.blocks_taken();
    uint64_t i = 0;
    for (auto _ : state) {
      body(i++);
      benchmark::ClobberMemory();
    }
    if (arctrace_lost(nullptr) != lost) state.SkipWithError("records were lost");
    const uint64_t blocks = session.blocks_taken() - taken;
    if ((blocks + 1) * session.header().block_size < i * bytes) {
      state.SkipWithError("not all records were written");
    }
  })->Iterations(rounds);
}

void add_floors() {
  add_plain("floor/8", [](uint64_t i) { floor_ring().store<8>(i); });
  add_plain("floor/16", [](uint64_t i) { floor_ring().store<16>(i); });
  add_plain("floor/20", [](uint64_t i) { floor_ring().store<20>(i); });
  add_plain("floor/24", [](uint64_t i) { floor_ring().store<24>(i); });
  add_plain("floor/16+8", [](uint64_t i) {
    floor_ring().store<16>(i);
    floor_ring().store<8>(i);
  });
  add_plain("floor/text", [](uint64_t i) {
    char text[64];
    benchmark::DoNotOptimize(
        std::snprintf(text, sizeof text, "request %d done", static_cast<int>(i)));
    floor_ring().store<24>(i);
  });
}

void add_live_cases(const LiveSession& session) {
  add_floors();
  const uint32_t pair = session.record_size(8) + session.record_size(0);

  const arctrace_field field = {"value", ARCTRACE_FIELD_U64};
  const uint32_t event = arctrace_define_event("number", 0, &field, 1);
  add_live(session, "event", session.record_size(4 + 8),
           [event](uint64_t i) { arctrace_write(event, &i, sizeof i); });
  add_live(session, "event_typed", session.record_size(4 + 8),
           [](uint64_t i) { ARCTRACE_WRITE(OneNumber, i); });
  add_live(session, "event_3_fields", session.record_size(4 + 16),
           [](uint64_t i) { ARCTRACE_WRITE(ThreeFields, i, uint32_t{4096}, true); });
  add_live(session, "reserve_commit", session.record_size(4 + 8), [event](uint64_t i) {
    void* payload = arctrace_reserve(event, sizeof i);
    if (payload == nullptr) return;
    std::memcpy(payload, &i, sizeof i);
    arctrace_commit(payload);
  });

  const uint32_t name = arctrace_define_name("measured");
  const uint64_t key = arctrace_name_key(name);
  add_live(session, "enter_exit", pair, [key](uint64_t) {
    arctrace_enter(key);
    arctrace_exit(key);
  });
  add_live(session, "scope", pair, [](uint64_t) { ARCTRACE_SCOPE("scope"); });
  add_live(session, "instant", session.record_size(4),
           [name](uint64_t) { arctrace_instant(name); });
  add_live(session, "counter", session.record_size(12),
           [name](uint64_t i) { arctrace_counter(name, static_cast<int64_t>(i)); });
  add_live(session, "text", session.record_size(20),
           [](uint64_t i) { arctrace_text("request %d done", static_cast<int>(i)); });

  add_plain("call/plain", [](uint64_t i) {
    benchmark::DoNotOptimize(call_plain(static_cast<long>(i)));
  });
  add_live(session, "call/gcc", pair,
           [](uint64_t i) { benchmark::DoNotOptimize(call_gcc(static_cast<long>(i))); });
#if ARCTRACE_BENCH_CLANG
  add_live(session, "call/clang", pair, [](uint64_t i) {
    benchmark::DoNotOptimize(call_clang(static_cast<long>(i)));
  });
#endif
}

void add_cases_without_session() {
  add_plain("floor/branch", [](uint64_t i) {
    static volatile uint32_t word = 0;
    if (word != 0) arctrace_write(1, &i, sizeof i);
  });
  add_plain("off/event_typed", [](uint64_t i) { ARCTRACE_WRITE(OneNumber, i); });
  add_plain("off/scope", [](uint64_t) { ARCTRACE_SCOPE("scope"); });
  add_plain("off/event", [](uint64_t i) { arctrace_write(1, &i, sizeof i); });
}

// Takes this process once through the whole buffer, so that the first touch of its pages
// is not part of any figure (first_pass measures that).
void go_through_buffer(const LiveSession& session) {
  for (uint64_t written = 0; written < session.buffer_size() * 3 / 2;) {
    session.wait_until_drained();
    const int64_t rounds = session.rounds_that_fit(session.record_size(4));
    for (int64_t i = 0; i < rounds; ++i) arctrace_instant(1);
    written += static_cast<uint64_t>(rounds) * session.record_size(4);
  }
}

}  // namespace
}  // namespace arctrace::bench

int main(int argc, char** argv) {
  using namespace arctrace::bench;
  // The benchmark takes the last CPU: the recorder's collector is bound to the first one.
  pin_to_cpu(static_cast<size_t>(sysconf(_SC_NPROCESSORS_ONLN)) - 1);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  if (LiveSession::exists()) {
    static const LiveSession session;
    go_through_buffer(session);
    add_live_cases(session);
    benchmark::RunSpecifiedBenchmarks();
  } else {
    add_cases_without_session();
    benchmark::RunSpecifiedBenchmarks();
  }
  return 0;
}
