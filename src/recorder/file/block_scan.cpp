// Scans the records of a block, and copies blocks to which writers may still be writing
// (trace_file.hpp).
#include <algorithm>
#include <cstring>

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "src/buffer/buffer_view.hpp"
#include "src/protocol/block_writers.hpp"
#include "src/recorder/file/trace_file.hpp"

namespace arctrace::recorder {
namespace {

bool is_users_record(uint32_t type) {
  return (type >= ARCTRACE_TYPE_ENTER && type <= ARCTRACE_TYPE_RESULT) ||
         (type >= ARCTRACE_TYPE_EVENT && type <= ARCTRACE_TYPE_MARK);
}

// The length in word 0 if a record of that length fits at `offset` of a block of this
// form, else 0.
uint32_t length_at(uint32_t word0, uint16_t form, uint32_t offset, size_t size) {
  const uint32_t length = word0 & ARCTRACE_LENGTH_MASK;
  const uint32_t least =
      form == ARCTRACE_FORM_BARE ? ARCTRACE_BARE_HEAD_SIZE : ARCTRACE_COMPACT_HEAD_SIZE;
  const bool fits = length >= least && length % 4 == 0 && length <= size - offset;
  return fits ? length : 0;
}

// I2 acquire, matches I1.
uint32_t load_word(std::byte* block, uint32_t offset) {
  return IpcAtomics::load_acquire(word_at(block + offset));
}

// The offset of the first record after the hole that begins at `hole`, at most `end`. A
// writer that seemed stopped may fill the hole meanwhile, and its stores to a record
// become visible in order, word 0 first. So when a word of a record is seen, the words
// before it are read again, downwards: the lowest one that is not 0xffffffff is a word 0,
// for if it were a later word, its own word 0 would be seen too.
uint32_t end_of_hole(std::byte* block, uint32_t hole, uint32_t end) {
  const auto is_fill = [block](uint32_t offset) {
    return IpcAtomics::load_amid_plain_stores(word_at(block + offset)) == ARCTRACE_FILL;
  };
  uint32_t record = hole;
  while (record < end && is_fill(record)) record += 4;
  for (uint32_t offset = record; offset > hole;) {
    offset -= 4;
    if (!is_fill(offset)) record = offset;
  }
  return record;
}

// Whether a committed record comes from hooks or calls that its program was built with,
// and is not only of library calls. `body` is what follows the record's head.
bool is_own_record(uint32_t type, std::span<const std::byte> body) {
  size_t keys_at = 0;
  size_t key_count = 1;
  if (type >= ARCTRACE_TYPE_EVENT && type <= ARCTRACE_TYPE_MARK) return true;
  if (type == ARCTRACE_TYPE_STACK) {
    if (body.size() < sizeof(arctrace_stack_body)) return false;
    keys_at = sizeof(arctrace_stack_body);
    key_count = load_part_untrusted<arctrace_stack_body>(body).count;
  } else if (type != ARCTRACE_TYPE_ENTER && type != ARCTRACE_TYPE_EXIT_NAMED) {
    return false;
  }
  key_count = std::min(key_count, (body.size() - keys_at) / sizeof(uint64_t));
  for (size_t i = 0; i < key_count; ++i) {
    const auto key = load_part_untrusted<arctrace_frame_body>(
        body.subspan(keys_at + i * sizeof(uint64_t)));
    if ((key.key & ARCTRACE_FRAME_LIBRARY_BIT) == 0) return true;
  }
  return false;
}

void add_loss_untrusted(std::span<const std::byte> body, BlockContents& contents) {
  const auto lost = load_part_untrusted<arctrace_lost_body>(body);
  if (lost.cause < contents.lost.size()) contents.lost[lost.cause] += lost.count;
}

}  // namespace

BlockContents scan_block_untrusted(std::span<std::byte> block, BlockWriters* writers) {
  BlockContents contents;
  const auto size = static_cast<uint32_t>(block.size());
  uint32_t end = ARCTRACE_BLOCK_HEADER_SIZE;  // the end of the last record
  uint32_t offset = end;
  const arctrace_block_header header =
      copy_block_header(*reinterpret_cast<arctrace_block_header*>(block.data()));
  const bool is_exclusive = is_exclusive_form(header.form);
  if (writers != nullptr) writers->clear();
  if (!has_listed_writers(header)) writers = nullptr;
  const uint32_t head = head_size(header.form);
  if (is_exclusive) contents.facts = ARCTRACE_FACT_KNOWN;
  while (offset < size) {
    const uint32_t word0 = load_word(block.data(), offset);
    if (word0 == ARCTRACE_FILL) {
      offset += 4;
      continue;
    }
    const uint32_t length = length_at(word0, header.form, offset, size);
    if (length == 0) break;
    const uint32_t type = word0 >> ARCTRACE_TYPE_SHIFT & ARCTRACE_TYPE_MASK;
    if (is_users_record(type)) {
      ++((word0 & ARCTRACE_IN_PROGRESS) != 0 ? contents.torn : contents.records);
    }
    if ((word0 & ARCTRACE_IN_PROGRESS) == 0 && length >= head) {
      const std::span<const std::byte> body = block.subspan(offset + head, length - head);
      contents.kernel += type >= ARCTRACE_TYPE_SWITCH ? 1 : 0;
      if (type == ARCTRACE_TYPE_LOST) add_loss_untrusted(body, contents);
      if (!contents.has_own && !body.empty()) {
        contents.has_own = is_own_record(type, body);
      }
      if (is_exclusive) contents.facts |= facts_of_record_untrusted(type, body);
      if (writers != nullptr && type > ARCTRACE_TYPE_TIME) {
        const auto full = load_part_untrusted<arctrace_full_head>(block.subspan(offset));
        writers->add_untrusted(full.writer, full.ticks, type, body);
      }
    }
    offset += length;
    end = offset;
  }
  if (offset < size) {  // the block is damaged: all bytes up to the final 0xff count
    end = size;
    // Bounded by the offset of the damage, because the words may change meanwhile.
    while (end > offset + 4 && load_word(block.data(), end - 4) == ARCTRACE_FILL) {
      end -= 4;
    }
  }
  contents.used = end;
  return contents;
}

void for_each_full_record(
    std::span<const std::byte> block,
    const std::function<void(uint16_t type, uint64_t ticks,
                             std::span<const std::byte> body)>& visit) {
  const auto size = static_cast<uint32_t>(block.size());
  uint32_t offset = ARCTRACE_BLOCK_HEADER_SIZE;
  while (offset + 4 <= size) {
    uint32_t word0 = 0;
    std::memcpy(&word0, block.data() + offset, sizeof word0);
    uint32_t length = 4;
    if (word0 != ARCTRACE_FILL) {
      length = length_at(word0, ARCTRACE_FORM_FULL, offset, size);
      if (length < ARCTRACE_FULL_HEAD_SIZE) return;
      if ((word0 & ARCTRACE_IN_PROGRESS) == 0) {
        const auto head = load_part_untrusted<arctrace_full_head>(block.subspan(offset));
        visit(static_cast<uint16_t>(word0 >> ARCTRACE_TYPE_SHIFT), head.ticks,
              block.subspan(offset + ARCTRACE_FULL_HEAD_SIZE,
                            length - ARCTRACE_FULL_HEAD_SIZE));
      }
    }
    offset += length;
  }
}

void for_each_loss_untrusted(
    std::span<const std::byte> block,
    const std::function<void(const arctrace_lost_body&)>& visit) {
  const auto header = load_part_untrusted<arctrace_block_header>(block);
  const uint32_t head = head_size(header.form);
  for (uint32_t offset = ARCTRACE_BLOCK_HEADER_SIZE; offset + 4 <= block.size();) {
    const auto word0 = load_part_untrusted<uint32_t>(block.subspan(offset));
    if (word0 == ARCTRACE_FILL) {
      offset += 4;
      continue;
    }
    const uint32_t length = length_at(word0, header.form, offset, block.size());
    if (length == 0) return;
    const bool is_loss = word0 >> ARCTRACE_TYPE_SHIFT == ARCTRACE_TYPE_LOST;
    if (is_loss && length >= head + sizeof(arctrace_lost_body)) {
      visit(load_part_untrusted<arctrace_lost_body>(block.subspan(offset + head)));
    }
    offset += length;
  }
}

arctrace_block_header copy_block_header(arctrace_block_header& header) {
  constexpr size_t kContended = offsetof(arctrace_block_header, magic);
  arctrace_block_header copy;
  std::memset(&copy, 0xFF, kContended);
  copy.state = IpcAtomics::load_relaxed(header.state);
  copy.next = IpcAtomics::load_relaxed(header.next);
  std::memcpy(&copy.magic, &header.magic, sizeof copy - kContended);
  return copy;
}

std::vector<std::byte> copy_live_block_untrusted(std::byte* block, uint32_t block_size,
                                                 uint32_t committed_until) {
  std::vector<std::byte> copy(block_size, std::byte{0xFF});
  const arctrace_block_header header =
      copy_block_header(*reinterpret_cast<arctrace_block_header*>(block));
  std::memcpy(copy.data(), &header, sizeof header);
  uint32_t offset = ARCTRACE_BLOCK_HEADER_SIZE;
  while (offset < committed_until) {
    const uint32_t word0 = load_word(block, offset);
    if (word0 == ARCTRACE_FILL) {
      if (is_exclusive_form(header.form)) break;  // it has no holes
      offset = end_of_hole(block, offset, committed_until);
      continue;
    }
    const uint32_t length = length_at(word0, header.form, offset, block_size);
    if (length == 0) break;
    std::memcpy(copy.data() + offset, &word0, sizeof word0);
    if ((word0 & ARCTRACE_IN_PROGRESS) == 0) {
      std::memcpy(copy.data() + offset + 4, block + offset + 4, length - 4);
    } else if (header.form == ARCTRACE_FORM_FULL && length >= ARCTRACE_FULL_HEAD_SIZE) {
      const uint32_t writer =
          IpcAtomics::load_amid_plain_stores(word_at(block + offset + 4));
      std::memcpy(copy.data() + offset + 4, &writer, sizeof writer);
    }
    offset += length;
  }
  return copy;
}

}  // namespace arctrace::recorder
