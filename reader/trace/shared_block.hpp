// One block of full form, or RECORDS chunk, copied and sorted by time.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/clock_map.hpp"
#include "reader/trace/finding_log.hpp"
#include "reader/trace/input.hpp"
#include "reader/trace/record_cursor.hpp"

namespace arctrace::reader {

// The records of many writers, which were reserved in one order and stamped in nearly the
// same.
class SharedBlock {
 public:
  // Copies and walks the block. Records that break a rule lead to a finding and are not
  // among records(). Error: the input cannot be read.
  absl::Status load_untrusted(Input& input, const BlockRef& ref, FindingLog& findings);

  // The committed, valid records by ticks, those of one moment in the order of the block.
  // They hold until the next load.
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

// False, with a finding, if the record's body is not as its type says.
bool check_body_untrusted(const RawRecord& record, uint64_t chunk, FindingLog& findings);

// Adds the finding for a block in which the walk broke off. There is none for half a
// record at the end of a block that the input cuts, nor for a record that was begun,
// while the block was copied, in what had just been copied as a hole.
void report_broken(const RecordCursor& cursor, const BlockRef& ref, FindingLog& findings);

}  // namespace arctrace::reader
