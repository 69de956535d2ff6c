// The records in the file of a collector that died, for a file that has the contents of
// that file and of the buffer (`arctrace recover --merge`). Losses that the buffer still
// counts, and blocks that it still has, appear once.
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

namespace arctrace::recorder {

class MergedRecords {
 public:
  // `chunks`: all chunks of the file, in its order.
  MergedRecords(const BufferView& view, std::span<const EarlierChunk> chunks);

  // The part of the RECORDS chunk `chunks[index]` that the merged file gets: all but the
  // records of the file's end, and losses for which a snapshot of the buffer writes
  // records again.
  const std::vector<std::byte>& payload(size_t index) const { return payloads_[index]; }

 private:
  // The writer (ARCTRACE_WRITER_COLLECTOR: of the session) and the cause.
  using Loss = std::pair<uint32_t, uint32_t>;

  void count_unconfirmed(std::span<const EarlierChunk> chunks);
  void count_unsaved(std::span<const EarlierChunk> chunks);
  bool keeps_untrusted(std::span<std::byte> record);
  bool keeps_loss(uint32_t writer, arctrace_lost_body& lost);

  const BufferView view_;
  // Losses that slots count, but no confirmed LOST record.
  std::map<Loss, uint64_t> unreported_;
  // Losses of each CPU that the file's records count beyond those that are confirmed.
  std::map<uint32_t, uint64_t> unconfirmed_by_cpu_;
  bool lacks_blocks_ = false;  // the file has losses of cause file
  // The losses that the file counts for blocks that are still in the buffer.
  std::map<Loss, uint64_t> unsaved_;
  std::map<uint32_t, uint64_t> unsaved_by_cpu_;  // the kernel's records
  std::vector<std::vector<std::byte>> payloads_;
};

}  // namespace arctrace::recorder
