// The counts that were made while a session was recorded, by writers, in a buffer's slots
// and of the files of a recording, compared with the records that a reader found.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <arctrace/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "reader/trace/buffer_state.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/findings.hpp"
#include "reader/trace/merge.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/recorded_times.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

// How many records a session's writers counted, against those that a reader found.
class SessionTotals {
 public:
  // Adds a TOTALS record, whose body is valid. Of several for one writer the last counts.
  void add_untrusted(const RawRecord& record);
  // Adds the counts of a buffer's slots.
  void add_slots(const BufferState& buffer);

  // Returns the number of records that a writer committed; nullopt: nothing counts them.
  std::optional<uint64_t> written_by(uint32_t writer) const;

  // The number of records that the record filter left out, of the whole session.
  uint64_t filtered_out() const { return filtered_out_; }

  // To be called after all records were emitted. Adds the missing records to `summary`.
  // In overwrite mode, records that were counted and are not in the trace were
  // overwritten, and LOST records may have been, too. If the file of an earlier collector
  // has some, they are counted as elsewhere. If another file has the whole session,
  // missing records are a finding.
  void account(const Session& session, const Definitions& definitions,
               const WriterOutcomes& fates, const Emitter& emitter,
               bool is_in_part_elsewhere, Summary& summary, FindingLog& findings) const;

 private:
  void add_overwritten(const Definitions& definitions, const Emitter& emitter,
                       Summary& summary) const;
  // Does what account() does, for modes in which nothing is overwritten.
  void account_retained(const Definitions& definitions, const WriterOutcomes& fates,
                        const Emitter& emitter, bool is_in_part_elsewhere,
                        Summary& summary, FindingLog& findings) const;

  // By writer; ARCTRACE_WRITER_COLLECTOR: of the whole session.
  absl::flat_hash_map<uint32_t, uint64_t> written_;
  // By writer: 0 if it is not known whose the losses of a slot were.
  absl::flat_hash_map<uint32_t, uint64_t> lost_by_writer_;
  std::array<uint64_t, ARCTRACE_LOST_CAUSES> lost_{};
  uint64_t filtered_out_ = 0;
};

// ---- What the slots and counters of a buffer tell of its writers ----

// A writer is alive if it holds a slot. REQUIRES: all threads are in `definitions`.
void resolve_by_slots(const BufferState& buffer, Session& session,
                      Definitions& definitions, WriterOutcomes& fates);

// Drops waiting calls that are no longer open: a thread that has written records since a
// call began to wait has recorded or left the call, and the buffer's copy of the call is
// older.
void drop_reported_calls(const SessionTotals& totals, Definitions& definitions);

// Emits LOST records, as the collector would have, for the losses that a buffer's
// counters have and no LOST record in it counts. `chunk`: the place that they get.
// Returns false if the sink wants no more.
bool emit_unreported_losses(const BufferState& buffer, const Session& session,
                            uint64_t chunk, Emitter& emitter);

// What the files of a recording tell of each other (SPEC.md COL-11, FILE-9): which of
// them are read, and how many records the others had.
class FileTotals {
 public:
  // Adds a FILES record in chunk `chunk`, whose body is valid: of all files that are
  // read, in their order, and in the order in which the files have the records.
  void add_untrusted(const RawRecord& record, uint64_t chunk);
  // Adds a block of user records, and when its first one was written; in any order.
  void add_block(uint64_t chunk, uint64_t first_ticks);

  // To be called after all of them. Returns the missing files, in order of time. The
  // collector writes late: the time of what it had written by then ends with the first
  // record in the next file.
  std::vector<MissingFiles> missing(const ClockMap& clock) const;
  // Tells which files of their recording are read.
  void describe(RecordingFiles& files) const;

  // To be called after all records of a range were emitted and SessionTotals::account().
  // Records in files that were removed are lost by that cause, and records in other
  // missing files are elsewhere. If the range is all time, losses that LOST records of
  // these files told are added, too.
  void account(std::span<const MissingFiles> missing, const TimeRange& range,
               Summary& summary) const;

 private:
  using Losses = std::array<uint64_t, ARCTRACE_LOST_CAUSES>;
  struct Counts {
    uint64_t records = 0, kernel = 0;
    Losses lost{};
  };
  // A stretch whose files are missing: its records were written after the one count and
  // before the other.
  struct Stretch {
    size_t file = 0;  // the index in files_ of the file after it
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
    Counts removed;  // of the oldest files, without losses
    uint64_t removed_ticks = 0;
    std::vector<Stretch> stretches;
  };

  void begin_file(const arctrace_files_body& body, const Counts& counts, uint64_t ticks,
                  uint64_t chunk);
  void append_missing(const Series& series, const Stretch& stretch, const ClockMap& clock,
                      std::vector<MissingFiles>& missing) const;

  std::vector<Series> series_;
  std::vector<File> files_;  // by rising chunks
  Counts covered_;           // of the series' files up to here
  uint64_t covered_ticks_ = 0;
  bool is_amid_file_ = false;  // a file began and has not ended
  uint32_t first_ = 0, last_ = 0;
  uint64_t removed_files_ = 0;
};

}  // namespace arctrace::reader
