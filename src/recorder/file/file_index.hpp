// What a recorder notes of the chunks that it writes, for the INDEX of the file.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace arctrace {

class FileIndex {
 public:
  // The chunk after those that were added before. The payload of a block begins with
  // `payload`, which has at least the block's header.
  void add(const arctrace_chunk_header& chunk, std::span<const std::byte> payload,
           uint16_t facts);
  // The file ends after so many chunks.
  void cut(uint32_t chunks);

  // Whether all `chunks` of the file are in it.
  bool has_all(uint32_t chunks) const { return entries_.size() == chunks; }
  std::span<const std::byte> payload() const {
    return std::as_bytes(std::span(entries_));
  }

 private:
  std::vector<arctrace_index_entry> entries_;
  bool has_too_many_ = false;
};

}  // namespace arctrace
