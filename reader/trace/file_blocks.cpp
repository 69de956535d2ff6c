// Finds the blocks of a trace's files, and reads the lists of writers that the files
// have.
#include "reader/trace/file_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "reader/trace/block_index.hpp"
#include "reader/trace/session.hpp"
#include "reader/trace/shared_block.hpp"
#include "src/base/checksum.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "src/protocol/block_writers.hpp"

namespace arctrace::reader {
namespace {

// Returns how many sequence numbers the known chunks of a part take.
uint64_t chunk_count(const BlockIndex& index) {
  uint64_t count = 0;
  for (const BlockRef& block : index.blocks) count = std::max(count, block.chunk + 1);
  for (const SymbolsRef& symbols : index.symbols) {
    count = std::max(count, symbols.chunk + 1);
  }
  return count;
}

}  // namespace

absl::StatusOr<FileBlocks> FileBlocks::find_untrusted(
    std::span<const std::unique_ptr<Input>> parts, const Geometry& geometry,
    Options options, FindingLog& findings) {
  FileBlocks blocks;
  uint64_t begin = 0;
  uint64_t first_chunk = 0;
  for (const std::unique_ptr<Input>& input : parts) {
    const absl::StatusOr<SessionHeader> header = read_session_header_untrusted(*input);
    if (!header.ok()) return header.status();
    const FileIndexPlace place{header->session.index_offset,
                               header->session.has_checksums};
    Part part;
    part.input = input.get();
    part.begin = begin;
    part.first_chunk = first_chunk;
    const absl::StatusOr<BlockIndex> index =
        find_in_part_untrusted(part, place, geometry, options, findings);
    if (!index.ok()) return index.status();
    blocks.parts_.push_back(std::move(part));
    if (absl::Status status =
            blocks.add_lists_untrusted(*index, place.has_checksums, findings);
        !status.ok()) {
      return status;
    }
    blocks.add_part(*index);
    begin += input->size();
    first_chunk += chunk_count(*index);
  }
  if (parts.size() > 1) drop_doubles(blocks.all_, DoublesOf::kParts, findings);
  return blocks;
}

absl::StatusOr<BlockIndex> FileBlocks::find_in_part_untrusted(Part& part,
                                                              FileIndexPlace place,
                                                              const Geometry& geometry,
                                                              Options options,
                                                              FindingLog& findings) {
  if (place.offset != 0 && options.uses_index && !options.verifies_checksums) {
    absl::StatusOr<std::optional<BlockIndex>> found =
        read_index_untrusted(*part.input, place, geometry, findings);
    if (!found.ok()) return found.status();
    part.is_from_index = found->has_value();
    if (part.is_from_index) return **std::move(found);
  }
  absl::StatusOr<BlockIndex> walked = index_file_untrusted(
      *part.input, geometry, findings, options.verifies_checksums && place.has_checksums);
  if (!walked.ok() || !options.verifies_checksums || place.offset == 0) return walked;
  const absl::Status checked =
      check_index_untrusted(*part.input, place, geometry, *walked, findings);
  if (!checked.ok()) return checked;
  return walked;
}

// Adds the lists of the last part, whose index is `index`.
absl::Status FileBlocks::add_lists_untrusted(const BlockIndex& index, bool has_checksums,
                                             FindingLog& findings) {
  Part& part = parts_.back();
  if (!part.is_from_index || index.writers.empty()) return absl::OkStatus();
  absl::StatusOr<std::optional<WriterLists>> found =
      WriterLists::read_untrusted(*part.input, index, has_checksums);
  if (!found.ok()) return found.status();
  if (!found->has_value()) {
    findings.add(writers_finding(index.writers.front().chunk));
    return absl::OkStatus();
  }
  part.lists = **std::move(found);
  size_t next = 0;
  for (const BlockRef& block : index.blocks) {
    if (!WriterLists::lists(block)) continue;
    listed_[part.begin + block.offset] = {parts_.size() - 1, next++};
  }
  return absl::OkStatus();
}

// Adds the blocks of the last part, whose index is `index`.
void FileBlocks::add_part(const BlockIndex& index) {
  const Part& part = parts_.back();
  for (BlockRef block : index.blocks) {
    block.chunk += part.first_chunk;
    block.offset += part.begin;
    all_.blocks.push_back(block);
  }
  for (SymbolsRef symbols : index.symbols) {
    symbols.chunk += part.first_chunk;
    symbols.offset += part.begin;
    all_.symbols.push_back(symbols);
  }
  all_.bytes += index.bytes;
  all_.lacks_middle |= all_.ends_early;
  all_.ends_early = index.ends_early;
  all_.end = part.begin + index.end;
  all_.next_sequence = static_cast<uint32_t>(part.first_chunk + index.next_sequence);
}

const FileBlocks::Part& FileBlocks::part_of(const BlockRef& block) const {
  const auto after =
      std::upper_bound(parts_.begin(), parts_.end(), block.offset,
                       [](uint64_t at, const Part& part) { return at < part.begin; });
  return *(after - 1);
}

absl::StatusOr<bool> FileBlocks::agrees_untrusted(const BlockRef& block,
                                                  const Geometry& geometry) const {
  const Part& part = part_of(block);
  if (!part.is_from_index) return true;
  BlockRef there = block;
  there.chunk -= part.first_chunk;
  there.offset -= part.begin;
  return is_as_indexed_untrusted(*part.input, there, geometry);
}

std::optional<FileBlocks::Listed> FileBlocks::writers_of(const BlockRef& block) const {
  const auto found = listed_.find(block.offset);
  if (found == listed_.end()) return std::nullopt;
  const WriterLists& lists = parts_[found->second.part].lists;
  const WriterLists::Block& list = lists.blocks()[found->second.block];
  return Listed{list.last_ticks, lists.writers(list)};
}

// ---- Lists of writers -------------------------------------------------------------

namespace {

constexpr size_t kWritersMax = ARCTRACE_WRITERS_BYTES_MAX / sizeof(arctrace_block_writer);

// Appends the payload of the chunk. Returns false if the chunk is not as the index says.
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
    blocks_ = std::vector<Block>();  // clear() would not free the memory
    writers_ = std::vector<arctrace_block_writer>();
    return;
  }
  blocks_.push_back({last_ticks, writers_.size(), writers_.size() + writers.size()});
  writers_.insert(writers_.end(), writers.begin(), writers.end());
}

// Returns false if the lists are not of the blocks of `index`, or end inside one.
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
