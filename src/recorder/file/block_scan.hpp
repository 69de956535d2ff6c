// Walks from record to record through a block's untrusted bytes, without ever leaving the
// block. The drain and the snapshot count, copy and search records with it.
#pragma once

#include <arctrace/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "src/protocol/block_writers.hpp"

namespace arctrace {

// What the walk through a block finds. It stops at an invalid word 0.
struct BlockContents {
  // Bytes up to the end of the last record; in a damaged block, to the last word but
  // 0xff.
  uint32_t used = 0;
  uint64_t records = 0;  // committed ones that programs wrote: ENTER ... MARK
  uint64_t torn = 0;     // the same, in progress
  uint64_t kernel = 0;   // committed ones of the kernel's
  // What the committed LOST records report, by cause.
  std::array<uint64_t, ARCTRACE_LOST_CAUSES> lost{};
  // Whether a committed record is of what the program itself is built to record: one of
  // its own functions, entered or open, or an event of the API.
  bool has_own = false;
  uint16_t facts = 0;  // ARCTRACE_FACT_*, of an exclusive block
};

// Finds the end of the last record by the walk, because a record's last words may be
// 0xffffffff too.
// `writers`, if any, are those of a block whose writers a file lists; else it is cleared.
BlockContents scan_block_untrusted(std::span<std::byte> block,
                                   BlockWriters* writers = nullptr);

// Calls visit() for each committed record of a block of full form. REQUIRES: `block` is
// our own copy.
void for_each_full_record(
    std::span<const std::byte> block,
    const std::function<void(uint16_t type, uint64_t ticks,
                             std::span<const std::byte> body)>& visit);

// Calls visit() for each committed LOST record of a block of either form. REQUIRES:
// `block` is our own copy, with its header.
void for_each_loss_untrusted(std::span<const std::byte> block,
                             const std::function<void(const arctrace_lost_body&)>& visit);

// A copy of a block's header, whose first cache line others may be changing.
arctrace_block_header copy_block_header(arctrace_block_header& header);

// A copy of a block to which writers may still be writing, up to the offset `settled`,
// below which no record is begun any more. Committed records are copied whole; of a
// record in progress only word 0 is copied, and of a full head the writer, by which
// readers know whether it died; the rest stays 0xff. A writer that was taken for stopped
// may go on in a hole below `settled`. REQUIRES: settled <= block_size.
std::vector<std::byte> copy_live_block_untrusted(std::byte* block, uint32_t block_size,
                                                 uint32_t settled);

}  // namespace arctrace
