// One block of full form, or RECORDS chunk, copied and sorted by time; and the check of
// its records' bodies.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/findings.hpp"
#include "reader/trace/input.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

// The records of many writers, which were reserved in one order and stamped in nearly the
// same.
class SharedBlock {
 public:
  // Copies and walks the block. Records that break a rule lead to a finding and are not
  // among records(). Error: the input cannot be read.
  absl::Status load_untrusted(Input& input, const BlockRef& ref, FindingLog& findings);

  // The committed, valid records by ticks; those of one time in the order of the block.
  // They are valid until the next load.
  const std::vector<RawRecord>& records() const { return records_; }
  // For a kernel writer's block: converts its times to ticks.
  void convert_times(const ClockMap& clock);
  // The records in progress; their ticks and writer may not have been stored yet.
  const std::vector<RawRecord>& in_progress() const { return in_progress_; }
  // How many records are missing from records() because their body breaks a rule.
  uint64_t invalid() const { return invalid_; }

 private:
  void walk(const BlockRef& ref, FindingLog& findings);
  void sort();

  std::vector<std::byte> bytes_;
  std::vector<RawRecord> records_;
  std::vector<RawRecord> in_progress_;
  uint64_t invalid_ = 0;
};

// Returns false, with a finding, if the record's body is not as its type says.
bool check_body_untrusted(const RawRecord& record, uint64_t chunk, FindingLog& findings);

// Adds the finding for a block in which the walk broke off. There is none for half a
// record at the end of a block that the input cuts, nor for a record that was begun
// during the copy at a place that had just been copied as a hole.
void report_broken(const RecordCursor& cursor, const BlockRef& ref, FindingLog& findings);

// Returns why `body` is not one of `type` (SPEC.md, rule R3), or nullptr if it is: then
// it has the fixed part of the type, and the texts and elements whose sizes and counts
// are in the fixed part. The body of an unknown type may be anything.
const char* body_problem_untrusted(uint16_t type, std::span<const std::byte> body);

}  // namespace arctrace::reader
