// Cuts a recording into files. The newest is FILE, the name that the user gave; the
// earlier ones are FILE.1, FILE.2 ..., of which a limit decides how many are retained.
// Each file can be read by itself: it has its own header, clock syncs, and all
// definitions that it needs.
#pragma once

#include <absl/status/status.h>
#include <arctrace/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/recorder/buffer/clock_source.hpp"
#include "src/recorder/file/session_records.hpp"
#include "src/recorder/file/trace_file.hpp"

namespace arctrace::recorder {

// The records that a recording has written into all its files, and those in files that
// were removed again: the counts of FILES records.
struct FileCounts {
  uint64_t records = 0;  // committed user records
  uint64_t kernel = 0;   // the kernel's records
  // The losses that LOST records count, in blocks and among the collector's own.
  std::array<uint64_t, ARCTRACE_LOST_CAUSES> lost{};

  void add(const BlockContents& block) {
    records += block.records;
    kernel += block.kernel;
    for (size_t cause = 0; cause < lost.size(); ++cause) lost[cause] += block.lost[cause];
  }
};

// The counts of all files up to the end of one, and when the next one begins.
struct FileEnd {
  uint64_t records = 0, kernel = 0, ticks = 0;
};

// The oldest files, which have been removed.
struct RemovedFiles {
  uint32_t files = 0;
  uint64_t records = 0, kernel = 0;  // the records in them
  uint64_t until_ticks = 0;          // when the oldest remaining file begins
};

// What the recorder does while the disk is full.
enum class OnFull : uint8_t {
  kWait,  // leaves the records in the buffer, and goes on when there is space
  kStop,  // ends the file there
  kRing,  // removes the oldest of the retained files, and waits
};

struct FileLimits {
  uint32_t files = 8;  // how many are retained, the newest ones; 0: all
  uint64_t bytes = 0;  // of all together; the newest is always retained; 0: no limit
  OnFull on_full = OnFull::kWait;
  uint64_t sync_ns = 0;  // how often the disk is made to have the file; 0: at its end
};

// Names the files beside the trace file, FILE.1, FILE.2 ..., and removes the oldest of
// them when there are more than the limits allow. The file ring and the flight recorder
// use it.
class RetainedFiles {
 public:
  RetainedFiles(std::string output, FileLimits limits)
      : output_(std::move(output)), limits_(limits) {}

  // The name of the next file.
  std::string next_name() const;
  // Adds the file next_name(), of `bytes` bytes, which exists now. Removes the oldest
  // files while they are too many, or together with `more` bytes too large.
  void add(uint64_t bytes, uint64_t more = 0, FileEnd end = {});

  // Removes the oldest file, to free space. False: there is none.
  bool drop_oldest();

  uint64_t bytes() const { return bytes_; }
  size_t count() const { return files_.size(); }
  uint32_t ever() const { return ever_; }  // files added so far
  const RemovedFiles& removed() const { return removed_; }

 private:
  struct File {
    std::string name;
    uint64_t bytes;
    FileEnd end;
  };
  std::string output_;
  FileLimits limits_;
  std::deque<File> files_;  // the oldest first
  uint64_t bytes_ = 0;      // of files_
  uint32_t ever_ = 0;
  RemovedFiles removed_;
};

class FileRing {
 public:
  // Cuts `file`, to which the first records are written already. All files together take
  // at most about `limits.bytes`. `is_resumed`: the session had a collector before.
  FileRing(TraceFile& file, const arctrace_session_header& header, RecorderFacts recorder,
           FileLimits limits, bool is_resumed = false);

  // Retains a copy of a block of definitions for later files: for each hand-out the last
  // copy, and no more in all than `limits.bytes`.
  void remember(const arctrace_block_header& header, uint32_t index,
                std::span<const std::byte> rest);

  // Whether the next `bytes` belong into this file and not into the next one.
  bool has_space(uint64_t bytes) const {
    return file_.bytes() == definitions_size_ ||
           file_.bytes() + bytes <= file_size_ + definitions_size_;
  }

  // The number of bytes that the names of generated code may add to each file.
  uint64_t code_names_max() const { return file_size_ / 8; }

  // Forgets definitions that no record can need any more. To be called once a pass,
  // before blocks are written. `living`: the processes that have a thread, sorted.
  // `next`: control.next, read after `living` was found. `oldest_shared`: the smallest
  // hand-out of a shared block of data.
  void forget_gone(const std::vector<uint32_t>& living, uint64_t next,
                   uint64_t oldest_shared);

  // Ends this file and begins the next one with the retained definitions. Errors are
  // noted in the file; after them finish_change() goes on.
  void begin_next();

  // Writes the rest of what begin_next() had no space for, if there is any. To be called
  // before anything else is written, once the file's error is cleared.
  void finish_change();

  // Removes the oldest earlier file. add_removed() records that.
  void drop_oldest() { retained_.drop_oldest(); }
  // Adds FILES if files were removed and no record in a file says so yet.
  void add_removed(RecordBuilder& records, uint64_t ticks) const;

  // Adds FILES, with which this collector's first file begins.
  void add_begin(RecordBuilder& records, uint64_t ticks) const {
    add_files(records, ticks, ARCTRACE_FILES_BEGIN);
  }

  // Notes that the file has the block, or the collector's records. To be called for each
  // of them but for those that this object writes.
  void note_block(const BlockContents& block) { written_.add(block); }
  void note_records(std::span<const std::byte> records);

  const RetainedFiles& retained() const { return retained_; }

 private:
  struct Definitions {
    arctrace_block_header header;
    uint32_t index;
    std::vector<std::byte> rest;  // the block after its header
    uint64_t gone_at = 0;         // control.next when its process was first seen gone
  };
  // The state of the change from one file to the next.
  enum class Change : uint8_t { kNone, kEnding, kOpening, kBeginning };
  void end_file(const ClockSync& now);
  absl::Status open_next();
  void begin_file(const ClockSync& now);
  void add_files(RecordBuilder& records, uint64_t ticks, arctrace_files_event what) const;
  using Remembered = std::map<uint64_t, Definitions>;  // by hand-out
  Remembered::iterator forget(Remembered::iterator block);

  TraceFile& file_;
  const arctrace_session_header header_;
  const RecorderFacts recorder_;
  const bool is_resumed_;  // the session had a collector before
  const uint64_t begin_ticks_;
  const std::string path_;
  const FileLimits limits_;
  const uint64_t file_size_;       // of a full file, without its first definitions
  uint64_t definitions_size_ = 0;  // bytes up to the end of this file's first definitions
  uint64_t remembered_ = 0;        // bytes
  Change change_ = Change::kNone;
  bool was_published_ = false;  // the previous file was published
  RetainedFiles retained_;
  FileCounts written_;         // into all files
  uint32_t told_removed_ = 0;  // removed files that a record in a file counts
  Remembered definitions_;
};

}  // namespace arctrace::recorder
