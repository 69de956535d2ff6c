// Subtracts the losses that the buffer still counts from those of a dead collector's
// file.
#include "src/recorder/snapshot/merged_records.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "src/base/shared_atomics.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/losses.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/file/file_losses.hpp"
#include "src/recorder/file/trace_file.hpp"

namespace arctrace::recorder {
namespace {

constexpr size_t kLostSize = sizeof(arctrace_full_head) + sizeof(arctrace_lost_body);

// The records of a RECORDS chunk, up to the first one that is damaged.
std::vector<std::span<std::byte>> split_untrusted(std::span<std::byte> payload) {
  std::vector<std::span<std::byte>> records;
  while (payload.size() >= sizeof(arctrace_full_head)) {
    const auto word0 = load_part_untrusted<uint32_t>(payload);
    const uint32_t length = word0 & ARCTRACE_LENGTH_MASK;
    if (length < sizeof(arctrace_full_head) || length % 4 != 0 || length > payload.size())
      break;
    records.push_back(payload.first(length));
    payload = payload.subspan(length);
  }
  return records;
}

uint32_t type_of(std::span<const std::byte> record) {
  return load_part_untrusted<uint32_t>(record) >> ARCTRACE_TYPE_SHIFT &
         ARCTRACE_TYPE_MASK;
}

bool is_loss(std::span<const std::byte> record) {
  return type_of(record) == ARCTRACE_TYPE_LOST && record.size() >= kLostSize;
}

arctrace_lost_body loss_of(std::span<const std::byte> record) {
  return load_part_untrusted<arctrace_lost_body>(
      record.subspan(sizeof(arctrace_full_head)));
}

bool ends_file(uint32_t session_event) {
  return session_event == ARCTRACE_SESSION_FINISHED ||
         session_event == ARCTRACE_SESSION_DISK_FULL;
}

// Subtracts as much of `count` from `rest` as there is, and returns the remainder of
// `count`.
uint64_t take_off(uint64_t& rest, uint64_t count) {
  const uint64_t taken = std::min(rest, count);
  rest -= taken;
  return count - taken;
}

}  // namespace

MergedRecords::MergedRecords(const BufferView& view, std::span<const EarlierChunk> chunks)
    : view_(view), payloads_(chunks.size()) {
  count_unconfirmed(chunks);
  count_unsaved(chunks);
  // The order is backwards, because records that are not confirmed, and losses by a full
  // disk, were written last.
  for (size_t i = chunks.size(); i > 0; --i) {
    const EarlierChunk& chunk = chunks[i - 1];
    if (chunk.header.kind != ARCTRACE_CHUNK_RECORDS) continue;
    std::vector<std::byte> copy = chunk.payload;
    std::vector<std::span<std::byte>> kept = split_untrusted(copy);
    for (size_t n = kept.size(); n > 0; --n) {
      if (!keeps_untrusted(kept[n - 1])) kept[n - 1] = {};
    }
    for (const std::span<std::byte> record : kept) {
      payloads_[i - 1].insert(payloads_[i - 1].end(), record.begin(), record.end());
    }
  }
}

// Counts the losses whose records the collector wrote before it died without noting them
// as reported (COL-7).
void MergedRecords::count_unconfirmed(std::span<const EarlierChunk> chunks) {
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view_);
  for (uint32_t i = 0; i < used; ++i) {
    arctrace_writer_slot& slot = view_.slot(i);
    const uint32_t writer = IpcAtomics::load_relaxed(slot.writer);
    if (writer == 0) continue;
    for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
      const uint64_t reported = ReportedLosses<IpcAtomics>::reported(view_, slot, cause);
      const uint64_t lost = IpcAtomics::load_relaxed(slot.lost[cause]);
      if (lost > reported) unreported_[{writer, cause}] = lost - reported;
    }
  }
  for (const EarlierChunk& chunk : chunks) {
    if (chunk.header.kind != ARCTRACE_CHUNK_RECORDS) continue;
    std::vector<std::byte> copy = chunk.payload;
    for (const std::span<std::byte> record : split_untrusted(copy)) {
      if (!is_loss(record)) continue;
      const arctrace_lost_body lost = loss_of(record);
      lacks_blocks_ |= lost.cause == ARCTRACE_LOST_FILE;
      if (lost.cause == ARCTRACE_LOST_KERNEL && (lost.flags & ARCTRACE_LOST_CPU) != 0) {
        unconfirmed_by_cpu_[lost.flags >> ARCTRACE_LOST_CPU_SHIFT] += lost.count;
      }
    }
  }
  for (auto& [cpu, count] : unconfirmed_by_cpu_) {
    if (cpu >= view_.geometry().cpu_count) continue;
    take_off(count, IpcAtomics::load_relaxed(view_.cpu_slot(cpu).reported));
  }
}

