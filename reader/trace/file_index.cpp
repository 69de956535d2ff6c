#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/file_blocks.hpp"
#include "src/base/checksum.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

constexpr uint64_t kEntry = sizeof(arctrace_index_entry);

// The place in an entry where the members begin that only blocks have.
constexpr size_t kOfBlocks = offsetof(arctrace_index_entry, index);

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

template <class Part>
absl::StatusOr<Part> read_part(Input& input, uint64_t offset) {
  Part part{};
  const absl::StatusOr<size_t> read =
      input.read(offset, std::as_writable_bytes(std::span(&part, 1)));
  if (!read.ok()) return read.status();
  return part;
}

// Returns the block's header as the entry has it.
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

// Returns the payload of an INDEX chunk at `offset`; empty if there is no whole one.
absl::StatusOr<std::vector<std::byte>> read_payload(Input& input, uint64_t offset,
                                                    bool has_checksums) {
  std::vector<std::byte> payload;
  const absl::StatusOr<arctrace_chunk_header> chunk =
      read_part<arctrace_chunk_header>(input, offset);
  if (!chunk.ok()) return chunk.status();
  if (chunk->magic != ARCTRACE_CHUNK_MAGIC || chunk->kind != ARCTRACE_CHUNK_INDEX ||
      chunk->size % kEntry != 0 || chunk->size / kEntry > ARCTRACE_INDEX_ENTRIES_MAX ||
      chunk->sequence != chunk->size / kEntry ||
      chunk->size > input.size() - offset - sizeof *chunk) {
    return payload;
  }
  payload.resize(chunk->size);
  const absl::StatusOr<size_t> read = input.read(offset + sizeof *chunk, payload);
  if (!read.ok()) return read.status();
  arctrace_chunk_header without = *chunk;
  without.checksum = 0;
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(&without, 1)));
  checksum.add(payload);
  if (*read < payload.size() || (has_checksums && checksum.value() != chunk->checksum)) {
    payload.clear();
  }
  return payload;
}

// Fills in `index` from entries that leave out no byte of the file up to `end`. Returns
// false if they do.
bool take_entries_untrusted(std::span<const std::byte> payload, uint64_t end,
                            const Geometry& geometry, BlockIndex& index) {
  FindingLog unused(0);
  uint64_t offset = ARCTRACE_HEADER_SIZE;
  for (uint64_t i = 0; i * kEntry < payload.size(); ++i) {
    const auto entry =
        load_part_untrusted<arctrace_index_entry>(payload.subspan(i * kEntry));
    arctrace_chunk_header chunk{};
    chunk.kind = entry.kind;
    chunk.size = entry.size;
    if (entry.size % 4 != 0 || !has_possible_size(chunk, geometry)) return false;
    BlockRef ref;
    ref.chunk = i;
    ref.offset = offset + sizeof(arctrace_chunk_header);
    ref.size = entry.size;
    ref.flags = entry.flags;
    ref.facts = entry.facts;
    ref.written_ticks = entry.ticks;
    ref.live = (entry.flags & ARCTRACE_CHUNK_LIVE_COPY) != 0;
    offset = ref.offset + entry.size;
    if (offset > end) return false;
    index.bytes += sizeof(arctrace_chunk_header) + entry.size;
    if (entry.kind == ARCTRACE_CHUNK_BLOCK) {
      if (!read_block_header_untrusted(header_of(entry), geometry, entry.index, ref,
                                       unused) ||
          unused.count() != 0) {
        return false;
      }
      index.blocks.push_back(ref);
      continue;
    }
    if (!is_zero(payload.subspan(i * kEntry, kEntry).subspan(kOfBlocks))) return false;
    if (entry.kind == ARCTRACE_CHUNK_WRITERS) {
      index.writers.push_back({ref.chunk, ref.offset, ref.size});
    } else if (entry.kind == ARCTRACE_CHUNK_RECORDS) {
      ref.kind = BlockRef::Kind::kCollector;
      index.blocks.push_back(ref);
    } else {
      return false;
    }
  }
  return offset == end;
}

}  // namespace

