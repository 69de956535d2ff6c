// What a trace holds, in numbers.
#pragma once

#include <arctrace/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace arctrace::reader {

// As many causes as a trace may have: the last one is ARCTRACE_LOST_REMOVED.
inline constexpr size_t kLossCauses = ARCTRACE_LOST_REMOVED + 1;

// The records of one form, and the threads that have any.
struct FormCounts {
  uint64_t records = 0;
  uint64_t threads = 0;
};

// Sums over one Trace::read(), of what is in its range.
struct Summary {
  // Committed user records: of types ENTER to MARK, and unknown ones below PROCESS.
  // records + lost + torn + unfinished = attempted.
  uint64_t records = 0;
  uint64_t lost = 0;  // the sum of lost_by_cause, in which the kernel's are, too
  std::array<uint64_t, kLossCauses> lost_by_cause{};
  // In overwrite mode: user records that were written and gave way to newer ones, as the
  // totals count them. Then records + lost + torn + unfinished + overwritten = attempted.
  uint64_t overwritten = 0;
  // User records that are in other files of the recording, as far as that is known: of
  // another collector, or of the same one, which does not say that it has removed them.
  uint64_t elsewhere = 0;
  // Events, instants and counters that the record filter left out by their names, levels
  // or fields (SPEC.md FLT-2): of the whole session, as the totals count them.
  uint64_t filtered_out = 0;
  uint64_t torn = 0;        // user records that their dead writer did not commit
  uint64_t unfinished = 0;  // user records that a live writer had not committed yet
  uint64_t invalid = 0;     // records not handed out, because their body breaks a rule
  uint64_t findings = 0;
  uint64_t blocks = 0, bytes = 0;  // read: blocks, bytes of chunks or blocks
  uint64_t processes = 0, threads = 0;
  // From the first of `records` and of the kernel's, or the begin of a thread that has
  // any, or of a program, if that is earlier; to the last of them, or the end of such a
  // thread.
  int64_t first_ns = 0, last_ns = 0;
  int64_t duration_ns = 0;                       // last_ns - first_ns
  std::map<uint16_t, uint64_t> records_by_type;  // every type that was handed out
  std::vector<uint64_t> records_by_thread;       // by ThreadIndex, as `records`
  // Those of them that stand in the thread's exclusive blocks.
  std::vector<uint64_t> own_records_by_thread;
  // Of `records`, without the kernel's. A thread may be counted in both forms.
  FormCounts own_blocks, shared_chain;
  std::vector<uint64_t> lost_by_thread;         // as `lost`
  std::vector<uint64_t> overwritten_by_thread;  // of threads whose totals are known
  // Of the same, as `elsewhere`, with those in files that were removed.
  std::vector<uint64_t> elsewhere_by_thread;
};

}  // namespace arctrace::reader
