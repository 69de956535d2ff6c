#include <arctrace/format.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/record.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/trace_builder.hpp"

namespace arctrace::testing {
namespace {

using reader::RawRecord;
using reader::RecordCursor;

constexpr size_t kWords = 96;
using Words = std::vector<uint32_t>;

// Writers of a full block, whose stores come one by one: for each record word 0 in
// progress, the rest, and word 0 without the bit. The rest looks like words 0, too.
class Block {
 public:
  explicit Block(std::mt19937_64& random) : random_(random) {
    size_t at = 0;
    while (kWords - at >= 12) {
      const size_t length = 5 + random_() % 6;
      records_.push_back({at, length, 0});
      at += length;
      if (random_() % 4 == 0) at += 1 + random_() % 2;  // its writer has died
    }
  }

  // Does one store of one of the writers.
  void step() {
    // Three write at a time.
    size_t first = 0;
    while (first < records_.size() && records_[first].is_complete()) ++first;
    const size_t left = std::min<size_t>(3, records_.size() - first);
    if (left == 0) return;
    Record& record = records_[first + random_() % left];
    if (record.is_complete()) return;
    if (record.stores == 0) {
      words[record.at] = word0(record) | ARCTRACE_IN_PROGRESS;
    } else if (record.stores < record.length) {
      words[record.at + record.stores] = body_word(record, record.stores);
    } else {
      words[record.at] = word0(record);
    }
    ++record.stores;
  }

  // Copies all words, in any order, while the writers continue.
  Words copy() {
    std::vector<size_t> order(kWords);
    std::iota(order.begin(), order.end(), 0);
    switch (random_() % 3) {
      case 0:
        std::shuffle(order.begin(), order.end(), random_);
        break;
      case 1:
        std::reverse(order.begin(), order.end());
        break;
      default:
        break;
    }
    Words copied(kWords);
    const uint64_t often = 1 + random_() % 40;
    for (const size_t at : order) {
      if (random_() % often == 0) step();
      copied[at] = words[at];
    }
    return copied;
  }

  std::vector<size_t> complete() const {
    std::vector<size_t> offsets;
    for (const Record& record : records_) {
      if (record.is_complete()) offsets.push_back(record.at * sizeof(uint32_t));
    }
    return offsets;
  }

  // Whether these are the bytes of the record at that place.
  bool has(const RawRecord& found) const {
    for (const Record& record : records_) {
      if (record.at * sizeof(uint32_t) != found.offset) continue;
      if (found.body.size() != record.length * sizeof(uint32_t) - ARCTRACE_FULL_HEAD_SIZE)
        return false;
      for (size_t i = ARCTRACE_FULL_HEAD_SIZE / 4; i < record.length; ++i) {
        const auto word = load_part_untrusted<uint32_t>(
            found.body.subspan(i * sizeof(uint32_t) - ARCTRACE_FULL_HEAD_SIZE));
        if (word != body_word(record, i)) return false;
      }
      return true;
    }
    return false;
  }

  Words words = Words(kWords, ARCTRACE_FILL);

 private:
  struct Record {
    size_t at, length;  // in words
    size_t stores;      // stores that were made
    bool is_complete() const { return stores > length; }
  };