absl::StatusOr<std::optional<BlockIndex>> read_index_untrusted(Input& input,
                                                               FileIndexPlace place,
                                                               const Geometry& geometry,
                                                               FindingLog& findings) {
  const uint64_t offset = place.offset;
  BlockIndex index;
  if (offset >= ARCTRACE_HEADER_SIZE && offset < input.size()) {
    const absl::StatusOr<std::vector<std::byte>> payload =
        read_payload(input, offset, place.has_checksums);
    if (!payload.ok()) return payload.status();
    if (!payload->empty() && take_entries_untrusted(*payload, offset, geometry, index)) {
      const ChunkPlace rest{offset, static_cast<uint32_t>(payload->size() / kEntry)};
      const FindingLog::Mark before = findings.mark();
      const absl::Status status =
          index_chunks_untrusted(input, rest, geometry, findings, false, index);
      if (!status.ok()) return status;
      FindingLog doubles(0);
      drop_doubles(index, DoublesOf::kFile, doubles);
      if (doubles.count() == 0) return index;
      findings.forget(before);
      return std::nullopt;  // all headers tell which one counts
    }
  }
  findings.add(Rule::kIndex,
               absl::StrCat("at byte ", offset, " of the file there is none that fits"));
  return std::nullopt;
}

Finding writers_finding(uint64_t chunk) {
  return {std::string(text_of(Rule::kIndex).id),
          "the list of the writers of shared blocks says something else of this chunk",
          chunk, 0};
}

Finding index_finding(const BlockRef& block) {
  return {std::string(text_of(Rule::kIndex).id), "it says something else of this chunk",
          block.chunk, 0};
}

absl::StatusOr<bool> is_as_indexed_untrusted(Input& input, const BlockRef& ref,
                                             const Geometry& geometry) {
  const absl::StatusOr<ChunkStart> start =
      read_part<ChunkStart>(input, ref.offset - sizeof(arctrace_chunk_header));
  if (!start.ok()) return start.status();
  const arctrace_chunk_header& chunk = start->chunk;
  const bool is_block = ref.kind != BlockRef::Kind::kCollector;
  if (chunk.magic != ARCTRACE_CHUNK_MAGIC || chunk.size != ref.size ||
      chunk.flags != ref.flags || chunk.sequence != ref.chunk ||
      chunk.ticks != ref.written_ticks ||
      chunk.kind != (is_block ? ARCTRACE_CHUNK_BLOCK : ARCTRACE_CHUNK_RECORDS)) {
    return false;
  }
  if (!is_block) return true;
  FindingLog unused(0);
  BlockRef real;
  return read_block_header_untrusted(start->block, geometry, chunk.index, real, unused) &&
         unused.count() == 0 && real.has_header_of(ref);
}

absl::Status check_index_untrusted(Input& input, FileIndexPlace place,
                                   const Geometry& geometry, const BlockIndex& walked,
                                   FindingLog& findings) {
  FindingLog of_index(1);
  const absl::StatusOr<std::optional<BlockIndex>> found =
      read_index_untrusted(input, place, geometry, of_index);
  if (!found.ok()) return found.status();
  if (!found->has_value()) {
    findings.add_all(of_index.kept(), of_index.count());
    return absl::OkStatus();
  }
  const std::vector<BlockRef>& listed = (*found)->blocks;
  std::vector<std::byte> scratch;
  for (size_t i = 0; i < std::max(listed.size(), walked.blocks.size()); ++i) {
    const BlockRef& block = i < listed.size() ? listed[i] : walked.blocks[i];
    bool agrees = i < listed.size() && i < walked.blocks.size() &&
                  block.chunk == walked.blocks[i].chunk &&
                  block.offset == walked.blocks[i].offset &&
                  block.size == walked.blocks[i].size &&
                  block.flags == walked.blocks[i].flags &&
                  block.written_ticks == walked.blocks[i].written_ticks &&
                  block.has_header_of(walked.blocks[i]);
    if (agrees && (block.facts & ARCTRACE_FACT_KNOWN) != 0) {
      const absl::StatusOr<uint16_t> facts = scan_facts_untrusted(input, block, scratch);
      if (!facts.ok()) return facts.status();
      // An entry with facts that the block does not have only makes readers read it
      // needlessly.
      agrees = block.kind == BlockRef::Kind::kExclusive && (*facts & ~block.facts) == 0;
    }
    if (agrees) continue;
    findings.add(index_finding(block));
    return absl::OkStatus();
  }
  const absl::StatusOr<std::optional<uint64_t>> wrong =
      find_wrong_writers_untrusted(input, walked, place.has_checksums);
  if (!wrong.ok()) return wrong.status();
  if (wrong->has_value()) findings.add(writers_finding(**wrong));
  return absl::OkStatus();
}

}  // namespace arctrace::reader
