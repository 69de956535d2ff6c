// One block of full form (or RECORDS chunk), copied and put into order of time.
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

// The records of many writers: reserved in one order, stamped in nearly the same.
class SharedBlock {
 public:
  // Copies and walks the block. Records that break a rule lead to a finding and are left
  // out. Error: the input cannot be read.
  absl::Status load_untrusted(Input& input, const BlockRef& ref, FindingLog& findings);

  // Committed, valid, by ticks; those of one moment in the order they stand. Valid until
  // the next load.
  const std::vector<RawRecord>& records() const { return records_; }
  // Of a kernel writer's block: its times become ticks.
  void convert_times(const ClockMap& clock);
  // In progress; ticks and writer may not have been stored yet.
  const std::vector<RawRecord>& in_progress() const { return in_progress_; }
  // Records that were left out because their content breaks a rule.
  uint64_t invalid() const { return invalid_; }

 private:
  void walk(const BlockRef& ref, FindingLog& findings);
  void sort();

  std::vector<std::byte> bytes_;
  std::vector<RawRecord> records_;
  std::vector<RawRecord> in_progress_;
  uint64_t invalid_ = 0;
};

// The finding for a record whose body is not of its type; false if it is.
bool check_body_untrusted(const RawRecord& record, uint64_t place, FindingLog& findings);

// The finding for a block that cannot be walked on. No finding: a block that the input
// cuts ends in half a record; one that was copied while it was written has a record that
// was begun in what had just been copied as a hole.
void report_broken(const RecordCursor& cursor, const BlockRef& ref, FindingLog& findings);

}  // namespace arctrace::reader