  static uint32_t word0(const Record& record) {
    return ARCTRACE_WORD0(ARCTRACE_TYPE_EVENT,
                          static_cast<uint32_t>(record.length * sizeof(uint32_t)));
  }
  static uint32_t body_word(const Record& record, size_t i) {
    return ARCTRACE_WORD0(ARCTRACE_TYPE_MARK, 16u) +
           (static_cast<uint32_t>(record.at + i) << 20 & 0x0F00'0000u);
  }

  std::mt19937_64& random_;
  std::vector<Record> records_;
};

struct Walked {
  std::vector<size_t> complete;  // their offsets
  uint64_t wrong = 0;            // complete records that were never written, or broken
};

Walked walk(const Block& block, const Words& words) {
  Walked walked;
  RecordCursor cursor(ARCTRACE_FORM_FULL, 0, false);
  cursor.set_window(std::as_bytes(std::span(words)), 0, true);
  for (RawRecord record;;) {
    const RecordCursor::Result result = cursor.next_untrusted(record);
    if (result == RecordCursor::Result::kBroken) ++walked.wrong;
    if (result != RecordCursor::Result::kRecord) return walked;
    if (record.in_progress) continue;
    walked.complete.push_back(record.offset);
    if (!block.has(record)) ++walked.wrong;
  }
}

TEST_CASE(
    "three copies of a block that is written have its whole records, and no other") {
  std::mt19937_64 random(test_seed());
  uint64_t wrong_in_plain_copies = 0, kept = 0;
  for (int round = 0; round < 20'000; ++round) {
    Block block(random);
    for (uint64_t steps = random() % 200; steps > 0; --steps) block.step();
    std::vector<size_t> before = block.complete();
    const Words first = block.copy();
    const Words second = block.copy();
    Words third = block.copy();
    wrong_in_plain_copies += walk(block, first).wrong;
    const size_t end = reader::begun_between_untrusted(std::as_bytes(std::span(first)),
                                                       std::as_bytes(std::span(second)));
    reader::join_live_copies_untrusted(std::as_bytes(std::span(second)), end,
                                       std::as_writable_bytes(std::span(third)));
    const Walked walked = walk(block, third);
    REQUIRE(walked.wrong == 0);
    std::erase_if(before, [&](size_t offset) { return offset >= end; });
    REQUIRE(std::includes(walked.complete.begin(), walked.complete.end(), before.begin(),
                          before.end()));
    kept += before.size();
  }
  CHECK(wrong_in_plain_copies > 100);
  CHECK(kept > 20'000);
}

TEST_CASE("of copies that are no block nothing beyond their end is written") {
  constexpr uint32_t kBehind = 0x600DC0DE;
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < 2'000; ++round) {
    Words copies[3];
    const size_t size = random() % 20;
    for (Words& copy : copies) {
      for (size_t i = 0; i < size; ++i) {
        uint32_t word =
            random() % 3 == 0 ? ARCTRACE_FILL : static_cast<uint32_t>(random());
        if (random() % 2 == 0) word &= 0xFFFF'003Cu;
        copy.push_back(word);
      }
      copy.push_back(kBehind);
    }
    const auto part = [&](int i) {
      return std::as_bytes(std::span(copies[i]).first(size));
    };
    const size_t end = reader::begun_between_untrusted(part(0), part(1));
    CHECK(end <= size * sizeof(uint32_t));
    reader::join_live_copies_untrusted(
        part(1), end, std::as_writable_bytes(std::span(copies[2]).first(size)));
    CHECK(copies[2].back() == kBehind);
  }
}

// A block in memory whose writers make their stores between reads.
class WrittenInput : public reader::Input {
 public:
  explicit WrittenInput(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return bytes_.size(); }
  absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    if (into.size() > sizeof(uint64_t)) ++copies;
    if (copies == writes_at)
      std::copy(written.begin(), written.end(), bytes_.begin() + 128);
    const size_t count = std::min<size_t>(into.size(), bytes_.size() - offset);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), count,
                into.begin());
    return count;
  }

  int copies = 0;
  int writes_at = 0;               // before this copy: 1 is the first one
  std::vector<std::byte> written;  // written then, at the first record's place

 private:
  const std::string name_ = "a block";
  std::vector<std::byte> bytes_;
};

std::vector<std::byte> image_of(const BlockBuilder& block, uint64_t next) {
  BlockBuilder copy = block;
  copy.header.next = next;
  Bytes bytes = copy.image();
  bytes.fill(4096 - bytes.size(), 0xFF);
  return bytes.data();
}

reader::BlockRef ref_of(reader::BlockRef::Kind kind) {
  reader::BlockRef ref;
  ref.kind = kind;
  ref.size = 4096;
  return ref;
}

TEST_CASE("a block into which nobody writes is copied three times, closed or not") {
  using Kind = reader::BlockRef::Kind;
  const BlockBuilder shared =
      BlockBuilder::shared(1, 0).add_full(ARCTRACE_TYPE_ENTER, 1, 110, Bytes().u64(2));
  const BlockBuilder exclusive = BlockBuilder::exclusive(1, 0, 1, 0).stack(0, {});
  for (const uint64_t next : {uint64_t{152}, uint64_t{4096}, uint64_t{8192}}) {
    CAPTURE(next);
    for (const uint32_t begin : {0u, 128u}) {
      std::vector<std::byte> out(4096 - begin);
      WrittenInput input(image_of(shared, next));
      REQUIRE(*reader::read_live_untrusted(input, ref_of(Kind::kShared), begin, out) ==
              out.size());
      CHECK(input.copies == 3);
      CHECK(std::equal(out.begin(), out.end(), image_of(shared, next).begin() + begin));
      WrittenInput own(image_of(exclusive, next));
      REQUIRE(
          reader::read_live_untrusted(own, ref_of(Kind::kExclusive), begin, out).ok());
      CHECK(own.copies == 3);
    }
  }
}

TEST_CASE("a record that is begun late hides no complete one that stands after it") {
  const Bytes body = Bytes().u64(2);
  const BlockBuilder both = BlockBuilder::shared(1, 0)
                                .add_full(ARCTRACE_TYPE_ENTER, 1, 110, body)
                                .add_full(ARCTRACE_TYPE_ENTER, 1, 111, body);
  std::vector<std::byte> whole = image_of(both, 176);
  std::vector<std::byte> late = whole;
  std::fill_n(late.begin() + 128, 24, std::byte{0xFF});
  WrittenInput input(late);
  input.writes_at = 2;
  input.written.assign(whole.begin() + 128, whole.begin() + 152);
  std::vector<std::byte> out(4096 - 128);
  REQUIRE(reader::read_live_untrusted(input, ref_of(reader::BlockRef::Kind::kShared), 128,
                                      out)
              .ok());
  CHECK(input.copies == 4);
  CHECK(std::equal(out.begin(), out.end(), whole.begin() + 128));
}

}  // namespace
}  // namespace arctrace::testing
