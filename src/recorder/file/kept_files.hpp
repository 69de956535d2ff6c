// Names the files beside the trace file, FILE.1, FILE.2 ..., and removes the oldest of
// them when there are more than the limits allow. The file ring and the flight recorder
// use it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "src/recorder/file/file_counts.hpp"

namespace arctrace {

// What the recorder does while the disk is full.
enum class OnFull : uint8_t {
  kWait,  // leaves the records in the buffer, and goes on when there is room
  kStop,  // ends the file there
  kRing,  // removes the oldest of the files that are kept, and waits
};

struct FileLimits {
  uint32_t files = 8;  // how many are kept, the newest ones; 0: all
  uint64_t bytes = 0;  // of all together; the newest is kept in any case; 0: no limit
  OnFull on_full = OnFull::kWait;
  uint64_t sync_ns = 0;  // how often the disk is made to have the file; 0: at its end
};

class KeptFiles {
 public:
  KeptFiles(std::string output, FileLimits limits)
      : output_(std::move(output)), limits_(limits) {}

  // The name of the next file.
  std::string next_name() const;
  // Adds the file next_name(), of `bytes` bytes, which exists now. Removes the oldest
  // files while they are too many, or together with `more` bytes too large.
  void add(uint64_t bytes, uint64_t more = 0, FileEnd end = {});

  // Removes the oldest file, to make room. False: there is none.
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

}  // namespace arctrace
