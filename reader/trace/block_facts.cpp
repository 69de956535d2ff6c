#include "reader/trace/block_facts.hpp"

#include "reader/trace/finding_log.hpp"
#include "reader/trace/record_cursor.hpp"
#include "src/protocol/block_facts.hpp"

namespace arctrace::reader {

absl::StatusOr<uint16_t> scan_facts_untrusted(Input& input, const BlockRef& block,
                                              std::vector<std::byte>& scratch) {
  FindingLog unused(0);
  scratch.resize(block.size - block.records_offset());
  const absl::StatusOr<size_t> there =
      copy_block_untrusted(input, block, block.records_offset(), scratch, unused);
  if (!there.ok()) return there.status();
  RecordCursor cursor(true, 0, block.live);
  cursor.set_window(std::span(scratch).first(*there), block.records_offset(), true);
  uint16_t facts = ARCTRACE_FACT_KNOWN;
  RawRecord record;
  while (cursor.next_untrusted(record) == RecordCursor::Result::kRecord) {
    if (record.in_progress) continue;
    facts |= facts_of_record_untrusted(record.type, record.body);
  }
  return facts;
}

}  // namespace arctrace::reader
