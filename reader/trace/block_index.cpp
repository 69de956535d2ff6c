// Finds the blocks of a trace file by its chunk headers, and copies them.
#include "reader/trace/block_index.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "reader/trace/stored_symbols.hpp"
#include "src/base/checksum.hpp"

namespace arctrace::reader {
namespace {

const char* header_problem(const arctrace_block_header& h, const Geometry& geometry) {
  if (h.magic != ARCTRACE_BLOCK_MAGIC) return "its magic is wrong";
  const uint16_t exclusive =
      geometry.has_clock_word() ? ARCTRACE_FORM_BARE : ARCTRACE_FORM_COMPACT;
  if (h.form != exclusive && h.form != ARCTRACE_FORM_FULL) {
    return "its form is not known, or not the session's";
  }
  if (h.block_class != ARCTRACE_CLASS_DATA &&
      h.block_class != ARCTRACE_CLASS_DEFINITIONS) {
    return "its class is not known";
  }
  if (is_exclusive_form(h.form)) {
    if (h.block_class != ARCTRACE_CLASS_DATA) return "definitions in an exclusive block";
    if (h.writer == 0 || (h.writer & ARCTRACE_WRITER_KERNEL) != 0) {
      return "an exclusive block has no such writer";
    }
  }
  return nullptr;
}

}  // namespace

bool read_block_header_untrusted(const arctrace_block_header& h, const Geometry& geometry,
                                 uint64_t block_index, BlockRef& ref,
                                 FindingLog& findings) {
  if (const char* problem = header_problem(h, geometry); problem != nullptr) {
    findings.add(Rule::kBlockHeader, problem, ref.chunk);
    return false;
  }
  if (h.handout % geometry.block_count != block_index) {
    findings.add(Rule::kBlockIndex,
                 absl::StrCat("hand-out ", h.handout, " gives block ",
                              h.handout % geometry.block_count, ", not ", block_index),
                 ref.chunk);
  }
  ref.form = h.form;
  if (is_exclusive_form(h.form)) {
    ref.kind = BlockRef::Kind::kExclusive;
  } else if (h.block_class == ARCTRACE_CLASS_DATA) {
    ref.kind = BlockRef::Kind::kShared;
  } else {
    ref.kind = BlockRef::Kind::kDefinitions;
  }
  ref.writer = h.writer;
  ref.process = h.process;
  ref.pid = h.pid;
  ref.tid = h.tid;
  ref.serial = h.serial;
  ref.handout = h.handout;
  ref.base_ticks = h.base_ticks;
  return true;
}

absl::StatusOr<size_t> copy_block_untrusted(Input& input, const BlockRef& ref,
                                            uint32_t begin, std::span<std::byte> out,
                                            FindingLog& findings) {
  const absl::StatusOr<size_t> read = ref.changes
                                          ? read_live_untrusted(input, ref, begin, out)
                                          : input.read(ref.offset + begin, out);
  if (!read.ok()) return read.status();
  if (*read < out.size()) {
    findings.add(Rule::kInputShrank, "the block is no longer all there", ref.chunk,
                 begin);
  }
  if (ref.in_buffer) {
    // A thread that recycles a block wipes its header before its records: if the header
    // is the same after the copy, the records were so, too.
    arctrace_block_header now{};
    const absl::StatusOr<size_t> header =
        input.read(ref.offset, std::as_writable_bytes(std::span(&now, 1)));
    if (!header.ok()) return header.status();
    if (*header < sizeof now || now.magic != ARCTRACE_BLOCK_MAGIC ||
        now.handout != ref.handout) {
      return size_t{0};
    }
  }
  return *read & ~size_t{3};
}

void drop_doubles(BlockIndex& index, DoublesOf of, FindingLog& findings) {
  absl::flat_hash_map<uint64_t, size_t> kept_at;  // hand-out -> index in `kept`
  std::vector<BlockRef> kept;
  kept.reserve(index.blocks.size());
  for (BlockRef& ref : index.blocks) {
    if (ref.kind != BlockRef::Kind::kCollector) {
      const auto [entry, is_new] = kept_at.try_emplace(ref.handout, kept.size());
      if (!is_new) {
        BlockRef& other = kept[entry->second];
        const bool is_copy = other.live || (of == DoublesOf::kParts && ref.live);
        if (is_copy && ref.kind == BlockRef::Kind::kDefinitions) {
          // The collector copies open definitions repeatedly, each time all of them; the
          // file may be cut off inside the last copy.
          if (ref.size >= other.size) other = ref;
          continue;
        }
        findings.add(Rule::kBlockHandout,
                     absl::StrCat("hand-out ", ref.handout, " stands at ", other.chunk,
                                  " too; the longer one counts"),
                     ref.chunk);
        if (ref.size > other.size) other = ref;
        continue;
      }
    }
    kept.push_back(ref);
  }
  index.blocks = std::move(kept);
}

// ---- The chunks of a file ---------------------------------------------------------

namespace {

constexpr uint32_t kRecordsChunkMax = 16u << 20;

// The most SYMBOLS chunks that are noted: more than a recorder ever writes.
constexpr size_t kSymbolsChunksMax = 4096;

static_assert(sizeof(ChunkStart) ==
              sizeof(arctrace_chunk_header) + sizeof(arctrace_block_header));

const char* chunk_problem(const arctrace_chunk_header& h) {
  if (h.magic != ARCTRACE_CHUNK_MAGIC) return "its magic is wrong";
  if (h.size % 4 != 0) return "its size is not a multiple of 4";
  return nullptr;
}

// Adds a finding if the chunk's size is not one that its kind can have.
bool size_fits(const arctrace_chunk_header& h, const Geometry& geometry,
               FindingLog& findings) {
  if (has_possible_size(h, geometry)) return true;
  std::string bytes = absl::StrCat(h.size, " bytes");
  if (h.kind == ARCTRACE_CHUNK_RECORDS) {
    findings.add(Rule::kRecordsChunkSize, bytes, h.sequence);
  } else if (h.kind == ARCTRACE_CHUNK_SYMBOLS) {
    findings.add(Rule::kSymbolsChunk, bytes, h.sequence);
  } else {
    findings.add(Rule::kBlockChunkSize,
                 absl::StrCat(bytes, "; a block has ", geometry.block_size), h.sequence);
  }
  return false;
}

// Reads the payload at `offset` to compare its checksum. Adds a finding if it differs.
absl::Status verify_untrusted(Input& input, const arctrace_chunk_header& chunk,
                              uint64_t offset, FindingLog& findings) {
  constexpr size_t kPiece = size_t{64} << 10;
  arctrace_chunk_header without = chunk;
  without.checksum = 0;
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(&without, 1)));
  std::vector<std::byte> piece(std::min<size_t>(kPiece, chunk.size));
  for (uint64_t left = chunk.size; left > 0;) {
    const absl::StatusOr<size_t> read = input.read(
        offset, std::span(piece).first(std::min<uint64_t>(left, piece.size())));
    if (!read.ok()) return read.status();
    if (*read == 0) return absl::OkStatus();  // the file shrank; the merge tells
    checksum.add(std::span(piece).first(*read));
    offset += *read;
    left -= *read;
  }
  if (checksum.value() != chunk.checksum) {
    findings.add(Rule::kChunkChecksum,
                 absl::StrCat("checksum ", absl::Hex(checksum.value(), absl::kZeroPad8),
                              ", not ", absl::Hex(chunk.checksum, absl::kZeroPad8)),
                 chunk.sequence);
  }
  return absl::OkStatus();
}

}  // namespace

