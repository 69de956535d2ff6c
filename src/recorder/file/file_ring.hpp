// A recording cut into files: the newest is the one that was asked for, FILE, before it
// went FILE.1, FILE.2 ..., of which as many of the newest stay as a limit allows. Each
// can be read by itself: it has its own header, clocks, and all definitions that it
// needs.
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
#include "src/recorder/file/kept_files.hpp"
#include "src/recorder/file/trace_file.hpp"

namespace arctrace {

class FileRing {
 public:
  // Cuts `file`, which has its first records. `limits.bytes` is shared by all files.
  FileRing(TraceFile& file, const arctrace_session_header& header,
           std::vector<std::string> command_line, FileLimits limits);

  // Remembers a copy of a block of definitions, for the files to come: the last one of a
  // hand-out, and no more in all than all files may have.
  void remember(const arctrace_block_header& header, uint32_t index,
                std::span<const std::byte> rest);

  // Whether a block of so many bytes is for this file, not for the next one.
  bool has_room(uint64_t bytes) const {
    return file_.bytes() == definitions_size_ ||
           file_.bytes() + bytes <= file_size_ + definitions_size_;
  }

  // How much of each file the names of generated code may take, beyond what it holds
  // else.
  uint64_t code_names_max() const { return file_size_ / 8; }

  // Forgets what no record can need any more. Once a round, before it writes blocks:
  // `living`, the processes that have a thread (sorted); `next`, control.next thereafter;
  // `oldest_shared`, the smallest hand-out of a block of several writers that there is.
  void forget_gone(const std::vector<uint32_t>& living, uint64_t next,
                   uint64_t oldest_shared);

  // Ends this file and begins the next one, with the definitions that are remembered. An
  // error is the file's.
  void begin_next();

  const KeptFiles& kept() const { return kept_; }

 private:
  struct Definitions {
    arctrace_block_header header;
    uint32_t index;
    std::vector<std::byte> rest;  // behind the header
    uint64_t gone_at = 0;         // control.next when its process was first seen gone
  };
  void end_file(const ClockSync& now);
  absl::Status open_next();
  void begin_file(const ClockSync& now);
  using Remembered = std::map<uint64_t, Definitions>;  // by hand-out
  Remembered::iterator forget(Remembered::iterator block);

  TraceFile& file_;
  const arctrace_session_header header_;
  const std::vector<std::string> command_line_;
  const std::string path_;
  const FileLimits limits_;
  const uint64_t file_size_;       // when a file is full, but for what it begins with
  uint64_t definitions_size_ = 0;  // that, of this file
  uint64_t remembered_ = 0;        // bytes
  KeptFiles kept_;
  Remembered definitions_;
};

}  // namespace arctrace
