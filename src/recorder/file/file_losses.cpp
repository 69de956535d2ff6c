// Counts the records of blocks that the file does not get, and writes LOST records for
// them.
#include "src/recorder/file/file_losses.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/base/untrusted_bytes.hpp"
#include "src/recorder/file/session_records.hpp"
#include "src/recorder/file/trace_file.hpp"

namespace arctrace::recorder {

void FileLosses::add_block_untrusted(std::span<const std::byte> block) {
  if (block.size() <= sizeof(arctrace_block_header)) return;
  arctrace_block_header header{};
  std::memcpy(&header, block.data(), sizeof header);
  if (header.magic != ARCTRACE_BLOCK_MAGIC ||
      header.block_class == ARCTRACE_CLASS_DEFINITIONS) {
    return;
  }
  if (header.writer == ARCTRACE_WRITER_KERNEL) return add_cpu_block_untrusted(block);
  std::vector<std::byte> copy(block.begin(), block.end());
  const uint64_t records = scan_block_untrusted(copy).records;
  const bool is_own = is_exclusive_form(header.form);
  const uint32_t writer = is_own ? header.writer : uint32_t{ARCTRACE_WRITER_COLLECTOR};
  add(writer, ARCTRACE_LOST_FILE, records, header.base_ticks);
  count_ += records;
  for_each_loss_untrusted(block, [&](const arctrace_lost_body& lost) {
    if (lost.cause < ARCTRACE_LOST_CAUSES) {
      add(writer, lost.cause, lost.count, lost.since_ticks);
    }
  });
}

// Counts a block of a CPU: all its records are of that CPU.
void FileLosses::add_cpu_block_untrusted(std::span<const std::byte> block) {
  for_each_full_record(
      block, [&](uint16_t type, uint64_t, std::span<const std::byte> body) {
        if (type < ARCTRACE_TYPE_SWITCH) return;
        ++kernel_count_;
        ++by_cpu_[load_part_untrusted<arctrace_kernel_body>(body).cpu & UINT16_MAX];
      });
}

void FileLosses::add(uint32_t writer, uint32_t cause, uint64_t count, uint64_t since) {
  if (count == 0) return;
  Loss& loss = losses_[{writer, cause}];
  loss.count += count;
  loss.since_ticks = std::min(loss.since_ticks, since == 0 ? UINT64_MAX : since);
}

std::map<std::pair<uint32_t, uint32_t>, uint64_t> FileLosses::counts() const {
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> counts;
  for (const auto& [of, loss] : losses_) counts[of] = loss.count;
  return counts;
}

void FileLosses::report(RecordBuilder& records, uint64_t ticks) const {
  for (const auto& [of, loss] : losses_) {
    const bool is_own = of.first != ARCTRACE_WRITER_COLLECTOR;
    add_lost(records, ticks, of.first, of.second,
             is_own ? ARCTRACE_LOST_RESIDUAL : ARCTRACE_LOST_SESSION, loss.count,
             loss.since_ticks == UINT64_MAX ? 0 : std::min(loss.since_ticks, ticks));
  }
  for (const auto& [cpu, count] : by_cpu_) {
    add_lost(records, ticks, ARCTRACE_WRITER_COLLECTOR, ARCTRACE_LOST_FILE,
             ARCTRACE_LOST_SESSION | ARCTRACE_LOST_CPU | cpu << ARCTRACE_LOST_CPU_SHIFT,
             count, 0);
  }
}

}  // namespace arctrace::recorder
