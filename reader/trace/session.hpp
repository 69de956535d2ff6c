// The facts about a recorded session that are true of the whole trace, the sums over the
// trace, and the session's clock.
#pragma once

#include <absl/status/statusor.h>
#include <arctrace/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reader/trace/input.hpp"
#include "src/buffer/buffer_view.hpp"

namespace arctrace::reader {

// The files that are read of a recording that was cut into files, by FILES records.
struct RecordingFiles {
  size_t given = 1;              // how many are read
  uint32_t first = 0, last = 0;  // their numbers, from 1; 0: the recording is one file
  uint64_t removed = 0;          // by the recorder, as far as the files tell
  bool goes_on = false;          // another file follows the last one
};

// How the clock word moved, from which records have their times.
struct ClockWord {
  uint64_t mean_age_ns = 0;  // by how much a time is too early on average
  uint64_t longest_ns = 0;   // the longest step
};

// A session's header, and what the collector's SYSTEM, SESSION and CHILD_STATUS records
// add to it.
struct Session {
  std::string path;
  uint64_t size_bytes = 0;
  bool raw = false;  // a buffer's image, not a trace file
  uint16_t version_major = 0, version_minor = 0;
  uint32_t mode = 0;   // enum arctrace_mode
  uint32_t scope = 0;  // enum arctrace_scope
  uint32_t clock = 0;  // enum arctrace_clock
  uint32_t block_size = 0, block_count = 0, slot_count = 0, cpu_count = 0;
  uint64_t buffer_size = 0;
  uint32_t creator_pid = 0, creator_uid = 0;
  uint64_t pinned_bytes = 0;                // of the buffer, from its beginning
  uint32_t stamps = ARCTRACE_STAMPS_EXACT;  // enum arctrace_stamps
  uint32_t resolution_ns = 0;               // of these, as it was asked for; 0: exact
  std::optional<ClockWord> clock_word;      // from CLOCK_WORD
  bool has_checksums = false;               // each chunk of the file has one
  uint64_t index_offset = 0;      // of the file: where its INDEX is; 0: there is none
  bool has_perf_records = false;  // the kernel's are from perf events: no wake-ups
  uint64_t ticks_per_second = 0, start_ticks = 0;
  uint64_t start_monotonic_ns = 0, start_realtime_ns = 0;
  std::array<uint8_t, 16> id{};
  // From SYSTEM; empty or 0 if there is none.
  std::string host, kernel;
  std::vector<std::string> recorder_command;
  uint32_t page_size = 0, cpus_online = 0;
  // From HOOK_COSTS: one of each kind that is known.
  std::vector<arctrace_hook_cost> hook_costs;
  // From SESSION and CHILD_STATUS.
  bool finished = false;           // false: cut off, or a raw buffer
  bool resumed = false;            // earlier records may be in another file
  bool begins_elsewhere = false;   // true of the first one of several files
  int64_t started_ns = INT64_MIN;  // when that file's collector began, or the session
  // The time at which a snapshot or a recovery began to copy the buffer; INT64_MIN: no
  // such copy.
  int64_t copied_ns = INT64_MIN;
  bool may_lack_definitions = false;  // they are in another file, or did not fit
  int32_t disk_full_errno = 0;
  std::optional<int32_t> child_wait_status;
  RecordingFiles files;
  // The numbers of identities ever given, as COUNTS or a buffer has them; 0: not known.
  uint32_t processes = 0, threads = 0;
};

// The session header of a trace: what the trace is, or why it cannot be read.
struct SessionHeader {
  Session session;
  Geometry geometry;
};

// Reads and checks the session header of a trace file or a buffer's image. Errors, each
// in one line that names the input: it is empty, foreign, cut off, or of another version
// or byte order, or its geometry is not valid.
absl::StatusOr<SessionHeader> read_session_header_untrusted(Input& input);

// The number of causes that a trace may have: the last one is ARCTRACE_LOST_REMOVED.
inline constexpr size_t kLossCauses = ARCTRACE_LOST_REMOVED + 1;

// The records of one form, and the threads that have any.
struct FormCounts {
  uint64_t records = 0;
  uint64_t threads = 0;
};

// The sums over the range of one Trace::read().
struct Summary {
  // Committed user records: of types ENTER to MARK, and unknown ones below PROCESS.
  // records + lost + torn + unfinished = attempted.
  uint64_t records = 0;
  uint64_t lost = 0;  // the sum of lost_by_cause, in which the kernel's are, too
  std::array<uint64_t, kLossCauses> lost_by_cause{};
  // In overwrite mode: user records that were overwritten, as the totals count them. Then
  // records + lost + torn + unfinished + overwritten = attempted.
  uint64_t overwritten = 0;
  // User records that are in other files of the recording, as far as that is known: of
  // another collector, or of the same one, if it did not record that it removed them.
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
  // The time from the first record of `records` and of the kernel's, or the earlier begin
  // of a thread that has any, or of a program; to the last such record, or the end of
  // such a thread.
  int64_t first_ns = 0, last_ns = 0;
  int64_t duration_ns = 0;                       // last_ns - first_ns
  std::map<uint16_t, uint64_t> records_by_type;  // every type that was handed out
  std::vector<uint64_t> records_by_thread;       // by ThreadIndex, as `records`
  // The part of records_by_thread that is in the thread's exclusive blocks.
  std::vector<uint64_t> own_records_by_thread;
  // The parts of `records` by form, without the kernel's. A thread may be counted in
  // both.
  FormCounts own_blocks, shared_chain;
  std::vector<uint64_t> lost_by_thread;         // as `lost`
  std::vector<uint64_t> overwritten_by_thread;  // of threads whose totals are known
  // By thread as `elsewhere`, and also the records in files that were removed.
  std::vector<uint64_t> elsewhere_by_thread;
};

// One time on three clocks, as in a CLOCK_SYNC record.
struct ClockSync {
  uint64_t ticks = 0;
  uint64_t monotonic_ns = 0;
  uint64_t realtime_ns = 0;
};

// Converts ticks of the trace's clock to nanoseconds since the session's start, and back,
// by a piecewise-linear map: ns is the floor of the line through two syncs, calculated in
// integers, so that no errors add up. If the rate of the kernel's clock changed between
// two syncs (by adjtimex) and was steady before and after, the lines of before and after
// are extended to where they meet. Before the first and after the last sync the line of
// that end continues; results that do not fit saturate. Several threads may use it at
// once.
class ClockMap {
 public:
  // A single line, through `start` with this rate. A rate of 0 counts as 1e9.
  ClockMap(ClockSync start, uint64_t ticks_per_second);

