#include "reader/trace/writer_lists.hpp"

#include <algorithm>
#include <cstring>

#include "reader/trace/shared_block.hpp"
#include "src/base/checksum.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "src/protocol/block_writers.hpp"

namespace arctrace::reader {
namespace {

constexpr size_t kWritersMax = ARCTRACE_WRITERS_BYTES_MAX / sizeof(arctrace_block_writer);

// Appends the payload of the chunk. False: it is not what the index says.
absl::StatusOr<bool> append_payload(Input& input, const SymbolsRef& ref,
                                    bool has_checksums, std::vector<std::byte>& bytes) {
  arctrace_chunk_header chunk{};
  if (ref.size > ARCTRACE_WRITERS_BYTES_MAX - bytes.size()) return false;
  const size_t before = bytes.size();
  bytes.resize(before + ref.size);
  const std::span<std::byte> payload = std::span(bytes).subspan(before);
  const absl::StatusOr<size_t> head =
      input.read(ref.offset - sizeof chunk, std::as_writable_bytes(std::span(&chunk, 1)));
  if (!head.ok()) return head.status();
  const absl::StatusOr<size_t> read = input.read(ref.offset, payload);
  if (!read.ok()) return read.status();
  if (*read < payload.size() || chunk.magic != ARCTRACE_CHUNK_MAGIC ||
      chunk.kind != ARCTRACE_CHUNK_WRITERS || chunk.size != ref.size ||
      chunk.sequence != ref.chunk) {
    return false;
  }
  const uint32_t expected = chunk.checksum;
  chunk.checksum = 0;
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(&chunk, 1)));
  checksum.add(payload);
  return !has_checksums || checksum.value() == expected;
}

}  // namespace

void WriterLists::add(uint64_t last_ticks,
                      std::span<const arctrace_block_writer> writers) {
  has_too_many_ |= writers.size() > kWritersMax - writers_.size();
  if (has_too_many_) {
    blocks_ = std::vector<Block>();  // gives its memory back
    writers_ = std::vector<arctrace_block_writer>();
    return;
  }
  blocks_.push_back({last_ticks, writers_.size(), writers_.size() + writers.size()});
  writers_.insert(writers_.end(), writers.begin(), writers.end());
}

// False: they are not of the blocks of `index`, or end inside one.
bool WriterLists::take_untrusted(std::span<const std::byte> bytes,
                                 const BlockIndex& index) {
  std::vector<arctrace_block_writer> writers;
  for (const BlockRef& block : index.blocks) {
    if (!lists(block)) continue;
    const auto head = load_part_untrusted<arctrace_block_writers>(bytes);
    if (bytes.size() < sizeof head || head.chunk != block.chunk) return false;
    bytes = bytes.subspan(sizeof head);
    if (head.count > bytes.size() / sizeof(arctrace_block_writer)) return false;
    const size_t size = head.count * sizeof(arctrace_block_writer);
    writers.resize(head.count);
    if (size != 0) std::memcpy(writers.data(), bytes.data(), size);
    bytes = bytes.subspan(size);
    for (const arctrace_block_writer& writer : writers) {
      if (writer.first_ticks > head.last_ticks) return false;
    }
    add(head.last_ticks, writers);
  }
  return bytes.empty();
}

absl::StatusOr<std::optional<WriterLists>> WriterLists::read_untrusted(
    Input& input, const BlockIndex& index, bool has_checksums) {
  std::vector<std::byte> bytes;
  for (const SymbolsRef& ref : index.writers) {
    const absl::StatusOr<bool> is_right =
        append_payload(input, ref, has_checksums, bytes);
    if (!is_right.ok()) return is_right.status();
    if (!*is_right) return std::nullopt;
  }
  std::optional<WriterLists> lists(std::in_place);
  if (!lists->take_untrusted(bytes, index)) lists.reset();
  return lists;
}

absl::StatusOr<WriterLists> scan_writers_untrusted(Input& input, const BlockRef& block) {
  FindingLog unused(0);
  SharedBlock shared;
  if (absl::Status status = shared.load_untrusted(input, block, unused); !status.ok()) {
    return status;
  }
  WriterLists lists;
  BlockWriters writers;
  for (const RawRecord& record : shared.records()) {
    writers.add_untrusted(record.writer, record.ticks, record.type, record.body);
  }
  lists.add(writers.last_ticks(), writers.sorted());
  return lists;
}

absl::StatusOr<std::optional<uint64_t>> find_wrong_writers_untrusted(
    Input& input, const BlockIndex& index, bool has_checksums) {
  std::optional<uint64_t> wrong;
  if (index.writers.empty()) return wrong;
  const absl::StatusOr<std::optional<WriterLists>> lists =
      WriterLists::read_untrusted(input, index, has_checksums);
  if (!lists.ok()) return lists.status();
  if (!lists->has_value()) return index.writers.front().chunk;
  size_t next = 0;
  for (const BlockRef& block : index.blocks) {
    if (!WriterLists::lists(block)) continue;
    const absl::StatusOr<WriterLists> scanned = scan_writers_untrusted(input, block);
    if (!scanned.ok()) return scanned.status();
    const WriterLists::Block& listed = (*lists)->blocks()[next++];
    const WriterLists::Block& real = scanned->blocks().front();
    const auto is_same = [](const arctrace_block_writer& a,
                            const arctrace_block_writer& b) {
      return std::memcmp(&a, &b, sizeof a) == 0;
    };
    const auto a = (*lists)->writers(listed);
    const auto b = scanned->writers(real);
    if (listed.last_ticks == real.last_ticks &&
        std::equal(a.begin(), a.end(), b.begin(), b.end(), is_same)) {
      continue;
    }
    return block.chunk;
  }
  return wrong;
}

}  // namespace arctrace::reader
