// Copies blocks whose writers may be at work, and walks through blocks for their facts.
#include <arctrace/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/findings.hpp"
#include "reader/trace/record.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "src/protocol/block_writers.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kWord = sizeof(uint32_t);

uint32_t word_of(std::span<const std::byte> copy, size_t at) {
  return load_part_untrusted<uint32_t>(copy.subspan(at));
}

}  // namespace

// Word 0 is the first store to a record. If a record was begun after the first copy, the
// second one may have words of it without word 0, which are 0xffffffff in the first one.
// If a record was begun during the first copy, that may have words of it without word 0,
// which the second copy has. Below the first difference there is no such record.
size_t begun_between_untrusted(std::span<const std::byte> first,
                               std::span<const std::byte> second) {
  size_t at = 0;
  while (at < first.size() && (word_of(first, at) == ARCTRACE_FILL) ==
                                  (word_of(second, at) == ARCTRACE_FILL)) {
    at += kWord;
  }
  return at;
}

void join_live_copies_untrusted(std::span<const std::byte> second, size_t end,
                                std::span<std::byte> third) {
  size_t at = 0;
  while (at < end) {
    const uint32_t word0 = word_of(second, at);
    std::memcpy(third.data() + at, &word0, kWord);
    if (word0 == ARCTRACE_FILL) {
      at += kWord;
      continue;
    }
    // A record that is complete in the second copy was whole before the third one was
    // made.
    const uint32_t length = word0 & ARCTRACE_LENGTH_MASK;
    if (length == 0 || length % kWord != 0 || length > third.size() - at) return;
    at += length;
  }
  std::memset(third.data() + at, 0xFF, third.size() - at);
}

absl::StatusOr<size_t> read_live_untrusted(Input& input, const BlockRef& ref,
                                           uint32_t begin, std::span<std::byte> out) {
  // In a block in which several write, space was reserved up to here before all copies.
  // The owner of an exclusive block reserves nothing.
  uint64_t reserved = 0;
  if (ref.kind != BlockRef::Kind::kExclusive) {
    const absl::StatusOr<size_t> has_next =
        input.read(ref.offset + offsetof(arctrace_block_header, next),
                   std::as_writable_bytes(std::span(&reserved, 1)));
    if (!has_next.ok()) return has_next.status();
  }
  const uint32_t first_record = ref.records_offset();
  const size_t header =
      std::min<size_t>(out.size(), begin < first_record ? first_record - begin : 0);
  size_t size = out.size();
  const auto copy_to = [&](std::span<std::byte> copy) -> absl::Status {
    const absl::StatusOr<size_t> read = input.read(ref.offset + begin, copy);
    if (!read.ok()) return read.status();
    size = std::min(size, *read & ~(kWord - 1));
    // The copies are made one after the other.
    std::atomic_thread_fence(std::memory_order_acquire);
    return absl::OkStatus();
  };
  const auto records = [&](std::span<std::byte> copy) {
    return copy.first(std::max(size, header)).subspan(header);
  };
  std::vector<std::byte> first(out.size()), second(out.size());
  if (absl::Status s = copy_to(second); !s.ok()) return s;
  // The header is that of before the records.
  const std::vector<std::byte> head(second.begin(),
                                    second.begin() + static_cast<std::ptrdiff_t>(header));
  // A writer that had reserved space and was slow to begin its record may hide complete
  // ones that come after it: then the copies are made again.
  constexpr int kTries = 16;
  size_t end = 0;
  for (int i = 0; i < kTries; ++i) {
    std::swap(first, second);
    if (absl::Status s = copy_to(second); !s.ok()) return s;
    end = begun_between_untrusted(records(first), records(second));
    const bool is_same = end == records(second).size();
    if (is_same || begin + header + end >= reserved) break;
  }
  if (absl::Status s = copy_to(out); !s.ok()) return s;
  if (size <= header) return size;
  std::copy(head.begin(), head.end(), out.begin());
  join_live_copies_untrusted(records(second), std::min(end, size - header), records(out));
  return size;
}

absl::StatusOr<uint16_t> scan_facts_untrusted(Input& input, const BlockRef& block,
                                              std::vector<std::byte>& scratch) {
  FindingLog unused(0);
  scratch.resize(block.size - block.records_offset());
  const absl::StatusOr<size_t> there =
      copy_block_untrusted(input, block, block.records_offset(), scratch, unused);
  if (!there.ok()) return there.status();
  RecordCursor cursor(block.form, 0, block.live);
  cursor.set_window(std::span(scratch).first(*there), block.records_offset(), true);
  uint16_t facts = ARCTRACE_FACT_KNOWN;
  RawRecord record;
  while (cursor.next_untrusted(record) == RecordCursor::Result::kRecord) {
    if (record.in_progress) continue;
    facts |= facts_of_record_untrusted(record.type, record.body);
  }
  return facts;
}

}  // namespace arctrace::reader
