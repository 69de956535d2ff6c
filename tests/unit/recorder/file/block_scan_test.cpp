// The walk over the records of a block, and the copy of a block that is still written
// to.
#include <doctest/doctest.h>

#include <array>
#include <cstring>

#include "src/recorder/file/trace_file.hpp"
#include "tests/support/single_step.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/test_session.hpp"
#include "tests/support/trace_builder.hpp"

namespace arctrace::testing {
namespace {

constexpr uint32_t kBlockSize = 4096;

std::vector<std::byte> block_of(const BlockBuilder& builder) {
  std::vector<std::byte> bytes = builder.image().data();
  bytes.resize(kBlockSize, std::byte{0xFF});
  return bytes;
}

recorder::BlockContents scan(const BlockBuilder& builder) {
  std::vector<std::byte> bytes = block_of(builder);
  return recorder::scan_block_untrusted(bytes);
}

TEST_CASE("block scan: an empty block is its header") {
  const recorder::BlockContents contents = scan(BlockBuilder::exclusive(1, 0, 0, 100));
  CHECK(contents.used == ARCTRACE_BLOCK_HEADER_SIZE);
  CHECK(contents.records == 0);
  CHECK(contents.torn == 0);
}

TEST_CASE("block scan: what programs wrote is counted, what describes it is not") {
  BlockBuilder block = BlockBuilder::exclusive(1, 0, 0, 100);
  block.add(ARCTRACE_TYPE_LOST, 100, lost_body(0, 5, 100)).stack(100, {1, 2});
  block.time(200).enter(200, 5).exit(201).add(ARCTRACE_TYPE_PAD, 202, Bytes().u32(1));
  block.add(ARCTRACE_TYPE_MARK, 203, text_body("mark"));
  block.add(ARCTRACE_TYPE_EVENT, 204, event_body(1), true);
  const recorder::BlockContents contents = scan(block);
  CHECK(contents.records == 3);
  CHECK(contents.torn == 1);
  CHECK(contents.used == block.size());
}

// Each is {writer, facts, first ticks}.
using Listed = std::vector<std::array<uint64_t, 3>>;

Listed listed(const BlockBuilder& builder, BlockWriters& writers) {
  std::vector<std::byte> bytes = block_of(builder);
  recorder::scan_block_untrusted(bytes, &writers);
  Listed list;
  for (const arctrace_block_writer& writer : writers.sorted()) {
    list.push_back({writer.writer, writer.facts, writer.first_ticks});
  }
  return list;
}

TEST_CASE("block scan: the writers of a shared block, and what their first records are") {
  constexpr uint32_t kWhole = ARCTRACE_FACT_WHOLE_STACK, kTells = ARCTRACE_FACT_TELLS;
  const std::vector<uint64_t> frames{1, 2};
  BlockBuilder block = BlockBuilder::shared(0, 100);
  block.add_full(ARCTRACE_TYPE_STACK, 7, 100, stack_body(frames));
  block.add_full(ARCTRACE_TYPE_ENTER, 7, 100, key_body(1));
  // The first record is the first one by time, then by place; a loss before it, and
  // records in progress, do not count.
  block.add_full(ARCTRACE_TYPE_EXIT, 3, 120);
  block.add_full(ARCTRACE_TYPE_STACK, 3, 119, stack_body({}));
  block.add_full(ARCTRACE_TYPE_LOST, 4, 130, lost_body(0, 5, 100));
  block.add_full(ARCTRACE_TYPE_STACK, 4, 131, stack_body({}));
  block.add_full(ARCTRACE_TYPE_EXIT_NAMED, 5, 90, key_body(1));
  block.add_full(ARCTRACE_TYPE_STACK, 5, 91, stack_body({}));
  block.add_full(ARCTRACE_TYPE_STACK, 6, 140, Bytes().u32(3).u32(1).u64(9));
  block.add_full(ARCTRACE_TYPE_STACK, 2, 150, stack_body(frames).u32(1));
  block.add_full(ARCTRACE_TYPE_MARK, 1, 10, text_body("mark"), true);
  BlockWriters writers;
  const Listed expected{{2, ARCTRACE_FACT_NEEDED | ARCTRACE_FACT_FRAMES, 150},
                        {3, kWhole | kTells, 119},
                        {4, kWhole, 130},
                        {5, ARCTRACE_FACT_NEEDED | kTells, 90},
                        {6, ARCTRACE_FACT_FRAMES, 140},
                        {7, kWhole | kTells | ARCTRACE_FACT_FRAMES, 100}};
  CHECK(listed(block, writers) == expected);
  CHECK(writers.last_ticks() == 150);
  // Writers of an exclusive block, of definitions and of the kernel are not listed.
  CHECK(listed(BlockBuilder::exclusive(1, 0, 0, 100).enter(200, 5), writers).empty());
  BlockBuilder definitions = BlockBuilder::shared(0, 0, ARCTRACE_CLASS_DEFINITIONS);
  definitions.add_full(ARCTRACE_TYPE_STRING, 1, 5, string_body(1, 1, "name"));
  CHECK(listed(definitions, writers).empty());
  block.header.writer = ARCTRACE_WRITER_KERNEL;
  CHECK(listed(block, writers).empty());
}

TEST_CASE("block scan: a crowd of writers") {
  BlockBuilder block = BlockBuilder::shared(0, 100);
  constexpr uint32_t kWriters = 150;
  for (uint32_t i = 0; i < kWriters; ++i) {
    block.add_full(ARCTRACE_TYPE_EXIT, (i * 7919) % kWriters + 1, 100 + i);
  }
  BlockWriters writers;
  const Listed list = listed(block, writers);
  REQUIRE(list.size() == kWriters);
  for (uint32_t i = 0; i < kWriters; ++i) CHECK(list[i][0] == i + 1);
}

TEST_CASE("block scan: holes are stepped over word by word") {
  BlockBuilder block = BlockBuilder::shared(0, 100);
  block.hole(1).add_full(ARCTRACE_TYPE_INSTANT, 1, 5, Bytes().u32(1));
  block.hole(7).add_full(ARCTRACE_TYPE_INSTANT, 2, 4, Bytes().u32(1)).hole(3);
  const recorder::BlockContents contents = scan(block);
  CHECK(contents.records == 2);
  CHECK(contents.used == block.size() - 12);  // the last hole is the free end
}

TEST_CASE("block scan: the last record's last words may be 0xffffffff") {
  for (const uint64_t value : {UINT64_MAX, uint64_t{UINT32_MAX} << 32}) {
    BlockBuilder block = BlockBuilder::exclusive(1, 0, 0, 100);
    block.add(ARCTRACE_TYPE_COUNTER, 100, Bytes().u32(3).u64(value));
    CHECK(scan(block).used == block.size());
    CHECK(scan(block).records == 1);
  }
}

TEST_CASE("block scan: a senseless word ends the walk, and what lies after is kept") {
  for (const uint32_t word : {0u, 0x00100004u, 0x00100006u, 0x0010FFFCu, 0x80100000u}) {
    CAPTURE(word);
    BlockBuilder block = BlockBuilder::exclusive(1, 0, 0, 100);
    block.enter(100, 1);
    block.content.u32(word);
    block.enter(101, 1);
    const recorder::BlockContents contents = scan(block);
    CHECK(contents.records == 1);
    CHECK(contents.used == block.size());
  }
}

TEST_CASE("block scan: own functions, open or entered, are told from library calls") {
  constexpr uint64_t kLibrary = ARCTRACE_FRAME_NAME_BIT | ARCTRACE_FRAME_LIBRARY_BIT | 3;
  constexpr uint64_t kScope = ARCTRACE_FRAME_NAME_BIT | 3;
  BlockBuilder library = BlockBuilder::exclusive(1, 0, 0, 100);
  library.stack(100, {kLibrary, kLibrary}).enter(100, kLibrary).exit(101);
  library.add(ARCTRACE_TYPE_UNWIND, 102, Bytes().u32(1));
  library.add(ARCTRACE_TYPE_ENTER, 103, key_body(1), true);      // in progress
  library.add(ARCTRACE_TYPE_STACK, 104, Bytes().u32(9).u32(9));  // keys that are missing
  CHECK_FALSE(scan(library).has_own);
  for (const uint64_t own : {uint64_t{0x401000}, kScope}) {
    BlockBuilder entered = library;
    CHECK(scan(entered.enter(105, own)).has_own);
    BlockBuilder open = library;
    CHECK(scan(open.stack(105, {kLibrary, own, kLibrary})).has_own);
    BlockBuilder left = library;
    CHECK(scan(left.add(ARCTRACE_TYPE_EXIT_NAMED, 105, key_body(own))).has_own);
  }
  BlockBuilder event = library;
  CHECK(scan(event.add(ARCTRACE_TYPE_INSTANT, 105, Bytes().u32(1))).has_own);
  BlockBuilder shared = BlockBuilder::shared(0, 100);
  shared.add_full(ARCTRACE_TYPE_ENTER, 1, 5, key_body(kLibrary));
  CHECK_FALSE(scan(shared).has_own);
  CHECK(scan(shared.add_full(ARCTRACE_TYPE_ENTER, 1, 6, key_body(kScope))).has_own);
}

TEST_CASE("block scan: no bytes lead it out of the block") {
  Random random(test_seed());
  std::vector<std::byte> bytes(512);
  for (int i = 0; i < 20000; ++i) {
    bytes.assign(512, std::byte{0xFF});
    const uint32_t likely = random.below(3);
    for (size_t at = 128; at < 512; at += 4) {
      auto word = static_cast<uint32_t>(random.next() >> random.below(32));
      if (likely == 1) word &= 0x003F00FC;  // makes small lengths
      if (likely == 2 && random.below(2) == 0) word = ARCTRACE_FILL;
      std::memcpy(bytes.data() + at, &word, 4);
    }
    const recorder::BlockContents contents = recorder::scan_block_untrusted(bytes);
    REQUIRE(contents.used >= 128);
    REQUIRE(contents.used <= 512);
    REQUIRE(contents.records <= (512 - 128) / 8);
    const std::vector<std::byte> copy =
        recorder::copy_live_block_untrusted(bytes.data(), 512, 512);
    REQUIRE(copy.size() == 512);
  }
}

TEST_CASE("live copy: committed records whole, of one in progress the first two words") {
  BlockBuilder block = BlockBuilder::shared(3, 100);
  block.add_full(ARCTRACE_TYPE_INSTANT, 1, 5, Bytes().u32(77));
  block.add_full(ARCTRACE_TYPE_EVENT, 2, 6, event_body(1, Bytes().u64(99)), true);
  block.hole(2).add_full(ARCTRACE_TYPE_INSTANT, 1, 7, Bytes().u32(78));
  std::vector<std::byte> bytes = block_of(block);
  const std::vector<std::byte> copy =
      recorder::copy_live_block_untrusted(bytes.data(), kBlockSize, kBlockSize);
  constexpr size_t kStateAndNext = 16;
  CHECK(std::memcmp(copy.data(), bytes.data(), kStateAndNext) == 0);
  for (size_t i = 64; i < kBlockSize; ++i) {
    const bool is_torn_body = i >= 128 + 20 + 8 && i < 128 + 20 + 28;
    REQUIRE(copy[i] == (is_torn_body ? std::byte{0xFF} : bytes[i]));
  }
}

// A writer that counts as stopped stores the first words of its record, or commits it,
// after every eleventh instruction of the copy. Its writer word would itself be a valid
// word 0. AddressSanitizer adds too many instructions to step through.
#if !defined(__SANITIZE_ADDRESS__)
TEST_CASE("live copy: a record that is begun in a hole meanwhile is not misread") {
  if (!can_single_step()) return testing::skip_case("no process may be stepped here");
  constexpr uint32_t kWords = 7;
  constexpr uint32_t kHole = 128 + 20;
  constexpr uint32_t kWord0 = ARCTRACE_WORD0(ARCTRACE_TYPE_EVENT, 4 * kWords);
  constexpr uint32_t kLooksLikeWord0 = ARCTRACE_WORD0(ARCTRACE_TYPE_INSTANT, 20);
  const std::array<uint32_t, kWords> record = {kWord0 | ARCTRACE_IN_PROGRESS,
                                               kLooksLikeWord0,
                                               kLooksLikeWord0,
                                               0,
                                               1,
                                               kLooksLikeWord0,
                                               0};
  BlockBuilder block = BlockBuilder::shared(3, 100);
  block.add_full(ARCTRACE_TYPE_INSTANT, 1, 5, Bytes().u32(77));
  block.hole(kWords).add_full(ARCTRACE_TYPE_INSTANT, 1, 7, Bytes().u32(78));
  constexpr uint32_t kSize = kHole + 4 * kWords + 20;  // small, for fewer steps
  std::vector<std::byte> before = block_of(block);
  before.resize(kSize);
  Random random(test_seed());
  for (const uint32_t stored : {2U, kWords}) {
    bool ended = false;
    for (uint64_t cut = random.below(11); !ended; cut += 11) {
      std::vector<std::byte> bytes = before;
      std::vector<std::byte> copy;
      ended = true;
      single_step(
          [&] { copy = recorder::copy_live_block_untrusted(bytes.data(), kSize, kSize); },
          [&](uint64_t step) {
            if (step < cut) return true;
            ended = false;
            std::memcpy(bytes.data() + kHole, record.data(), size_t{4} * stored);
            if (stored == kWords) std::memcpy(bytes.data() + kHole, &kWord0, 4);
            return false;
          });
      std::vector<uint16_t> types;
      recorder::for_each_full_record(
          copy, [&](uint16_t type, uint64_t, std::span<const std::byte>) {
            types.push_back(type);
          });
      std::vector<uint16_t> expected = {ARCTRACE_TYPE_INSTANT, ARCTRACE_TYPE_INSTANT};
      if (types.size() == 3) {
        REQUIRE(stored == kWords);
        expected.insert(expected.begin() + 1, ARCTRACE_TYPE_EVENT);
        REQUIRE(std::memcmp(copy.data() + kHole + 4, record.data() + 1,
                            size_t{4} * (kWords - 1)) == 0);
      }
      CAPTURE(stored);
      CAPTURE(cut);
      REQUIRE(types == expected);
    }
  }
}
#endif

TEST_CASE("live copy: of an exclusive block nothing after the first hole") {
  BlockBuilder block = BlockBuilder::exclusive(1, 0, 0, 100);
  block.enter(101, 1).hole(1).enter(102, 2);
  std::vector<std::byte> bytes = block_of(block);
  std::vector<std::byte> copy =
      recorder::copy_live_block_untrusted(bytes.data(), kBlockSize, kBlockSize);
  CHECK(recorder::scan_block_untrusted(copy).records == 1);
}

TEST_CASE("live copy: nothing from where records may still be begun") {
  BlockBuilder block = BlockBuilder::shared(3, 100);
  for (uint32_t i = 0; i < 4; ++i) {
    block.add_full(ARCTRACE_TYPE_INSTANT, 1, 5, Bytes().u32(i));
  }
  std::vector<std::byte> bytes = block_of(block);
  for (uint32_t records = 0; records <= 4; ++records) {
    std::vector<std::byte> copy =
        recorder::copy_live_block_untrusted(bytes.data(), kBlockSize, 128 + records * 20);
    CHECK(recorder::scan_block_untrusted(copy).records == records);
  }
}

}  // namespace
}  // namespace arctrace::testing
