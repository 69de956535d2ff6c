// Cuts a recording into files. The newest is FILE, the name that the user gave; the
// earlier ones are FILE.1, FILE.2 ..., of which a limit decides how many are kept. Each
// file can be read by itself: it has its own header, clock syncs, and all definitions
// that it needs.
#pragma once

#include <absl/status/status.h>
#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/recorder/buffer/clock_source.hpp"
#include "src/recorder/file/block_scan.hpp"
#include "src/recorder/file/file_counts.hpp"
#include "src/recorder/file/kept_files.hpp"
#include "src/recorder/file/record_builder.hpp"
#include "src/recorder/file/session_records.hpp"
#include "src/recorder/file/trace_file.hpp"

namespace arctrace {

class FileRing {
 public:
  // Cuts `file`, to which the first records are written already. All files together take
  // at most about `limits.bytes`. `is_resumed`: the session had a collector before.
  FileRing(TraceFile& file, const arctrace_session_header& header, RecorderFacts recorder,
           FileLimits limits, bool is_resumed = false);

  // Remembers a copy of a block of definitions for the files to come: for each hand-out
  // the last copy, and no more in all than `limits.bytes`.
  void remember(const arctrace_block_header& header, uint32_t index,
                std::span<const std::byte> rest);

  // Whether `bytes` more belong into this file and not into the next one.
  bool has_room(uint64_t bytes) const {
    return file_.bytes() == definitions_size_ ||
           file_.bytes() + bytes <= file_size_ + definitions_size_;
  }

  // How many bytes the names of generated code may add to each file.
  uint64_t code_names_max() const { return file_size_ / 8; }

  // Forgets definitions that no record can need any more. To be called once a round,
  // before blocks are written. `living`: the processes that have a thread, sorted.
  // `next`: control.next, read after `living` was found. `oldest_shared`: the smallest
  // hand-out of a shared block of data.
  void forget_gone(const std::vector<uint32_t>& living, uint64_t next,
                   uint64_t oldest_shared);

  // Ends this file and begins the next one with the definitions that are remembered.
  // Errors are noted in the file; after them finish_change() goes on.
  void begin_next();

  // Goes on with what begin_next() had no room for; nothing if that is nothing. To be
  // called before anything else is written, once the file's error is cleared.
  void finish_change();

  // Removes the oldest earlier file. add_removed() tells it.
  void drop_oldest() { kept_.drop_oldest(); }
  // Adds FILES if files were removed of which no record tells yet that is in a file.
  void add_removed(RecordBuilder& records, uint64_t ticks) const;

  // Adds FILES, with which this collector's first file begins.
  void add_begin(RecordBuilder& records, uint64_t ticks) const {
    add_files(records, ticks, ARCTRACE_FILES_BEGIN);
  }

  // The file has the block, or the collector's records. To be called for each of them
  // but for those that this object writes.
  void note_block(const BlockContents& block) { written_.add(block); }
  void note_records(std::span<const std::byte> records);

  const KeptFiles& kept() const { return kept_; }

 private:
  struct Definitions {
    arctrace_block_header header;
    uint32_t index;
    std::vector<std::byte> rest;  // the block after its header
    uint64_t gone_at = 0;         // control.next when its process was first seen gone
  };
  // How far the change from one file to the next has come.
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
  bool was_published_ = false;  // the file before was
  KeptFiles kept_;
  FileCounts written_;         // into all files
  uint32_t told_removed_ = 0;  // removed files that a record in a file tells of
  Remembered definitions_;
};

}  // namespace arctrace
