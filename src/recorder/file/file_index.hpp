// What a recorder notes of the chunks that it writes, for the INDEX of the file.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/protocol/block_writers.hpp"

namespace arctrace {

// What is known of a block's records.
struct ChunkFacts {
  uint16_t facts = 0;               // ARCTRACE_FACT_*, of an exclusive block
  BlockWriters* writers = nullptr;  // of a block whose writers are listed
};

class FileIndex {
 public:
  // The chunk after those that were added before. The payload of a block begins with
  // `payload`, which has at least the block's header.
  void add(const arctrace_chunk_header& chunk, std::span<const std::byte> payload,
           ChunkFacts facts);
  // The file ends after so many chunks.
  void cut(uint32_t chunks);

  // Whether all `chunks` of the file are in it.
  bool has_all(uint32_t chunks) const { return entries_.size() == chunks; }
  std::span<const std::byte> payload() const {
    return std::as_bytes(std::span(entries_));
  }
  // The payloads of the WRITERS chunks, one after another. Empty if there are no blocks
  // whose writers are listed, too many writers, or a block whose writers are not known.
  // To be called once, before these chunks are added.
  std::vector<std::byte> take_writers();

 private:
  void add_writers(uint32_t chunk, BlockWriters* writers);

  std::vector<arctrace_index_entry> entries_;
  bool has_too_many_ = false;
  std::vector<std::byte> writers_;        // the payloads, one after another
  std::vector<size_t> writers_of_chunk_;  // by chunk: the size of writers_ before it
  bool lacks_writers_ = false;
};

}  // namespace arctrace
