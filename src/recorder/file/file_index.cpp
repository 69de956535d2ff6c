#include "src/recorder/file/file_index.hpp"

#include "src/base/untrusted_bytes.hpp"

namespace arctrace {

void FileIndex::add(const arctrace_chunk_header& chunk,
                    std::span<const std::byte> payload, uint16_t facts) {
  if (has_too_many_ || entries_.size() == ARCTRACE_INDEX_ENTRIES_MAX) {
    has_too_many_ = true;
    entries_ = std::vector<arctrace_index_entry>();  // gives its memory back
    return;
  }
  arctrace_index_entry entry{};
  entry.size = chunk.size;
  entry.kind = chunk.kind;
  entry.flags = chunk.flags;
  entry.ticks = chunk.ticks;
  if (chunk.kind == ARCTRACE_CHUNK_BLOCK) {
    const auto header = load_part_untrusted<arctrace_block_header>(payload);
    entry.index = chunk.index;
    entry.facts = facts;
    entry.form = static_cast<uint8_t>(header.form);
    entry.block_class = static_cast<uint8_t>(header.block_class);
    entry.writer = header.writer;
    entry.process = header.process;
    entry.pid = header.pid;
    entry.tid = header.tid;
    entry.serial = header.serial;
    entry.handout = header.handout;
    entry.base_ticks = header.base_ticks;
  }
  entries_.push_back(entry);
}

void FileIndex::cut(uint32_t chunks) {
  if (chunks < entries_.size()) entries_.resize(chunks);
}

}  // namespace arctrace