// Counts the losses of a file for which the disk had no space: it counts the blocks that
// it does not have.
void MergedRecords::count_unsaved(std::span<const EarlierChunk> chunks) {
  if (!lacks_blocks_) return;
  std::set<uint64_t> in_file;
  for (const EarlierChunk& chunk : chunks) {
    if (const std::optional<uint64_t> data = chunk.data_handout()) in_file.insert(*data);
  }
  FileLosses unsaved;
  const uint32_t size = view_.geometry().block_size;
  for (uint32_t i = 0; i < view_.geometry().block_count; ++i) {
    arctrace_block_header& header = view_.block_header(i);
    if (IpcAtomics::load_acquire(header.magic) != ARCTRACE_BLOCK_MAGIC ||
        in_file.contains(IpcAtomics::load_relaxed(header.handout))) {
      continue;
    }
    unsaved.add_block_untrusted(copy_live_block_untrusted(view_.block(i), size, size));
  }
  unsaved_ = unsaved.counts();
  unsaved_by_cpu_ = unsaved.by_cpu();
}

// Whether the record stays in the merged file. May lower the count of a loss.
bool MergedRecords::keeps_untrusted(std::span<std::byte> record) {
  const uint32_t type = type_of(record);
  if (type == ARCTRACE_TYPE_SESSION) {
    const auto body = load_part_untrusted<arctrace_session_body>(
        record.subspan(sizeof(arctrace_full_head)));
    return !ends_file(body.what);
  }
  if (!is_loss(record)) return true;
  arctrace_lost_body lost = loss_of(record);
  const uint32_t writer = load_part_untrusted<arctrace_full_head>(record).writer;
  if (!keeps_loss(writer, lost)) return false;
  std::memcpy(record.data() + sizeof(arctrace_full_head), &lost, sizeof lost);
  return true;
}

bool MergedRecords::keeps_loss(uint32_t writer, arctrace_lost_body& lost) {
  if ((lost.flags & ARCTRACE_LOST_CPU) != 0) {
    std::map<uint32_t, uint64_t>& by_cpu =
        lost.cause == ARCTRACE_LOST_FILE ? unsaved_by_cpu_ : unconfirmed_by_cpu_;
    const auto cpu = by_cpu.find(lost.flags >> ARCTRACE_LOST_CPU_SHIFT);
    if (cpu != by_cpu.end()) lost.count = take_off(cpu->second, lost.count);
    return lost.count != 0;
  }
  const bool is_sessions = (lost.flags & ARCTRACE_LOST_SESSION) != 0;
  // The control page counts these losses as long as the buffer exists.
  if (is_sessions && lost.cause != ARCTRACE_LOST_FILE &&
      lost.since_ticks == session_start_ticks(view_)) {
    return false;
  }
  const Loss loss{is_sessions ? uint32_t{ARCTRACE_WRITER_COLLECTOR} : writer,
                  uint32_t{lost.cause}};
  if (const auto unreported = unreported_.find(loss); !is_sessions &&
                                                      unreported != unreported_.end() &&
                                                      unreported->second == lost.count) {
    unreported_.erase(unreported);
    return false;
  }
  if (const auto unsaved = unsaved_.find(loss); unsaved != unsaved_.end()) {
    lost.count = take_off(unsaved->second, lost.count);
  }
  return lost.count != 0;
}

}  // namespace arctrace::recorder
