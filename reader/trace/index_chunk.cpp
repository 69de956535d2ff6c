#include "reader/trace/index_chunk.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format/index.h>

#include <algorithm>
#include <span>
#include <vector>

#include "src/base/checksum.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

constexpr uint64_t kEnd = sizeof(arctrace_index_end);
constexpr uint64_t kEntry = sizeof(arctrace_index_entry);

template <class Part>
absl::StatusOr<Part> read_part(Input& input, uint64_t offset) {
  Part part{};
  const absl::StatusOr<size_t> read =
      input.read(offset, std::as_writable_bytes(std::span(&part, 1)));
  if (!read.ok()) return read.status();
  return part;
}

// The block's header as the entry has it.
arctrace_block_header header_of(const arctrace_index_entry& entry) {
  arctrace_block_header header{};
  header.magic = ARCTRACE_BLOCK_MAGIC;
  header.form = entry.form;
  header.block_class = entry.block_class;
  header.writer = entry.writer;
  header.process = entry.process;
  header.pid = entry.pid;
  header.tid = entry.tid;
  header.serial = entry.serial;
  header.handout = entry.handout;
  header.base_ticks = entry.base_ticks;
  return header;
}

BlockRef ref_of(const arctrace_index_entry& entry, uint64_t sequence) {
  BlockRef ref;
  ref.chunk = sequence;
  ref.offset = entry.offset + sizeof(arctrace_chunk_header);
  ref.size = entry.size;
  ref.flags = entry.flags;
  ref.facts = entry.facts;
  ref.live = (entry.flags & ARCTRACE_CHUNK_LIVE_COPY) != 0;
  return ref;
}

// The entries, if `end` is that of an index whose bytes are all there.
absl::StatusOr<std::vector<std::byte>> read_entries(Input& input,
                                                    const arctrace_index_end& end,
                                                    bool has_checksums) {
  std::vector<std::byte> payload;
  const uint64_t size = end.count * kEntry + kEnd;
  const absl::StatusOr<arctrace_chunk_header> chunk =
      read_part<arctrace_chunk_header>(input, end.offset);
  if (!chunk.ok()) return chunk.status();
  if (chunk->magic != ARCTRACE_CHUNK_MAGIC || chunk->kind != ARCTRACE_CHUNK_INDEX ||
      chunk->size != size || chunk->sequence != end.count) {
    return payload;
  }
  payload.resize(size);
  const absl::StatusOr<size_t> read = input.read(end.offset + sizeof *chunk, payload);
  if (!read.ok()) return read.status();
  arctrace_chunk_header without = *chunk;
  without.checksum = 0;
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(&without, 1)));
  checksum.add(payload);
  if (*read < size || (has_checksums && checksum.value() != chunk->checksum)) {
    payload.clear();
  }
  return payload;
}

// Fills in `index` from entries that leave out no byte of the file up to `end_offset`.
bool take_entries_untrusted(std::span<const std::byte> entries, uint64_t end_offset,
                            const Geometry& geometry, BlockIndex& index) {
  FindingLog unused(0);
  uint64_t offset = ARCTRACE_HEADER_SIZE;
  for (uint64_t i = 0; i * kEntry < entries.size(); ++i) {
    const auto entry =
        load_part_untrusted<arctrace_index_entry>(entries.subspan(i * kEntry));
    if (entry.offset != offset || entry.size % 4 != 0) return false;
    offset += sizeof(arctrace_chunk_header) + entry.size;
    if (offset > end_offset) return false;
    BlockRef ref = ref_of(entry, i);
    if (entry.kind == ARCTRACE_CHUNK_BLOCK) {
      if (entry.size < ARCTRACE_BLOCK_HEADER_SIZE || entry.size > geometry.block_size ||
          !read_block_header_untrusted(header_of(entry), geometry, entry.index, ref,
                                       unused)) {
        return false;
      }
      index.blocks.push_back(ref);
    } else if (entry.kind == ARCTRACE_CHUNK_RECORDS) {
      constexpr uint32_t kRecordsMax = 16u << 20;  // rule F4
      if (entry.size > kRecordsMax) return false;
      ref.kind = BlockRef::Kind::kCollector;
      index.blocks.push_back(ref);
    }
    index.bytes += sizeof(arctrace_chunk_header) + entry.size;
  }
  return offset == end_offset && unused.count() == 0;
}

}  // namespace

absl::StatusOr<std::optional<BlockIndex>> read_index_untrusted(Input& input,
                                                               const Geometry& geometry,
                                                               bool has_checksums,
                                                               FindingLog& findings) {
  const uint64_t size = input.size();
  if (size < ARCTRACE_HEADER_SIZE + sizeof(arctrace_chunk_header) + kEnd)
    return std::nullopt;
  const absl::StatusOr<arctrace_index_end> end =
      read_part<arctrace_index_end>(input, size - kEnd);
  if (!end.ok()) return end.status();
  if (end->magic != ARCTRACE_INDEX_MAGIC) return std::nullopt;
  const uint64_t own = sizeof(arctrace_chunk_header) + end->count * kEntry + kEnd;
  BlockIndex index;
  if (end->entry_size == kEntry && end->count <= ARCTRACE_INDEX_ENTRIES_MAX &&
      own <= size && end->offset == size - own) {
    const absl::StatusOr<std::vector<std::byte>> payload =
        read_entries(input, *end, has_checksums);
    if (!payload.ok()) return payload.status();
    if (!payload->empty() &&
        take_entries_untrusted(std::span(*payload).first(payload->size() - kEnd),
                               end->offset, geometry, index)) {
      index.bytes += own;
      drop_doubles(index, DoublesOf::kFile, findings);
      return index;
    }
  }
  findings.add(Rule::kIndex, "it is not used", end->count);
  return std::nullopt;
}

absl::StatusOr<bool> is_as_indexed_untrusted(Input& input, const BlockRef& ref,
                                             const Geometry& geometry,
                                             FindingLog& findings) {
  const absl::StatusOr<arctrace_chunk_header> chunk =
      read_part<arctrace_chunk_header>(input, ref.offset - sizeof(arctrace_chunk_header));
  if (!chunk.ok()) return chunk.status();
  const bool is_block = ref.kind != BlockRef::Kind::kCollector;
  bool agrees = chunk->magic == ARCTRACE_CHUNK_MAGIC && chunk->size == ref.size &&
                chunk->flags == ref.flags && chunk->sequence == ref.chunk &&
                chunk->kind == (is_block ? ARCTRACE_CHUNK_BLOCK : ARCTRACE_CHUNK_RECORDS);
  if (agrees && is_block) {
    const absl::StatusOr<arctrace_block_header> header =
        read_part<arctrace_block_header>(input, ref.offset);
    if (!header.ok()) return header.status();
    FindingLog unused(0);
    BlockRef real;
    agrees = read_block_header_untrusted(*header, geometry, chunk->index, real, unused) &&
             unused.count() == 0 && real.kind == ref.kind && real.writer == ref.writer &&
             real.process == ref.process && real.pid == ref.pid && real.tid == ref.tid &&
             real.serial == ref.serial && real.handout == ref.handout &&
             real.base_ticks == ref.base_ticks;
  }
  if (!agrees) {
    findings.add(Rule::kIndex, "it says something else of this chunk; it is not used",
                 ref.chunk);
  }
  return agrees;
}

}  // namespace arctrace::reader
