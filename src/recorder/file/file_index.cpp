#include "src/recorder/file/file_index.hpp"

#include <utility>

#include "src/base/untrusted_bytes.hpp"

namespace arctrace {

void FileIndex::add(const arctrace_chunk_header& chunk,
                    std::span<const std::byte> payload, ChunkFacts facts) {
  if (has_too_many_ || entries_.size() == ARCTRACE_INDEX_ENTRIES_MAX) {
    has_too_many_ = true;
    entries_ = std::vector<arctrace_index_entry>();  // gives its memory back
    writers_ = std::vector<std::byte>();
    writers_of_chunk_ = std::vector<size_t>();
    return;
  }
  writers_of_chunk_.push_back(writers_.size());
  arctrace_index_entry entry{};
  entry.size = chunk.size;
  entry.kind = chunk.kind;
  entry.flags = chunk.flags;
  entry.ticks = chunk.ticks;
  if (chunk.kind == ARCTRACE_CHUNK_BLOCK) {
    const auto header = load_part_untrusted<arctrace_block_header>(payload);
    entry.index = chunk.index;
    entry.facts = facts.facts;
    entry.form = static_cast<uint8_t>(header.form);
    entry.block_class = static_cast<uint8_t>(header.block_class);
    entry.writer = header.writer;
    entry.process = header.process;
    entry.pid = header.pid;
    entry.tid = header.tid;
    entry.serial = header.serial;
    entry.handout = header.handout;
    entry.base_ticks = header.base_ticks;
    if (has_listed_writers(header)) add_writers(chunk.sequence, facts.writers);
  }
  entries_.push_back(entry);
}

void FileIndex::add_writers(uint32_t chunk, BlockWriters* writers) {
  if (writers == nullptr || lacks_writers_) {
    lacks_writers_ = true;
    return;
  }
  const std::span<const arctrace_block_writer> sorted = writers->sorted();
  const arctrace_block_writers head{chunk, static_cast<uint32_t>(sorted.size()),
                                    writers->last_ticks()};
  const auto append = [this](std::span<const std::byte> bytes) {
    writers_.insert(writers_.end(), bytes.begin(), bytes.end());
  };
  append(std::as_bytes(std::span(&head, 1)));
  append(std::as_bytes(sorted));
  if (writers_.size() <= ARCTRACE_WRITERS_BYTES_MAX) return;
  lacks_writers_ = true;
  writers_ = std::vector<std::byte>();  // gives its memory back
}

std::vector<std::byte> FileIndex::take_writers() {
  if (lacks_writers_) return {};
  lacks_writers_ = true;
  return std::move(writers_);
}

void FileIndex::cut(uint32_t chunks) {
  if (chunks >= entries_.size()) return;
  entries_.resize(chunks);
  if (!lacks_writers_) writers_.resize(writers_of_chunk_[chunks]);
  writers_of_chunk_.resize(chunks);
}

}  // namespace arctrace
