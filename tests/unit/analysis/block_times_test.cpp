// Facts about a trace that blocks tell before their records are read.
#include "reader/analysis/block_times.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "tests/support/trace_builder.hpp"
#include "tests/unit/trace/collected.hpp"

namespace arctrace::testing {
namespace {

using reader::BlockTimes;
using reader::kNoIndex;
using reader::TimeRange;
using reader::WrittenPiece;

constexpr uint64_t kEmptyStack = 16;  // bytes of the STACK that a block begins with

// A block of this many bytes of records, written between two times.
struct Wrote {
  uint32_t writer;
  uint64_t serial, from, until, bytes;
};

// A file with the blocks in this order.
FileBuilder file_of(const std::vector<Wrote>& blocks) {
  ProcessFacts process;
  process.start_ticks = 50;
  FileBuilder file;
  file.program(process, 1, "main", 0);
  file.block(
      BlockBuilder::shared(1, 60, ARCTRACE_CLASS_DEFINITIONS)
          .add_full(ARCTRACE_TYPE_THREAD, 2, 60, thread_body(2, 1, 101, "two", 60)));
  uint64_t handout = 2;
  for (const Wrote& wrote : blocks) {
    BlockBuilder block = BlockBuilder::exclusive(wrote.writer, wrote.serial, handout,
                                                 wrote.from, 1, 100, 99 + wrote.writer);
    block.stack(wrote.from, {});
    REQUIRE(block.content.size() == kEmptyStack);
    REQUIRE(wrote.bytes % 8 == 0);
    while (block.content.size() < wrote.bytes) block.exit(wrote.from);
    file.block(block, 0, static_cast<uint32_t>(handout), wrote.until);
    ++handout;
  }
  return file;
}

BlockTimes times_of(const FileBuilder& file) {
  return BlockTimes(open_bytes(file.file()));
}

void check_pieces(const std::vector<WrittenPiece>& found,
                  const std::vector<WrittenPiece>& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i].from_ns == expected[i].from_ns);
    CHECK(found[i].until_ns == expected[i].until_ns);
    CHECK(found[i].bytes == expected[i].bytes);
  }
}

constexpr TimeRange kAll{INT64_MIN, INT64_MAX};

TEST_CASE("each thread's blocks, from their begin to the moment they were written out") {
  const BlockTimes times = times_of(
      file_of({{1, 0, 100, 200, 80}, {2, 0, 150, 400, 24}, {1, 1, 300, 350, 16}}));
  CHECK(times.times().from_ns == 50);  // the program's begin
  CHECK(times.times().until_ns == 400);
  CHECK(times.bytes() == 120);
  CHECK(times.bytes_of(0) == 96);
  CHECK(times.bytes_of(1) == 24);
  CHECK(times.bytes_of(kNoIndex) == 0);
  check_pieces(times.pieces(0, kAll, 0), {{100, 200, 80}, {300, 350, 16}});
  check_pieces(times.pieces(1, kAll, 0), {{150, 400, 24}});
  check_pieces(times.pieces(7, kAll, 0), {});
}

TEST_CASE(
    "a block's records end where the thread's next block begins, wherever it stands") {
  const BlockTimes times =
      times_of(file_of({{1, 1, 300, 900, 16}, {1, 0, 100, 850, 80}}));
  check_pieces(times.pieces(0, kAll, 0), {{100, 300, 80}, {300, 900, 16}});
}

TEST_CASE("nothing is written after the end of the process") {
  FileBuilder file = file_of({{1, 0, 100, 900, 80}});
  file.block(BlockBuilder::shared(8, 500, ARCTRACE_CLASS_DEFINITIONS)
                 .add_full(ARCTRACE_TYPE_PROCESS_END, 1, 500,
                           process_end_body(1, ARCTRACE_END_EXIT, 0)));
  const BlockTimes times = times_of(file);
  CHECK(times.times().until_ns == 500);
  check_pieces(times.pieces(0, kAll, 0), {{100, 500, 80}});
}

TEST_CASE(
    "what threads share is nobody's; without a begin it is where it was written out") {
  FileBuilder file = file_of({{1, 0, 100, 200, 80}});
  const auto text = [](uint64_t base) {
    return BlockBuilder::shared(9 + base, base)
        .add_full(ARCTRACE_TYPE_TEXT, 1, base == 0 ? 250 : base, text_body("hi"));
  };
  file.block(text(220), 0, 5, 230).block(text(0), 0, 6, 260);
  file.block(text(0), 0, 7, 0);  // as in a buffer, where its time is not known
  const BlockTimes times = times_of(file);
  const uint64_t bytes = text(0).content.size();
  check_pieces(times.pieces(kNoIndex, kAll, 0), {{220, 230, bytes}, {260, 260, bytes}});
  CHECK(times.bytes_of(kNoIndex) == 2 * bytes);
  CHECK(times.bytes() == 80 + 2 * bytes);
}

TEST_CASE("of blocks that reach over an end of a range, the part by time") {
  const BlockTimes times =
      times_of(file_of({{1, 0, 100, 200, 80}, {1, 1, 300, 400, 160}}));
  CHECK(times.bytes_in(kAll) == 240);
  CHECK(times.bytes_in({150, 175}) == 20);
  CHECK(times.bytes_in({150, 350}) == 120);
  CHECK(times.bytes_in({201, 299}) == 0);
  CHECK(times.bytes_in({400, 500}) == 0);
  CHECK(times.share_before(100) == 0);
  CHECK(times.share_before(250) == doctest::Approx(80.0 / 240));
  CHECK(times.share_before(350) == doctest::Approx(160.0 / 240));
  CHECK(times.share_before(INT64_MAX) == 1);
  check_pieces(times.pieces(0, {150, 160}, 0), {{100, 200, 80}});
  check_pieces(times.pieces(0, {200, 301}, 0), {{100, 200, 80}, {300, 400, 160}});
}

TEST_CASE("short pieces are joined up to the grain, but not over a pause as long as it") {
  const BlockTimes times = times_of(file_of({{1, 0, 100, 110, 16},
                                             {1, 1, 110, 120, 24},
                                             {1, 2, 121, 130, 32},
                                             {1, 3, 160, 170, 16},
                                             {1, 4, 170, 300, 16}}));
  check_pieces(
      times.pieces(0, kAll, 0),
      {{100, 110, 16}, {110, 120, 24}, {121, 130, 32}, {160, 170, 16}, {170, 300, 16}});
  check_pieces(times.pieces(0, kAll, 20),
               {{100, 120, 40}, {121, 130, 32}, {160, 170, 16}, {170, 300, 16}});
  check_pieces(times.pieces(0, kAll, 30),
               {{100, 130, 72}, {160, 170, 16}, {170, 300, 16}});
  check_pieces(times.pieces(0, kAll, UINT64_MAX), {{100, 300, 104}});
}

TEST_CASE("a trace without blocks of records") {
  const BlockTimes times = times_of(FileBuilder().finish(100));
  CHECK(times.times().from_ns == 0);
  CHECK(times.times().until_ns == 0);
  CHECK(times.bytes() == 0);
  CHECK(times.bytes_in(kAll) == 0);
  CHECK(times.share_before(INT64_MAX) == 0);
}

}  // namespace
}  // namespace arctrace::testing
