// Files beside the one that is asked for: FILE.1, FILE.2 ..., of which the newest are
// kept.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

namespace arctrace {

struct FileLimits {
  uint32_t files = 8;  // the newest ones are kept; 0: all
  uint64_t bytes = 0;  // in all, the newest excepted; 0: any
};

class KeptFiles {
 public:
  KeptFiles(std::string output, FileLimits limits)
      : output_(std::move(output)), limits_(limits) {}

  // What the next one is called.
  std::string next_name() const;
  // It is there. Removes the oldest ones that are too many, or with `more` bytes beside
  // them too large.
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
  uint64_t bytes_ = 0;      // of these
  uint32_t ever_ = 0;
};

}  // namespace arctrace
