// A second, minimal reader of trace files, for the tests of the writer and the collector:
// it shares no code with reader/, checks the rules of SPEC.md record by record, and
// accepts no breach.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace arctrace::testing {

struct DecodedRecord {
  uint16_t type = 0;
  bool in_progress = false;
  uint32_t writer = 0;
  uint64_t ticks = 0;
  uint32_t offset = 0;              // in its block, or RECORDS chunk
  std::span<const std::byte> body;  // bytes of the trace

  // Little-endian numbers at byte `at` of the body; 0 beyond its end.
  uint32_t u32(size_t at) const;
  uint64_t u64(size_t at) const;
  // `size` bytes at `at`; less at the body's end.
  std::string text(size_t at, size_t size) const;

  bool is_users() const;  // ENTER to RESULT, EVENT to MARK: what counts as attempted
};

struct DecodedBlock {
  arctrace_block_header header{};
  uint16_t flags = 0;  // the chunk's
  bool has_hole = false;
  std::vector<DecodedRecord> records;

  // Whether it is one writer's, in compact or bare form.
  bool is_compact() const { return header.form != ARCTRACE_FORM_FULL; }
};

struct DecodedTrace {
  DecodedTrace() = default;
  DecodedTrace(DecodedTrace&&) =
      default;  // a copy's records would point into the original

  std::vector<std::byte> bytes;  // of the file; the records' bodies point into them
  arctrace_session_header header{};
  std::vector<DecodedBlock> blocks;      // in the order of their hand-out
  std::vector<DecodedRecord> collector;  // of all RECORDS chunks
  bool finished = false;                 // SESSION_FINISHED is the last record
  std::vector<std::string> problems;     // breaches of SPEC.md; a rule's name in front

  // All records of one type, blocks first.
  std::vector<DecodedRecord> of_type(uint16_t type) const;
  // A writer's committed user records: by ticks, else in the order of their blocks.
  std::vector<DecodedRecord> of_writer(uint32_t writer) const;
  // Losses that LOST records count: of one writer, of all.
  uint64_t lost(uint32_t writer) const;
  uint64_t lost() const;
  uint64_t written() const;  // committed user records
  uint64_t torn() const;     // user records in progress
};

// Decodes what it can and notes each breach of the rules of SPEC.md that concern a file,
// its blocks and the offsets of its records.
DecodedTrace decode_trace(std::vector<std::byte> bytes);

// Breaches of R7, D1 and D4 (a used name is defined); a file must have none only if there
// was space for all definitions.
std::vector<std::string> undefined_uses(const DecodedTrace& trace);

// The problems as one text for a test's message, "" if there are none.
std::string joined(const std::vector<std::string>& problems);

}  // namespace arctrace::testing
