// One recorded session: opens it, validates it, and reads it in order of time.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/buffer_state.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/input.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

struct OpenOptions {
  size_t max_findings = 1000;  // stored; all are counted
  // Whether all bytes are compared with the checksums of their chunks, if there are any,
  // and the blocks with the file's index. Costs another pass over the file.
  bool verifies_checksums = false;
  // The range that is read. A buffer, and a file of a flight recorder, is always read
  // whole. If a file has an index, only the needed blocks are opened. Without one,
  // opening reads the header of each chunk, and each record of the blocks before the
  // range.
  TimeRange range = {};
  // Set if the input is of a session that is being recorded.
  std::optional<LiveKernel> live = std::nullopt;
};

// A trace file, or a raw buffer's image. Its memory is bounded by the number of blocks
// and by the definitions, not by the number of records.
class Trace {
 public:
  // Checks the header, indexes the blocks and loads the definitions. Errors, each in one
  // line that names the path: the file cannot be read, is empty, foreign, or of another
  // version, or its header is not valid. Whatever else is wrong only leads to findings.
  static absl::StatusOr<Trace> open(const std::string& path, OpenOptions options = {});
  static absl::StatusOr<Trace> open(std::unique_ptr<Input> input,
                                    OpenOptions options = {});
  // Opens the files of a recording that was cut into several, in any order; its session
  // is that of the earliest one. Also an error: they are not of one recording.
  static absl::StatusOr<Trace> open(const std::vector<std::string>& paths,
                                    OpenOptions options = {});
  // Opens the files that open_parts() found.
  static absl::StatusOr<Trace> open(std::vector<std::unique_ptr<Input>> parts,
                                    OpenOptions options);

  Trace(Trace&&) noexcept;
  Trace& operator=(Trace&&) noexcept;
  ~Trace();

  const Session& session() const;
  const Definitions& definitions() const;
  const ClockMap& clock() const;
  // The headers of all blocks, and the RECORDS chunks, in the order of the input.
  std::span<const BlockRef> blocks() const;
  // The end of a single file: the offset where chunks can be appended, after all but
  // those of SYMBOLS, and the sequence of the first of them.
  struct End {
    uint64_t offset = 0;
    uint32_t sequence = 0;
  };
  End end() const;
  // The state of a raw buffer's slots and counters; nullptr for a file.
  const BufferState* buffer() const;

  // Hands every valid record to `sink`, in order of time_ns; a thread's records in the
  // order in which it wrote them. Definitions and the collector's records (thread
  // kNoIndex) are included, PAD and TIME are not. Losses that only a raw buffer's slots
  // have come last, as LOST with flag RESIDUAL. Each call starts anew. Error: the input
  // can no longer be read.
  //
  // If the trace was opened for a range, this takes time in proportion to what threads
  // wrote into exclusive blocks in the range, and to all of the shared blocks. `sink`
  // gets all records of the range, and as many of those before and after it as a Replay
  // whose filter has this range, and no least duration, needs to find the calls that it
  // would find in all. (The duration of a call that exceeds the range is not known.) The
  // first record of a thread after others that were skipped is marked
  // (Record::after_skip). summary() is then of the records in the range; records without
  // a time (torn and unfinished ones) are not counted.
  absl::Status read(const RecordSink& sink);
  // About how many bytes of blocks read() reads.
  uint64_t bytes_to_read() const;

  // The sums of the last read().
  const Summary& summary() const;

  // The breaches that open() and the last read() found, in this order: at most
  // OpenOptions::max_findings of them. finding_count() counts all.
  std::span<const Finding> findings() const;
  uint64_t finding_count() const;
  // Adds findings of a later stage (content, stack replay): one, or `count`, of which it
  // stored `kept`.
  void add_finding(Finding finding);
  void add_findings(std::span<const Finding> kept, uint64_t count);

 private:
  struct Impl;
  explicit Trace(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace arctrace::reader
