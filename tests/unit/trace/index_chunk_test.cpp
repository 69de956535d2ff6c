// The INDEX of a file is used, and checked.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reader/trace/input.hpp"
#include "reader/trace/trace.hpp"
#include "tests/support/trace_builder.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

constexpr uint32_t kFileBlocks = 16;
constexpr TimeRange kRange{12'000, 12'500};

// The blocks [first, last) of a thread with one for each microsecond, in which it enters
// a function and leaves it.
FileBuilder file_with_blocks(uint32_t first, uint32_t last, uint32_t calls) {
  FileBuilder file;
  file.header.block_count = 1024;
  file.header.total_size = file.header.blocks_offset + uint64_t{1024} * 4096;
  // Each part has another hand-out in block 0.
  file.program({}, 1, "main", first == 0 ? 0 : file.header.block_count);
  for (uint32_t i = first; i < last; ++i) {
    const uint64_t ticks = 1000 * (uint64_t{i} + 1);
    BlockBuilder block = BlockBuilder::exclusive(1, i, i + 1, ticks);
    block.stack(ticks, {});
    for (uint32_t call = 0; call < calls; ++call) {
      block.enter(ticks + 10 + call, ARCTRACE_FRAME_NAME_BIT | 1);
      block.add(ARCTRACE_TYPE_EXIT, ticks + 10 + call);
    }
    file.block(block, 0, i + 1);
  }
  file.finish(100'000);
  return file;
}

FileBuilder indexed_file(uint32_t calls = 1) {
  return file_with_blocks(0, kFileBlocks, calls);
}

// Counts the reads.
class CountingInput : public Input {
 public:
  explicit CountingInput(std::vector<std::byte> content)
      : input_(memory_input("index", std::move(content))) {}
  const std::string& name() const override { return input_->name(); }
  uint64_t size() const override { return input_->size(); }
  absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    absl::StatusOr<size_t> read = input_->read(offset, into);
    if (read.ok()) bytes += *read;
    return read;
  }

  uint64_t bytes = 0;

 private:
  std::unique_ptr<Input> input_;
};

struct Opened {
  std::vector<std::string> rules;
  std::vector<int64_t> times;  // of the records in the range
  size_t records = 0;          // records that were read
  uint64_t bytes = 0;          // bytes that were read
};

Opened open_parts_range(const std::vector<std::vector<std::byte>>& parts,
                        OpenOptions options = {.range = kRange}) {
  std::vector<std::unique_ptr<Input>> inputs;
  std::vector<const CountingInput*> counting;
  for (const std::vector<std::byte>& bytes : parts) {
    auto input = std::make_unique<CountingInput>(bytes);
    counting.push_back(input.get());
    inputs.push_back(std::move(input));
  }
  absl::StatusOr<Trace> trace = Trace::open(std::move(inputs), options);
  REQUIRE(trace.ok());
  Opened opened;
  REQUIRE(trace
              ->read([&](const Record& record) {
                ++opened.records;
                if (kRange.contains(record.time_ns))
                  opened.times.push_back(record.time_ns);
                return true;
              })
              .ok());
  for (const CountingInput* input : counting) opened.bytes += input->bytes;
  for (const Finding& finding : trace->findings()) opened.rules.push_back(finding.rule);
  return opened;
}

Opened open_range(std::vector<std::byte> bytes, OpenOptions options = {.range = kRange}) {
  return open_parts_range({std::move(bytes)}, options);
}

// A recording in two files; `indexed`: which of them have an index.
std::vector<std::vector<std::byte>> two_parts(uint32_t calls, std::vector<bool> indexed) {
  std::vector<std::vector<std::byte>> parts;
  for (uint32_t i = 0; i < 2; ++i) {
    FileBuilder file =
        file_with_blocks(i * kFileBlocks / 2, (i + 1) * kFileBlocks / 2, calls);
    if (indexed[i]) file.index();
    parts.push_back(file.file());
  }
  return parts;
}

const std::vector<std::string> kWrongIndex{"F11"};

}  // namespace

TEST_CASE("a range by the index: the same records as without") {
  const Opened without = open_range(indexed_file().file());
  const Opened with = open_range(indexed_file().index().file());
  CHECK(without.rules.empty());
  CHECK(with.rules.empty());
  CHECK(with.times == without.times);
  CHECK(!with.times.empty());
  CHECK(with.records == without.records);
  CHECK(open_range(indexed_file().index().file(), {.verifies_checksums = true})
            .rules.empty());
}

TEST_CASE("by the index, a range costs little of the file") {
  FileBuilder file = indexed_file(100);
  const Opened without = open_range(file.file());
  const uint64_t size = file.index().file().size();
  const Opened with = open_range(file.file());
  CHECK(with.times == without.times);
  CHECK(with.bytes < size / 2);
  CHECK(without.bytes > size / 2);
}

