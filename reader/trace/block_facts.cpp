#include "reader/trace/block_facts.hpp"

#include "reader/trace/finding_log.hpp"
#include "reader/trace/record_cursor.hpp"

namespace arctrace::reader {
namespace {

// Of a STACK's body.
uint16_t stack_facts_untrusted(std::span<const std::byte> body) {
  const auto stack = load_part_untrusted<arctrace_stack_body>(body);
  uint16_t facts = stack.count < stack.depth ? ARCTRACE_FACT_PARTIAL_STACK : 0;
  if (stack.depth != 0) facts |= ARCTRACE_FACT_FRAMES;
  if (body.size() > sizeof stack + uint64_t{stack.count} * sizeof(uint64_t)) {
    facts |= ARCTRACE_FACT_NEEDED;
  }
  return facts;
}

}  // namespace

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
    if (is_needed_later(record.type)) facts |= ARCTRACE_FACT_NEEDED;
    if (record.type == ARCTRACE_TYPE_STACK) facts |= stack_facts_untrusted(record.body);
  }
  return facts;
}

}  // namespace arctrace::reader
