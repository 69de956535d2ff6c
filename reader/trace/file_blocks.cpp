#include "reader/trace/file_blocks.hpp"

#include <algorithm>
#include <utility>

#include "reader/trace/index_file.hpp"
#include "reader/trace/session_header.hpp"

namespace arctrace::reader {
namespace {

// How many numbers the chunks of a part take that are known to readers.
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

// The lists of the last part, of which `index` is.
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

// Adds the blocks of the last part, of which `index` is.
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

}  // namespace arctrace::reader