TEST_CASE(
    "each bit of an index counts: a check finds it, and a range has the same records") {
  const Opened right = open_range(indexed_file().file());
  FileBuilder file = indexed_file();
  const std::vector<std::byte> good = file.index().file();
  const size_t payload = file.header.index_offset + sizeof(arctrace_chunk_header);
  for (size_t at = file.header.index_offset; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> bad = good;
      bad[at] ^= static_cast<std::byte>(1 << bit);
      CAPTURE(at - file.header.index_offset);
      CAPTURE(bit);
      const size_t in_entry = (at - payload) % sizeof(arctrace_index_entry);
      const bool is_facts = at >= payload && (in_entry == 20 || in_entry == 21);
      CHECK(open_range(bad).times == right.times);
      if (at < payload || is_facts) continue;
      CHECK(open_range(bad, {.verifies_checksums = true}).rules == kWrongIndex);
    }
  }
}

// The same records as in indexed_file(), in the chain of all threads.
FileBuilder chain_file(uint32_t calls = 1) {
  FileBuilder file;
  file.header.block_count = 1024;
  file.header.total_size = file.header.blocks_offset + uint64_t{1024} * 4096;
  file.program({}, 1, "main", 0);
  for (uint32_t i = 0; i < kFileBlocks; ++i) {
    const uint64_t ticks = 1000 * (uint64_t{i} + 1);
    BlockBuilder block = BlockBuilder::shared(i + 1, ticks);
    block.add_full(ARCTRACE_TYPE_STACK, 1, ticks, stack_body({}));
    for (uint32_t call = 0; call < calls; ++call) {
      block.add_full(ARCTRACE_TYPE_ENTER, 1, ticks + 10 + call,
                     key_body(ARCTRACE_FRAME_NAME_BIT | 1));
      block.add_full(ARCTRACE_TYPE_EXIT, 1, ticks + 10 + call);
    }
    file.block(block, 0, i + 1);
  }
  file.finish(100'000);
  return file;
}

TEST_CASE("by the lists of writers, a range costs little of the chain") {
  FileBuilder file = chain_file(60);
  const Opened without = open_range(file.file());
  const uint64_t size = file.index().file().size();
  const Opened with = open_range(file.file());
  CHECK(with.rules.empty());
  CHECK(with.times == without.times);
  CHECK(!with.times.empty());
  CHECK(with.records == without.records);
  CHECK(with.records < 60 * 2 * 6);
  CHECK(with.bytes < size / 2);
  CHECK(without.bytes > size / 2);
  CHECK(open_range(file.file(), {.verifies_checksums = true}).rules.empty());
}

TEST_CASE("each bit of the lists of writers counts: a check finds it") {
  FileBuilder file = chain_file();
  const std::vector<std::byte> good = file.index().file();
  const size_t size = size_t{kFileBlocks} * 2 * sizeof(arctrace_block_writer);
  for (size_t at = file.header.index_offset - size; at < file.header.index_offset; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> bad = good;
      bad[at] ^= static_cast<std::byte>(1 << bit);
      CAPTURE(file.header.index_offset - at);
      CAPTURE(bit);
      CHECK(open_range(bad, {.verifies_checksums = true}).rules == kWrongIndex);
      open_range(bad);
    }
  }
}

TEST_CASE("lists of other writers than the chunks have are not used") {
  const Opened right = open_range(chain_file().file());
  FileBuilder file = chain_file();
  const std::vector<std::byte> good = file.index().file();
  const size_t lists =
      file.header.index_offset - size_t{kFileBlocks} * 2 * sizeof(arctrace_block_writer);
  // The chunk, the number of writers, the block's last ticks, the kind of the chunk.
  for (const size_t at : {lists, lists + 4, lists + 15, lists - 28}) {
    CAPTURE(lists - at);
    std::vector<std::byte> bad = good;
    bad[at] ^= std::byte{0x80};
    const Opened opened = open_range(bad);
    if (at != lists + 15) CHECK(opened.rules == kWrongIndex);
    CHECK(opened.times == right.times);
  }
}

TEST_CASE("an index that is not where the header says is not used") {
  const Opened right = open_range(indexed_file().file());
  FileBuilder file = indexed_file().index();
  const uint64_t size = file.file().size();
  for (const uint64_t offset :
       {uint64_t{1}, file.header.index_offset + 4, file.header.index_offset - 32,
        uint64_t{ARCTRACE_HEADER_SIZE}, size - 8, size, size + 1, ~uint64_t{0},
        ~uint64_t{31}}) {
    CAPTURE(offset);
    file.header.index_offset = offset;
    const Opened opened = open_range(file.file());
    CHECK(opened.rules == kWrongIndex);
    CHECK(opened.times == right.times);
  }
}

