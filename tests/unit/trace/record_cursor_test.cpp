// The walk over the records of a block.
#include <doctest/doctest.h>

#include <vector>

#include "reader/trace/record.hpp"
#include "tests/support/trace_builder.hpp"

namespace arctrace::reader {
namespace {

using testing::BlockBuilder;
using testing::Bytes;
using Result = RecordCursor::Result;

constexpr uint16_t kCompact = ARCTRACE_FORM_COMPACT, kBare = ARCTRACE_FORM_BARE;

struct Walk {
  std::vector<RawRecord> records;
  Result end = Result::kEnd;
  RecordCursor cursor;
};

Walk walk(const Bytes& content, uint16_t form, uint64_t base, bool ends_at_hole = false) {
  Walk walk;
  walk.cursor = RecordCursor(form, base, ends_at_hole);
  walk.cursor.set_window(content.data(), 128, true);
  RawRecord record;
  while ((walk.end = walk.cursor.next_untrusted(record)) == Result::kRecord) {
    walk.records.push_back(record);
  }
  return walk;
}

TEST_CASE("compact: deltas count from the base, and from each TIME") {
  BlockBuilder block = BlockBuilder::exclusive(1, 0, 0, 1000);
  block.enter(1000, 1).enter(1007, 2).time(1ull << 40).exit((1ull << 40) + 3);
  const Walk w = walk(block.content, kCompact, 1000);
  REQUIRE(w.end == Result::kEnd);
  REQUIRE(w.records.size() == 4);
  CHECK(w.records[0].ticks == 1000);
  CHECK(w.records[0].offset == 128);
  CHECK(w.records[0].body.size() == 8);
  CHECK(w.records[1].ticks == 1007);
  CHECK(w.records[1].offset == 144);
  CHECK(w.records[2].type == ARCTRACE_TYPE_TIME);
  CHECK(w.records[3].ticks == (1ull << 40) + 3);
  CHECK(w.records[3].body.empty());
}

TEST_CASE("bare: records have the time of the base, and of each TIME") {
  Bytes content;
  content.u32(testing::word0(ARCTRACE_TYPE_ENTER, 12)).u64(7);
  content.u32(testing::word0(ARCTRACE_TYPE_EXIT, 4));
  content.u32(testing::word0(ARCTRACE_TYPE_TIME, 12, true)).u64(5000);  // not complete
  content.u32(testing::word0(ARCTRACE_TYPE_EXIT, 4));
  content.u32(testing::word0(ARCTRACE_TYPE_TIME, 12)).u64(2000);
  content.u32(testing::word0(ARCTRACE_TYPE_EXIT, 4));
  const Walk w = walk(content, kBare, 1000);
  REQUIRE(w.end == Result::kEnd);
  REQUIRE(w.records.size() == 6);
  CHECK(w.records[0].ticks == 1000);
  CHECK(w.records[0].body.size() == 8);
  CHECK(w.records[1].ticks == 1000);
  CHECK(w.records[1].offset == 140);
  CHECK(w.records[1].body.empty());
  CHECK(w.records[3].ticks == 1000);
  CHECK(w.records[5].ticks == 2000);
}

TEST_CASE("full: writer and ticks stand in the head") {
  const Bytes content =
      testing::full_record(ARCTRACE_TYPE_INSTANT, 77, 1ull << 50, Bytes().u32(9), true);
  const Walk w = walk(content, ARCTRACE_FORM_FULL, 0);
  REQUIRE(w.records.size() == 1);
  CHECK(w.records[0].writer == 77);
  CHECK(w.records[0].ticks == 1ull << 50);
  CHECK(w.records[0].in_progress);
  CHECK(w.records[0].body.size() == 4);
}

TEST_CASE("holes of any length are stepped over, word by word") {
  for (size_t words = 0; words < 9; ++words) {
    BlockBuilder block = BlockBuilder::exclusive(1, 0, 0, 0);
    block.hole(words).enter(1, 1).hole(words).exit(2).hole(words);
    const Walk w = walk(block.content, kCompact, 0);
    CHECK(w.end == Result::kEnd);
    REQUIRE(w.records.size() == 2);
    CHECK(w.records[1].offset == 128 + 16 + 8 * words);
    CHECK(w.cursor.met_hole() == (words != 0));
    // A block that was copied while its owner wrote ends there.
    CHECK(walk(block.content, kCompact, 0, true).records.size() == (words == 0 ? 2 : 0));
  }
}

TEST_CASE("what is not a record ends the walk") {
  const auto broken = [](const Bytes& content, uint16_t form, Rule rule) {
    const Walk w = walk(content, form, 100);
    CHECK(w.end == Result::kBroken);
    CHECK(w.cursor.rule() == rule);
    CHECK(w.cursor.offset() == 128);
  };
  broken(Bytes().u32(0).u32(0), kCompact, Rule::kRecordLength);
  broken(Bytes().u32(testing::word0(5, 4)).u32(0), kCompact, Rule::kRecordLength);
  broken(Bytes().u32(testing::word0(5, 12)).fill(20, 0), ARCTRACE_FORM_FULL,
         Rule::kRecordLength);
  broken(Bytes().u32(testing::word0(5, 18)).fill(20, 0), kCompact, Rule::kRecordLength);
  broken(Bytes().u32(testing::word0(5, 20)).fill(12, 0), kCompact, Rule::kRecordLength);
  broken(Bytes().u32(testing::word0(0, 16)).fill(12, 0), kCompact, Rule::kRecordType);
  broken(Bytes().u32(testing::word0(5, 0)), kBare, Rule::kRecordLength);
  broken(Bytes().u32(testing::word0(5, 12)).u32(0), kBare, Rule::kRecordLength);
  broken(Bytes().u32(testing::word0(ARCTRACE_TYPE_TIME, 8)).u32(0), kBare,
         Rule::kRecordTime);
  broken(Bytes().u32(testing::word0(ARCTRACE_TYPE_TIME, 12)).u64(99), kBare,
         Rule::kRecordTime);
  broken(Bytes().u32(testing::word0(ARCTRACE_TYPE_TIME, 12)).u64(0), kCompact,
         Rule::kRecordTime);
  broken(Bytes().u32(testing::word0(ARCTRACE_TYPE_TIME, 16)).u32(0).u64(99), kCompact,
         Rule::kRecordTime);
}

TEST_CASE("a TIME in progress moves nothing") {
  const Bytes content = Bytes()
                            .u32(testing::word0(ARCTRACE_TYPE_TIME, 16, true))
                            .u32(0)
                            .u64(5)
                            .u32(testing::word0(ARCTRACE_TYPE_EXIT, 8))
                            .u32(1);
  const Walk w = walk(content, kCompact, 100);
  REQUIRE(w.records.size() == 2);
  CHECK(w.records[1].ticks == 101);
}

TEST_CASE("windows of every size give the same records") {
  BlockBuilder block = BlockBuilder::exclusive(1, 0, 0, 0);
  for (uint32_t i = 0; i < 20; ++i) {
    block.add(ARCTRACE_TYPE_EVENT, i,
              testing::event_body(i, Bytes().fill(size_t{4} * (i % 7), 0xEE)));
    if (i % 3 == 0) block.hole(i % 4);
  }
  const auto& bytes = block.content.data();
  const std::vector<RawRecord> expected = walk(block.content, kCompact, 0).records;
  for (size_t window = 4; window <= bytes.size(); window += 4) {
    RecordCursor cursor(kCompact, 0, false);
    cursor.set_window({}, 128, false);
    std::vector<uint32_t> offsets;
    std::vector<uint64_t> ticks;
    RawRecord record;
    for (bool done = false; !done;) {
      switch (cursor.next_untrusted(record)) {
        case Result::kRecord:
          offsets.push_back(record.offset);
          ticks.push_back(record.ticks);
          break;
        case Result::kWindow: {
          const size_t begin = cursor.offset() - 128;
          const size_t size =
              std::min(std::max<size_t>(window, cursor.wanted()), bytes.size() - begin);
          cursor.set_window(std::span(bytes).subspan(begin, size), cursor.offset(),
                            begin + size == bytes.size());
          break;
        }
        case Result::kEnd:
          done = true;
          break;
        case Result::kBroken:
          FAIL("broken");
      }
    }
    REQUIRE(offsets.size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      CHECK(offsets[i] == expected[i].offset);
      CHECK(ticks[i] == expected[i].ticks);
    }
  }
}

}  // namespace
}  // namespace arctrace::reader