bool has_possible_size(const arctrace_chunk_header& h, const Geometry& geometry) {
  switch (h.kind) {
    case ARCTRACE_CHUNK_RECORDS:
      return h.size <= kRecordsChunkMax;
    case ARCTRACE_CHUNK_WRITERS:
      return h.size <= ARCTRACE_WRITERS_CHUNK_BYTES_MAX;
    case ARCTRACE_CHUNK_SYMBOLS:
      return h.size <= StoredSymbols::kChunkBytesMax;
    case ARCTRACE_CHUNK_BLOCK:
      return h.size >= ARCTRACE_BLOCK_HEADER_SIZE && h.size <= geometry.block_size;
    default:
      return true;
  }
}

absl::StatusOr<BlockIndex> index_file_untrusted(Input& input, const Geometry& geometry,
                                                FindingLog& findings,
                                                bool verifies_checksums) {
  BlockIndex index;
  absl::Status status =
      index_chunks_untrusted(input, {}, geometry, findings, verifies_checksums, index);
  if (!status.ok()) return status;
  drop_doubles(index, DoublesOf::kFile, findings);
  return index;
}

absl::Status index_chunks_untrusted(Input& input, ChunkPlace from,
                                    const Geometry& geometry, FindingLog& findings,
                                    bool verifies_checksums, BlockIndex& index) {
  uint64_t offset = from.offset;
  uint32_t expected_sequence = from.sequence;
  while (offset < input.size()) {
    ChunkStart start{};
    const absl::StatusOr<size_t> read =
        input.read(offset, std::as_writable_bytes(std::span(&start, 1)));
    if (!read.ok()) return read.status();
    const auto cut_here = [&] {
      findings.add(
          Rule::kFileCutInChunk,
          absl::StrCat("the file ends inside the chunk at byte ", offset, " of the file"),
          expected_sequence);
      index.ends_early = true;
    };
    if (*read < sizeof start.chunk) {
      cut_here();
      break;
    }
    if (const char* problem = chunk_problem(start.chunk); problem != nullptr) {
      findings.add(Rule::kChunkHeader,
                   absl::StrCat("the chunk at byte ", offset, " of the file: ", problem),
                   expected_sequence);
      index.ends_early = true;
      break;
    }
    if (start.chunk.sequence != expected_sequence) {
      findings.add(Rule::kChunkSequence,
                   absl::StrCat("chunk ", start.chunk.sequence, " comes where ",
                                expected_sequence, " should"),
                   start.chunk.sequence);
    }
    expected_sequence = start.chunk.sequence + 1;

    const uint64_t payload = offset + sizeof start.chunk;
    const uint64_t there = input.size() > payload ? input.size() - payload : 0;
    if (verifies_checksums && there >= start.chunk.size) {
      absl::Status status = verify_untrusted(input, start.chunk, payload, findings);
      if (!status.ok()) return status;
    }
    BlockRef ref;
    ref.chunk = start.chunk.sequence;
    ref.offset = payload;
    ref.cut = there < start.chunk.size;
    ref.size = static_cast<uint32_t>(std::min<uint64_t>(start.chunk.size, there) & ~3ull);
    ref.flags = start.chunk.flags;
    ref.written_ticks = start.chunk.ticks;
    ref.live = (ref.flags & ARCTRACE_CHUNK_LIVE_COPY) != 0;
    const bool is_block = start.chunk.kind == ARCTRACE_CHUNK_BLOCK;
    const bool is_symbols = start.chunk.kind == ARCTRACE_CHUNK_SYMBOLS;
    const bool is_writers = start.chunk.kind == ARCTRACE_CHUNK_WRITERS;
    if (is_writers && !ref.cut && has_possible_size(start.chunk, geometry)) {
      index.writers.push_back({ref.chunk, ref.offset, ref.size});
    }
    // A newer version may have other kinds.
    const bool is_known =
        is_block || is_symbols || start.chunk.kind == ARCTRACE_CHUNK_RECORDS;
    if (is_known && size_fits(start.chunk, geometry, findings)) {
      if (is_symbols) {
        if (!ref.cut && index.symbols.size() < kSymbolsChunksMax) {
          index.symbols.push_back({ref.chunk, ref.offset, ref.size});
        }
      } else if (!is_block) {
        ref.kind = BlockRef::Kind::kCollector;
        index.blocks.push_back(ref);
      } else if (ref.size >= ARCTRACE_BLOCK_HEADER_SIZE && *read == sizeof start &&
                 read_block_header_untrusted(start.block, geometry, start.chunk.index,
                                             ref, findings)) {
        index.blocks.push_back(ref);
      }
    }
    index.bytes += sizeof start.chunk + ref.size;
    if (ref.cut) {
      cut_here();
      break;
    }
    offset = payload + start.chunk.size;
    if (!is_symbols) {
      index.end = offset;
      index.next_sequence = expected_sequence;
    }
  }
  return absl::OkStatus();
}

}  // namespace arctrace::reader
