// The INDEX of a file: what it says is used, and checked.
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

// A thread with a block for each microsecond, in which it enters a function and leaves
// it.
FileBuilder indexed_file(uint32_t calls = 1) {
  FileBuilder file;
  file.header.block_count = 1024;
  file.header.total_size = file.header.blocks_offset + uint64_t{1024} * 4096;
  file.program({}, 1, "main", 0);
  for (uint32_t i = 0; i < kFileBlocks; ++i) {
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

// Counts what is read.
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
  size_t records = 0;          // that were read
  uint64_t bytes = 0;          // the same
};

Opened open_range(std::vector<std::byte> bytes, OpenOptions options = {.range = kRange}) {
  auto input = std::make_unique<CountingInput>(std::move(bytes));
  const CountingInput& counting = *input;
  absl::StatusOr<Trace> trace = Trace::open(std::move(input), options);
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
  opened.bytes = counting.bytes;
  for (const Finding& finding : trace->findings()) opened.rules.push_back(finding.rule);
  return opened;
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
  // The order of two blocks, the one in the range, the other far from it, by their
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