TEST_CASE("an index of other blocks than there are: found when they are read") {
  const Opened right = open_range(indexed_file().file());
  FileBuilder file = indexed_file();
  std::vector<std::byte> bytes = file.index().file();
  const size_t entry_size = sizeof(arctrace_index_entry);
  const size_t payload = file.header.index_offset + sizeof(arctrace_chunk_header);
  // The order of two blocks, one in the range and one far from it, is changed in their
  // serials and times.
  for (const size_t at : {size_t{40}, size_t{56}}) {
    std::swap_ranges(
        bytes.begin() + static_cast<long>(payload + 12 * entry_size + at),
        bytes.begin() + static_cast<long>(payload + 12 * entry_size + at + 8),
        bytes.begin() + static_cast<long>(payload + 5 * entry_size + at));
  }
  const Opened opened = open_range(bytes);
  CHECK(opened.rules == kWrongIndex);
  CHECK(opened.times == right.times);
  CHECK(open_range(bytes, {.verifies_checksums = true}).rules == kWrongIndex);
}

TEST_CASE("facts that an index lacks are found by a check") {
  FileBuilder file = indexed_file();
  BlockBuilder block = BlockBuilder::exclusive(2, 0, 500, 1000);
  block.stack(1000, {});
  block.add(ARCTRACE_TYPE_VFORK_BEGIN, 1010);
  block.add(ARCTRACE_TYPE_VFORK_END, 1020, Bytes().u32(7));
  FileBuilder with;
  with.header = file.header;
  with.program({}, 1, "main", 0);
  with.program({.process = 2, .pid = 7}, 2, "other", 1024);
  with.block(block, 0, 500);
  with.finish(100'000);
  std::vector<std::byte> bytes = with.index().file();
  CHECK(open_range(bytes, {.verifies_checksums = true}).rules.empty());
  const size_t facts = with.header.index_offset + sizeof(arctrace_chunk_header) +
                       2 * sizeof(arctrace_index_entry) + 20;
  REQUIRE(bytes[facts] == std::byte{ARCTRACE_FACT_KNOWN | ARCTRACE_FACT_NEEDED});
  bytes[facts] = std::byte{ARCTRACE_FACT_KNOWN};
  CHECK(open_range(bytes, {.verifies_checksums = true}).rules == kWrongIndex);
}

TEST_CASE("a range of several files by the index of each: the same records as without") {
  const Opened without = open_parts_range(two_parts(1, {false, false}));
  CHECK(without.rules == std::vector<std::string>());
  CHECK(!without.times.empty());
  for (const std::vector<bool>& indexed :
       {std::vector<bool>{true, true}, {true, false}, {false, true}}) {
    const Opened with = open_parts_range(two_parts(1, indexed));
    CHECK(with.rules.empty());
    CHECK(with.times == without.times);
    CHECK(with.records == without.records);
    CHECK(open_parts_range(two_parts(1, indexed), {.verifies_checksums = true})
              .rules.empty());
  }
}

TEST_CASE("by their indices, a range costs little of several files") {
  const std::vector<std::vector<std::byte>> parts = two_parts(100, {true, true});
  const Opened without = open_parts_range(two_parts(100, {false, false}));
  const Opened with = open_parts_range(parts);
  CHECK(with.times == without.times);
  CHECK(with.bytes < (parts[0].size() + parts[1].size()) / 2);
}

TEST_CASE("an index of one of several files that says something else is not used") {
  const Opened without = open_parts_range(two_parts(1, {false, false}));
  std::vector<std::vector<std::byte>> parts = two_parts(1, {true, true});
  // The chunk of the block in the range has a time that differs from its entry's.
  FileBuilder file = file_with_blocks(kFileBlocks / 2, kFileBlocks, 1);
  const std::vector<std::byte> plain = file.file();
  size_t block = 0;
  for (size_t at = ARCTRACE_HEADER_SIZE; at < plain.size();) {
    const auto chunk = arctrace::load_part_untrusted<arctrace_chunk_header>(
        std::span(plain).subspan(at));
    const auto head = arctrace::load_part_untrusted<arctrace_block_header>(
        std::span(plain).subspan(at + sizeof chunk));
    const bool is_in_range = chunk.kind == ARCTRACE_CHUNK_BLOCK &&
                             head.form == ARCTRACE_FORM_COMPACT &&
                             head.base_ticks == 12'000;
    if (is_in_range) block = at;
    at += sizeof chunk + chunk.size;
  }
  REQUIRE(block != 0);
  parts[1][block + offsetof(arctrace_chunk_header, ticks)] ^= std::byte{1};
  const Opened with = open_parts_range(parts);
  CHECK(with.rules == kWrongIndex);
  CHECK(with.times == without.times);
}
