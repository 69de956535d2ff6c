// Names the files beside the trace file, FILE.1, FILE.2 ..., and removes the oldest of
// them when there are more than the limits allow. The file ring and the flight recorder
// use it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

namespace arctrace {

struct FileLimits {
  uint32_t files = 8;  // how many are kept, the newest ones; 0: all
  uint64_t bytes = 0;  // of all together; the newest is kept in any case; 0: no limit
};

class KeptFiles {
 public:
  KeptFiles(std::string output, FileLimits limits)
      : output_(std::move(output)), limits_(limits) {}

  // The name of the next file.
  std::string next_name() const;
  // Adds the file next_name(), of `bytes` bytes, which exists now. Removes the oldest
  // files while they are too many, or together with `more` bytes too large.
  void add(uint64_t bytes, uint64_t more = 0);

  uint64_t bytes() const { return bytes_; }
  size_t count() const { return files_.size(); }

 private:
  struct File {
    std::string name;
    uint64_t bytes;
  };
  std::string output_;
  FileLimits limits_;
  std::deque<File> files_;  // the oldest first
  uint64_t bytes_ = 0;      // of files_
  uint32_t ever_ = 0;       // files added so far
};

}  // namespace arctrace
