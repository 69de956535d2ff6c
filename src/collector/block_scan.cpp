#include "src/collector/block_scan.hpp"

#include <cstring>

#include "src/buffer_view.hpp"
#include "src/shared_atomics.hpp"

namespace arctrace {
namespace {

uint32_t load_u32(std::span<const std::byte> bytes, uint32_t offset) {
  uint32_t value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

bool is_users_record(uint32_t type) {
  return (type >= ARCTRACE_TYPE_ENTER && type <= ARCTRACE_TYPE_VFORK_END) ||
         (type >= ARCTRACE_TYPE_EVENT && type <= ARCTRACE_TYPE_MARK);
}

// The length that word 0 names if a record of that length can stand at `offset`, else 0.
uint32_t length_at(uint32_t word0, uint32_t offset, size_t size) {
  const uint32_t length = word0 & ARCTRACE_LENGTH_MASK;
  const bool fits =
      length >= ARCTRACE_COMPACT_HEAD_SIZE && length % 4 == 0 && length <= size - offset;
  return fits ? length : 0;
}

}  // namespace

uint32_t used_bytes_untrusted(std::span<const std::byte> block) {
  auto used = static_cast<uint32_t>(block.size());
  while (used > ARCTRACE_BLOCK_HEADER_SIZE) {
    uint64_t words;
    std::memcpy(&words, block.data() + used - sizeof words, sizeof words);
    if (words != UINT64_MAX) break;
    used -= 8;
  }
  if (used > ARCTRACE_BLOCK_HEADER_SIZE && load_u32(block, used - 4) == ARCTRACE_FILL) {
    used -= 4;
  }
  return used;
}

RecordCount count_records_untrusted(std::span<const std::byte> block) {
  RecordCount count;
  uint32_t offset = ARCTRACE_BLOCK_HEADER_SIZE;
  while (offset + 4 <= block.size()) {
    const uint32_t word0 = load_u32(block, offset);
    if (word0 == ARCTRACE_FILL) {
      offset += 4;
      continue;
    }
    const uint32_t length = length_at(word0, offset, block.size());
    if (length == 0) break;
    const uint32_t type = word0 >> ARCTRACE_TYPE_SHIFT & ARCTRACE_TYPE_MASK;
    if (is_users_record(type)) {
      ++((word0 & ARCTRACE_IN_PROGRESS) != 0 ? count.torn : count.records);
    }
    offset += length;
  }
  return count;
}

std::vector<std::byte> copy_live_block(std::byte* block, uint32_t block_size) {
  std::vector<std::byte> copy(block_size, std::byte{0xFF});
  std::memcpy(copy.data(), block, ARCTRACE_BLOCK_HEADER_SIZE);
  uint32_t offset = ARCTRACE_BLOCK_HEADER_SIZE;
  while (offset + 4 <= block_size) {
    // I2 acquire, matches I1.
    const uint32_t word0 = IpcAtomics::load_acquire(word_at(block + offset));
    if (word0 == ARCTRACE_FILL) {
      offset += 4;
      continue;
    }
    const uint32_t length = length_at(word0, offset, block_size);
    if (length == 0) break;
    std::memcpy(copy.data() + offset, &word0, sizeof word0);
    if ((word0 & ARCTRACE_IN_PROGRESS) == 0) {
      std::memcpy(copy.data() + offset + 4, block + offset + 4, length - 4);
    }
    offset += length;
  }
  return copy;
}

}  // namespace arctrace
