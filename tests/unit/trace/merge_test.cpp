// The order in which records come out.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "src/base/untrusted_bytes.hpp"
#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

using reader::Trace;

// COUNTER records carry their index in the expected order.
Bytes numbered(uint64_t number) { return counter_body(1, static_cast<int64_t>(number)); }

uint64_t number_of(const CollectedRecord& counter) {
  return static_cast<uint64_t>(
      load_part_untrusted<arctrace_counter_body>(counter.body).value);
}

std::vector<uint64_t> numbers(const std::vector<CollectedRecord>& all) {
  std::vector<uint64_t> numbers;
  for (const CollectedRecord& collected : of_type(all, ARCTRACE_TYPE_COUNTER)) {
    numbers.push_back(number_of(collected));
  }
  return numbers;
}

TEST_CASE("threads of several processes interleave by time") {
  FileBuilder file;
  // Process p's thread writes at ticks p, p + 3, p + 6 ..., in two blocks.
  for (uint32_t p = 0; p < 3; ++p) {
    for (uint32_t half = 0; half < 2; ++half) {
      BlockBuilder block = BlockBuilder::exclusive(
          p + 1, half, p * 2 + half, p + half * 30, p + 1, p + 100, p + 100);
      for (uint32_t i = half * 10; i < half * 10 + 10; ++i) {
        block.add(ARCTRACE_TYPE_COUNTER, p + 3 * i, numbered(p + 3 * i));
      }
      file.block(block, 0, p * 2 + half);
    }
  }
  Trace trace = open_bytes(file.file());
  const auto got = numbers(collect(trace));
  REQUIRE(got.size() == 60);
  for (uint64_t i = 0; i < got.size(); ++i) CHECK(got[i] == i);
}