  // Takes the lines from the start through `syncs`, which are sorted by ticks. Syncs that
  // do not rise strictly in ticks, or fall in monotonic_ns, are rejected; returns how
  // many. A single sync changes nothing, because it may be so close to the start that the
  // line through both says little about the rate.
  uint64_t set_syncs(std::span<const ClockSync> syncs);

  // Returns CLOCK_MONOTONIC ns since the session's start; negative before it. Takes
  // constant time if ticks come in order.
  int64_t to_ns(uint64_t ticks) const;

  // Returns the ticks at an absolute CLOCK_MONOTONIC time, which the kernel's records
  // have.
  uint64_t to_ticks(uint64_t monotonic_ns) const;

  // Returns the CLOCK_REALTIME ns of a result of to_ns, by the offset at the session's
  // start.
  int64_t to_realtime_ns(int64_t time_ns) const;

 private:
  // ns = origin_ns + floor((ticks - origin_ticks) * ns_span / tick_span)
  struct Segment {
    uint64_t origin_ticks;
    int64_t origin_ns;
    uint64_t tick_span, ns_span;
    uint64_t rate_whole, rate_fraction;  // ns_span / tick_span as 64.64 fixed point
    uint64_t short_distance;             // below it no product needs more than 64 bits
  };

  void draw(std::span<const ClockSync> rising);
  static Segment make_segment(uint64_t origin_ticks, int64_t origin_ns,
                              uint64_t tick_span, uint64_t ns_span);
  static int64_t apply(const Segment& segment, uint64_t ticks);

  ClockSync start_;
  std::vector<Segment> segments_;  // sorted by origin_ticks, never empty
  // The segment of the last result of to_ns; accessed by relaxed atomics, as a hint.
  mutable size_t last_ = 0;
};

}  // namespace arctrace::reader
