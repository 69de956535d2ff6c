// Records whose times are from the clock word: bare ones in exclusive blocks.
#include <arctrace/arctrace.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "src/process/session.hpp"
#include "src/writer/writer_call.hpp"
#include "tests/support/child.hpp"
#include "tests/support/test_session.hpp"

namespace arctrace::testing {
namespace {

recorder::BufferOptions with_clock_word(arctrace_scope scope) {
  recorder::BufferOptions options = small_buffer(4096, 256);
  options.scope = scope;
  options.stamps = ARCTRACE_STAMPS_COARSE;
  options.resolution_ns = 20'000;
  return options;
}

// The recorder stores the time.
void store_time(uint64_t ticks) {
  __atomic_store_n(&writer::session.view.control().time, ticks, __ATOMIC_RELAXED);
}

uint64_t stored_time() {
  return __atomic_load_n(&writer::session.view.control().time, __ATOMIC_RELAXED);
}

uint64_t key_of(uint32_t number) { return 0x1000 + 16 * uint64_t{number}; }

TEST_CASE("clock word: each record has the time that was stored last") {
  for (const arctrace_scope scope :
       {ARCTRACE_SCOPE_THREAD, ARCTRACE_SCOPE_SHARED, ARCTRACE_SCOPE_ADAPTIVE}) {
    CAPTURE(scope);
    TestSession test(with_clock_word(scope));
    const uint64_t begin = test.view().control().time;
    CHECK(begin == test.buffer().header().start_ticks);
    constexpr uint32_t kRounds = 3000;
    CHECK_CHILD([&] {
      join(test);
      for (uint32_t i = 0; i < kRounds; ++i) {
        store_time(begin + 1000 + uint64_t{i} / 100 * 50);
        arctrace_enter(key_of(i));
        const std::vector<std::byte> payload(i % 40, std::byte{0xFF});
        arctrace_write(i, payload.data(), payload.size());
        arctrace_exit(key_of(i));
      }
    });
    const DecodedTrace trace = test.finish();
    CHECK(joined(trace.problems) == "");
    CHECK(trace.lost() == 0);
    const std::vector<DecodedRecord> records = trace.of_writer(1);
    REQUIRE(records.size() == 3 * kRounds);
    for (uint32_t i = 0; i < kRounds; ++i) {
      const uint64_t ticks = begin + 1000 + uint64_t{i} / 100 * 50;
      CAPTURE(i);
      REQUIRE(records[size_t{3} * i].type == ARCTRACE_TYPE_ENTER);
      CHECK(records[size_t{3} * i].u64(0) == key_of(i));
      REQUIRE(records[size_t{3} * i + 1].type == ARCTRACE_TYPE_EVENT);
      CHECK(records[size_t{3} * i + 1].u32(0) == i);
      CHECK(records[size_t{3} * i + 1].body.size() == 4 + (i % 40 + 3) / 4 * 4);
      REQUIRE(records[size_t{3} * i + 2].type == ARCTRACE_TYPE_EXIT);
      for (uint32_t k = 0; k < 3; ++k) {
        // A thread that begins to write blocks of its own is a tick ahead, to be behind
        // what it wrote before, until the word moves.
        const uint64_t ahead = scope == ARCTRACE_SCOPE_ADAPTIVE ? 1 : 0;
        CHECK(records[size_t{3} * i + k].ticks - ticks <= ahead);
      }
    }
    // There is a TIME only where the time changes within a block.
    if (scope == ARCTRACE_SCOPE_THREAD) {
      CHECK(trace.of_type(ARCTRACE_TYPE_TIME).size() <= kRounds / 100);
      CHECK(std::any_of(trace.blocks.begin(), trace.blocks.end(),
                        [](const DecodedBlock& block) {
                          return block.header.form == ARCTRACE_FORM_BARE;
                        }));
    }
  }
}

TEST_CASE("clock word: heads of records in a thread's own blocks have four bytes") {
  TestSession test(with_clock_word(ARCTRACE_SCOPE_THREAD));
  CHECK_CHILD([&] {
    join(test);
    for (uint32_t i = 0; i < 10; ++i) {
      arctrace_enter(key_of(i));
      arctrace_exit(key_of(i));
    }
  });
  const DecodedTrace trace = test.finish();
  const std::vector<DecodedRecord> records = trace.of_writer(1);
  REQUIRE(records.size() == 20);
  for (size_t i = 1; i < records.size(); ++i) {
    CHECK(records[i].offset - records[i - 1].offset == (i % 2 == 1 ? 12 : 4));
  }
}

TEST_CASE("clock word: what a handler writes inside the writer keeps its place") {
  TestSession test(with_clock_word(ARCTRACE_SCOPE_THREAD));
  const uint64_t begin = test.view().control().time;
  CHECK_CHILD([&] {
    join(test);
    for (uint32_t i = 0; i < 100; ++i) {
      if (i % 10 == 9) store_time(stored_time() + 5);
      arctrace_enter(key_of(i));
      {
        const writer::WriterCall interrupted;
        arctrace_enter(key_of(1000 + i));
        if (i % 3 == 0) store_time(stored_time() + 1);
        arctrace_exit(key_of(1000 + i));
      }
      arctrace_exit(key_of(i));
    }
  });
  const DecodedTrace trace = test.finish();
  CHECK(joined(trace.problems) == "");
  CHECK(trace.lost() == 0);
  const std::vector<DecodedRecord> records = trace.of_writer(1);
  REQUIRE(records.size() == 400);
  for (uint32_t i = 0; i < 100; ++i) {
    CAPTURE(i);
    CHECK(records[size_t{4} * i].u64(0) == key_of(i));
    CHECK(records[size_t{4} * i + 1].u64(0) == key_of(1000 + i));
    // Times rise from one place to the other, so that readers know the order.
    CHECK(records[size_t{4} * i + 1].ticks > records[size_t{4} * i].ticks);
    CHECK(records[size_t{4} * i + 3].ticks > records[size_t{4} * i + 2].ticks);
    // They are not far from the word.
    CHECK(records[size_t{4} * i + 3].ticks < begin + 1000);
  }
}

}  // namespace
}  // namespace arctrace::testing
