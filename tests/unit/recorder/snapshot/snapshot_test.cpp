// Snapshots of a buffer in overwrite mode: the newest records, with the names and the
// stack that they need.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "src/recorder/file/session_records.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

recorder::BufferOptions ring(uint32_t blocks, arctrace_scope scope) {
  recorder::BufferOptions options = small_buffer(1024, blocks);
  options.mode = ARCTRACE_MODE_OVERWRITE;
  options.scope = scope;
  return options;
}

// The number of records that `writer`, or all, has written, as the last TOTALS counts.
uint64_t written(const DecodedTrace& trace, uint32_t writer) {
  uint64_t count = 0;
  for (const DecodedRecord& totals : trace.of_type(ARCTRACE_TYPE_TOTALS)) {
    if (totals.writer == writer) count = totals.u64(0);
  }
  return count;
}

TEST_CASE("snapshot: a window of the newest, with names and stack, and it harms nobody") {
  for (const arctrace_scope scope : {ARCTRACE_SCOPE_THREAD, ARCTRACE_SCOPE_SHARED}) {
    CAPTURE(scope);
    // Half of the ring is more than the definitions take, some of which come from
    // sanitizers' libraries.
    TestSession test(ring(24, scope));
    CHECK_CHILD([&] {
      REQUIRE(arctrace_attach(test.path().c_str()) == 0);
      const uint32_t frame = arctrace_define_name("frame");
      const uint32_t ring_name = arctrace_define_name("ring");
      arctrace_enter(arctrace_name_key(frame));
      uint64_t done = 1;
      for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 2000; ++i) arctrace_instant(ring_name);
        done += 2000;
        const DecodedTrace trace = test.snapshot();
        CHECK(trace.finished);
        CHECK(joined(undefined_uses(trace)) == "");
        CHECK(written(trace, 1) == done);
        CHECK(written(trace, 0) == done);
        const std::vector<DecodedRecord> found = trace.of_writer(1);
        REQUIRE(found.size() > 100);
        CHECK(found.size() < 2000);
        const std::vector<DecodedRecord> stacks = trace.of_type(ARCTRACE_TYPE_STACK);
        REQUIRE_FALSE(stacks.empty());
        CHECK(stacks.front().u32(0) == 1);
        CHECK(stacks.front().u64(8) == arctrace_name_key(frame));
        CHECK(stacks.front().ticks <= found.front().ticks);
      }
      CHECK(arctrace_lost(nullptr) == 0);
    });
  }
}

TEST_CASE("snapshot: discarded records are no records") {
  TestSession test(ring(16, ARCTRACE_SCOPE_THREAD));
  CHECK_CHILD([&] {
    REQUIRE(arctrace_attach(test.path().c_str()) == 0);
    for (int i = 0; i < 5; ++i) arctrace_discard(arctrace_reserve(1, 8));
    arctrace_instant(1);
    const DecodedTrace trace = test.snapshot();
    CHECK(written(trace, 1) == 1);
    CHECK(trace.written() == 1);
  });
}

TEST_CASE("snapshot: a slot's new owner begins at nothing, the session goes on") {
  recorder::BufferOptions options = ring(16, ARCTRACE_SCOPE_THREAD);
  options.slot_count = 1;
  TestSession test(options);
  for (int i = 0; i < 3; ++i) {
    CHECK_CHILD([&] {
      REQUIRE(arctrace_attach(test.path().c_str()) == 0);
      for (int n = 0; n < 10; ++n) arctrace_instant(1);
    });
  }
  const DecodedTrace trace = test.snapshot();
  CHECK(written(trace, 3) == 10);
  CHECK(written(trace, 0) == 30);
}

// The number in the last TOTALS of `writer`.
uint64_t lost_definitions(const DecodedTrace& trace, uint32_t writer) {
  uint64_t count = 0;
  for (const DecodedRecord& totals : trace.of_type(ARCTRACE_TYPE_TOTALS)) {
    if (totals.writer == writer) count = totals.u64(8 + 8 * ARCTRACE_LOST_DEFINITIONS);
  }
  return count;
}

TEST_CASE("snapshot: whose losses they were whose LOST is overwritten") {
  for (const uint32_t slots : {1u, 8u}) {
    CAPTURE(slots);
    recorder::BufferOptions options = ring(16, ARCTRACE_SCOPE_THREAD);
    options.slot_count = slots;
    TestSession test(options);
    for (int i = 0; i < 2; ++i) {
      CHECK_CHILD([&] {
        REQUIRE(arctrace_attach(test.path().c_str()) == 0);
        for (int name = 0; name < 500; ++name) {
          arctrace_define_name(
              ("a name of some length, " + std::to_string(name)).c_str());
        }
        for (int n = 0; n < 5000; ++n) arctrace_instant(1);
      });
    }
    const DecodedTrace trace = test.snapshot();
    const uint64_t all = lost_definitions(trace, 0);
    CHECK(all > 0);
    const uint64_t owned = lost_definitions(trace, 1) + lost_definitions(trace, 2);
    // For a slot that has changed its owner it is not known.
    CHECK(owned == (slots == 1 ? 0 : all));
  }
}

}  // namespace
}  // namespace arctrace::testing
