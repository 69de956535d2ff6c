// The collector's records in the file of a collector that died, for a file that has what
// that file and the buffer have (`arctrace recover --merge`). Losses that the buffer
// still counts, and blocks that it still has, are reported once.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/file/earlier_definitions.hpp"

namespace arctrace {

class MergedRecords {
 public:
  // `chunks`: all chunks of the file, in its order.
  MergedRecords(const BufferView& view, std::span<const EarlierChunk> chunks);

  // What the merged file is to have of the RECORDS chunk `chunks[index]`: all but the end
  // of the file, and losses that a snapshot of the buffer reports again.
  const std::vector<std::byte>& payload(size_t index) const { return payloads_[index]; }

 private:
  // Writer (ARCTRACE_WRITER_COLLECTOR: of the session) and cause.
  using Loss = std::pair<uint32_t, uint32_t>;

  void count_unconfirmed(std::span<const EarlierChunk> chunks);
  void count_unsaved(std::span<const EarlierChunk> chunks);
  bool keeps_untrusted(std::span<std::byte> record);
  bool keeps_loss(uint32_t writer, arctrace_lost_body& lost);

  const BufferView view_;
  // Losses that slots count, and no confirmed record reports.
  std::map<Loss, uint64_t> unreported_;
  // Losses of each CPU that the file's records report beyond those that are confirmed.
  std::map<uint32_t, uint64_t> unconfirmed_by_cpu_;
  bool lacks_blocks_ = false;  // the file reports losses of cause file
  // What the file reports as lost of blocks that are still in the buffer.
  std::map<Loss, uint64_t> unsaved_;
  std::map<uint32_t, uint64_t> unsaved_by_cpu_;  // the kernel's records
  std::vector<std::vector<std::byte>> payloads_;
};

}  // namespace arctrace
