// What the files of a recording say of each other (SPEC.md COL-11, FILE-9): which of them
// are read, and what was in those that are not.
#pragma once

#include <arctrace/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "reader/trace/clock_map.hpp"
#include "reader/trace/missing_files.hpp"
#include "reader/trace/record_cursor.hpp"
#include "reader/trace/session.hpp"
#include "reader/trace/summary.hpp"
#include "reader/trace/time_range.hpp"

namespace arctrace::reader {

class FileTotals {
 public:
  // A FILES record in chunk `chunk`, whose body is valid: of all files that are read, in
  // their order, and in the order in which they have them.
  void add_untrusted(const RawRecord& record, uint64_t chunk);
  // A block of user records, and when its first one was written; in any order.
  void add_block(uint64_t chunk, uint64_t first_ticks);

  // After all of them. What is missing, in order of time. The collector writes late: the
  // time of what it had written by then ends with the first record in the next file.
  std::vector<MissingFiles> missing(const ClockMap& clock) const;
  // What the files are of their recording.
  void describe(RecordingFiles& files) const;

  // After all records of a range were emitted, and what the session's TOTALS say was
  // settled: what was in files that were removed is lost by that cause, and what was in
  // others that are missing is elsewhere. Of all time, losses that LOST records of these
  // files told are added, too.
  void settle(std::span<const MissingFiles> missing, const TimeRange& range,
              Summary& summary) const;

 private:
  using Losses = std::array<uint64_t, ARCTRACE_LOST_CAUSES>;
  struct Counts {
    uint64_t records = 0, kernel = 0;
    Losses lost{};
  };
  // Of which the files are missing: all that was written after the one count and before
  // the other.
  struct Stretch {
    size_t file = 0;  // the one after it, of files_
    uint64_t from_ticks = 0, to_ticks = 0;
    Counts from, to;
  };
  // A file that is read, and when the first records of its blocks were written.
  struct File {
    uint64_t chunk = 0;  // with which it begins
    uint64_t earliest_ticks = UINT64_MAX, latest_ticks = UINT64_MAX;
  };
  // The files of one collector, whose counts begin anew.
  struct Series {
    uint64_t begin_ticks = 0;
    bool is_resumed = false;
    Counts removed;  // the oldest files have so much; without losses
    uint64_t removed_ticks = 0;
    std::vector<Stretch> stretches;
  };

  void begin_file(const arctrace_files_body& body, const Counts& counts, uint64_t ticks,
                  uint64_t chunk);
  void append_missing(const Series& series, const Stretch& stretch, const ClockMap& clock,
                      std::vector<MissingFiles>& missing) const;

  std::vector<Series> series_;
  std::vector<File> files_;  // by rising chunks
  Counts covered_;           // what the series' files up to here have
  uint64_t covered_ticks_ = 0;
  bool is_amid_file_ = false;  // a file began and has not ended
  uint32_t first_ = 0, last_ = 0;
  uint64_t removed_files_ = 0;
};

}  // namespace arctrace::reader
