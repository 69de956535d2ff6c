// One recorded session: opened, validated, and read in time order.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reader/trace/clock_map.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/input.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

// What the header and the collector's SYSTEM and SESSION records say.
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
  bool pinned = false;
  bool has_perf_records = false;  // the kernel's are perf's: who wakes whom is not known
  uint64_t ticks_per_second = 0, start_ticks = 0;
  uint64_t start_monotonic_ns = 0, start_realtime_ns = 0;
  std::array<uint8_t, 16> id{};
  // From SYSTEM; empty or 0 if there is none.
  std::string host, kernel;
  std::vector<std::string> recorder_command;
  uint32_t page_size = 0, cpus_online = 0;
  // From SESSION and CHILD_STATUS.
  bool finished = false;  // false: cut off, or a raw buffer
  bool resumed = false;   // what came before may be in another file
  int32_t disk_full_errno = 0;
  std::optional<int32_t> child_wait_status;
};

// Sums over one read().
struct Summary {
  // Committed records of writers, types ENTER to MARK and their like (< PROCESS; not
  // PAD, TIME, STACK, LOST): records + lost + torn + unfinished = attempted.
  uint64_t records = 0;
  uint64_t lost = 0;
  std::array<uint64_t, ARCTRACE_LOST_CAUSES> lost_by_cause{};
  // In overwrite mode: such records that were written and gave way to newer ones, by what
  // the totals count. Then records + lost + torn + unfinished + overwritten = attempted.
  uint64_t overwritten = 0;
  uint64_t torn = 0;        // such records that their dead writer did not commit
  uint64_t unfinished = 0;  // such records that a live writer had not committed yet
  uint64_t invalid = 0;     // records left out because their content breaks a rule
  uint64_t findings = 0;
  uint64_t blocks = 0, bytes = 0;  // read: blocks, bytes of chunks or blocks
  uint64_t processes = 0, threads = 0;
  int64_t first_ns = 0, last_ns = 0;             // of the records counted in `records`
  int64_t duration_ns = 0;                       // last_ns - first_ns
  std::map<uint16_t, uint64_t> records_by_type;  // every type that was handed out
  std::vector<uint64_t> records_by_thread;       // by ThreadIndex, as `records`
  std::vector<uint64_t> lost_by_thread;          // as `lost`
  std::vector<uint64_t> overwritten_by_thread;   // of threads whose totals are known
};

// State of a raw buffer's parts at the time of opening.
struct BufferState {
  struct Slot {
    uint32_t index = 0, writer = 0, process = 0, pid = 0, tid = 0;
    bool alive = false;
    std::array<uint64_t, ARCTRACE_LOST_CAUSES> lost{}, reported{};
    uint64_t written = 0;      // records of its owner
    uint64_t written_all = 0;  // of earlier owners too
  };
  std::array<uint64_t, 7> blocks_by_phase{};  // by enum arctrace_phase; [0]: invalid
  std::vector<Slot> slots;                    // those ever used
  std::array<uint64_t, ARCTRACE_LOST_CAUSES> session_lost{};  // counted by no slot
  uint32_t gate = 0, collector_pid = 0;
  bool collector_alive = false;
};

struct OpenOptions {
  size_t max_findings = 1000;  // kept; all are counted
};

class Trace {
 public:
  // Opens a trace file or a raw buffer's image: checks the header, indexes the blocks and
  // loads the definitions. Errors (one line, naming the path): the file cannot be read,
  // is empty, foreign, of another version, or its header is not valid. Everything behind
  // the header only leads to findings.
  static absl::StatusOr<Trace> open(const std::string& path, OpenOptions options = {});
  static absl::StatusOr<Trace> open(std::unique_ptr<Input> input,
                                    OpenOptions options = {});

  Trace(Trace&&) noexcept;
  Trace& operator=(Trace&&) noexcept;
  ~Trace();

  const Session& session() const;
  const Definitions& definitions() const;
  const ClockMap& clock() const;
  // Of a raw buffer; nullptr for a file.
  const BufferState* buffer() const;

  // Hands out every valid record of every thread, the collector's (thread kNoIndex) and
  // definitions included, PAD and TIME not, in order of time_ns; a thread's records in
  // the order it wrote them. Losses that only a raw buffer's slots know come last, as
  // LOST with flag RESIDUAL. May be called again; each time from the start. Errors: only
  // that the input can no longer be read.
  absl::Status read(const RecordSink& sink);

  // Of the last read().
  const Summary& summary() const;

  // Of open() and the last read(), in the order they were found; bounded by
  // OpenOptions::max_findings, all counted in finding_count().
  std::span<const Finding> findings() const;
  uint64_t finding_count() const;
  // Adds what a later stage found (content, stack replay): one, or `kept` of `count`.
  void add_finding(Finding finding);
  void add_findings(std::span<const Finding> kept, uint64_t count);

 private:
  struct Impl;
  explicit Trace(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace arctrace::reader