TEST_CASE("a shared block is sorted by time, records of one moment by offset") {
  FileBuilder file;
  BlockBuilder block = BlockBuilder::shared(0, 0);
  const std::vector<std::pair<uint64_t, uint64_t>> records = {
      {10, 1}, {9, 0}, {10, 2}, {30, 6}, {20, 4}, {20, 5}, {11, 3}};  // ticks, number
  for (const auto& [ticks, number] : records) {
    block.add_full(ARCTRACE_TYPE_COUNTER, 1, ticks, numbered(number));
  }
  file.block(block);
  Trace trace = open_bytes(file.file());
  CHECK(numbers(collect(trace)) == std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("a shared block in reverse is sorted too, and soon") {
  FileBuilder file(16u << 20);
  BlockBuilder block = BlockBuilder::shared(0, 0);
  constexpr uint64_t kCount = 200'000;
  for (uint64_t i = kCount; i-- > 0;) {
    block.add_full(ARCTRACE_TYPE_COUNTER, 1, i / 2, numbered(i));
  }
  file.block(block);
  Trace trace = open_bytes(file.file());
  const auto got = numbers(collect(trace));
  REQUIRE(got.size() == kCount);
  for (uint64_t i = 0; i < kCount; i += 2) {  // pairs of one time are in reverse order
    REQUIRE(got[i] == i + 1);
    REQUIRE(got[i + 1] == i);
  }
}

TEST_CASE("shared blocks overlap in time; a handler's records go between its thread's") {
  FileBuilder file;
  file.block(
      BlockBuilder::shared(0, 50)
          .add_full(ARCTRACE_TYPE_COUNTER, 1, 103, numbered(3))
          .add_full(ARCTRACE_TYPE_COUNTER, 2, 40, numbered(0)));  // before its base
  file.block(BlockBuilder::shared(1, 60)
                 .add_full(ARCTRACE_TYPE_COUNTER, 1, 102, numbered(2))
                 .add_full(ARCTRACE_TYPE_COUNTER, 2, 200, numbered(5)),
             0, 1);
  file.block(BlockBuilder::exclusive(1, 0, 2, 100)
                 .add(ARCTRACE_TYPE_COUNTER, 101, numbered(1))
                 .add(ARCTRACE_TYPE_COUNTER, 104, numbered(4)),
             0, 2);
  Trace trace = open_bytes(file.file());
  CHECK(numbers(collect(trace)) == std::vector<uint64_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE(
    "of one moment: definitions, then what was interrupted, then what interrupted") {
  FileBuilder file;
  file.block(BlockBuilder::shared(0, 100).add_full(ARCTRACE_TYPE_INSTANT, 1, 100,
                                                   Bytes().u32(1)));
  file.block(BlockBuilder::exclusive(1, 0, 1, 100).enter(100, 1), 0, 1);
  file.program({1, 0, 100, 1, 0, ARCTRACE_ORIGIN_EXEC, 100, "a", ""}, 1, "main", 8);
  Trace trace = open_bytes(file.file());
  const auto all = collect(trace);
  REQUIRE(all.size() == 4);
  CHECK(all[0].record.type == ARCTRACE_TYPE_PROCESS);
  CHECK(all[1].record.type == ARCTRACE_TYPE_THREAD);
  CHECK(all[2].record.type == ARCTRACE_TYPE_ENTER);
  CHECK(all[3].record.type == ARCTRACE_TYPE_INSTANT);
}

TEST_CASE("an exclusive block keeps its order where a stamp steps back") {
  FileBuilder file;
  file.block(BlockBuilder::exclusive(1, 0, 0, 100)
                 .add(ARCTRACE_TYPE_COUNTER, 120, numbered(0))
                 .add(ARCTRACE_TYPE_COUNTER, 110, numbered(1))
                 .add(ARCTRACE_TYPE_COUNTER, 121, numbered(2)));
  file.block(BlockBuilder::exclusive(1, 1, 1, 115)
                 .add(ARCTRACE_TYPE_COUNTER, 116, numbered(3))
                 .add(ARCTRACE_TYPE_COUNTER, 130, numbered(4)),
             0, 1);
  Trace trace = open_bytes(file.file());
  const auto all = of_type(collect(trace), ARCTRACE_TYPE_COUNTER);
  CHECK(numbers(all) == std::vector<uint64_t>{0, 1, 2, 3, 4});
  CHECK(all[1].record.time_ns == 120);
  CHECK(all[3].record.time_ns == 121);
}

TEST_CASE("blocks that stand in any order in the file are read by serial") {
  FileBuilder file;
  for (const uint32_t serial : {2u, 0u, 1u}) {
    const uint64_t ticks = uint64_t{serial} * 10;
    file.block(BlockBuilder::exclusive(1, serial, serial, ticks)
                   .add(ARCTRACE_TYPE_COUNTER, ticks, numbered(serial)),
               0, serial);
  }
  Trace trace = open_bytes(file.file());
  const auto all = of_type(collect(trace), ARCTRACE_TYPE_COUNTER);
  CHECK(numbers(all) == std::vector<uint64_t>{0, 1, 2});
  for (const auto& record : all) CHECK_FALSE(record.record.after_gap);
}

TEST_CASE("blocks larger than what is copied at a time, records as large as can be") {
  FileBuilder file(1u << 20);
  BlockBuilder block = BlockBuilder::exclusive(1, 0, 0, 0);
  std::mt19937 random(1);
  for (uint32_t i = 0; block.size() < 900'000; ++i) {
    const size_t size = i % 5 == 0 ? 65'508 : random() % 5000 / 4 * 4;
    block.add(ARCTRACE_TYPE_EVENT, i, event_body(i, Bytes().fill(size, uint8_t(i))));
  }
  file.block(block);
  Trace trace = open_bytes(file.file());
  uint32_t expected = 0;
  for (const auto& event : of_type(collect(trace), ARCTRACE_TYPE_EVENT)) {
    CHECK(first_u32(event) == expected);
    CHECK(std::all_of(event.body.begin() + 4, event.body.end(),
                      [&](std::byte b) { return b == std::byte(uint8_t(expected)); }));
    ++expected;
  }
  CHECK(expected > 20);
}

TEST_CASE("random traces: the merge equals a stable sort of all records by time") {
  const uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    FileBuilder file;
    std::vector<std::pair<uint64_t, uint64_t>> expected;        // ticks, number
    std::map<uint32_t, std::pair<uint64_t, uint64_t>> writers;  // serial, clock
    const uint32_t writer_count = static_cast<uint32_t>(random() % 5 + 1);
    uint64_t number = 0;
    for (uint32_t handout = 0; handout < 12; ++handout) {
      if (random() % 3 == 0) {
        BlockBuilder block = BlockBuilder::shared(handout, 0);
        uint64_t base = random() % 1000;
        for (int i = 0; i < 8; ++i) {
          const uint64_t ticks = (base += random() % 50) + random() % 30;
          block.add_full(ARCTRACE_TYPE_COUNTER, uint32_t(random() % writer_count + 1),
                         ticks, numbered(number));
          expected.emplace_back(ticks, number++);
        }
        file.block(block, 0, handout % 8);
        continue;
      }
      const auto writer = static_cast<uint32_t>(random() % writer_count + 1);
      auto& [serial, clock] = writers[writer];
      BlockBuilder block = BlockBuilder::exclusive(writer, serial++, handout, clock);
      for (int i = 0; i < 8; ++i) {
        clock += random() % 100;
        block.add(ARCTRACE_TYPE_COUNTER, clock, numbered(number));
        expected.emplace_back(clock, number++);
      }
      file.block(block, 0, handout % 8);
    }
    Trace trace = open_bytes(file.file());
    const auto all = of_type(collect(trace), ARCTRACE_TYPE_COUNTER);
    REQUIRE(all.size() == expected.size());
    std::sort(expected.begin(), expected.end());
    std::vector<std::pair<uint64_t, uint64_t>> got;
    for (const auto& counter : all) {
      got.emplace_back(counter.record.ticks, number_of(counter));
    }
    CHECK(std::is_sorted(got.begin(), got.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; }));
    std::sort(got.begin(), got.end());
    CHECK(got == expected);
    CHECK(trace.summary().records == expected.size());
  }
}

}  // namespace
}  // namespace arctrace::testing
