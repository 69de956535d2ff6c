// A process that writes records of every kind whose payload can be checked, and stores
// its progress in memory that it shares with its parent.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "tests/support/trace_decoder.hpp"

namespace arctrace::testing {

// The child writes this. Whatever kills it, it has attempted at least `done` records, and
// at most `begun`.
struct Progress {
  std::atomic<uint64_t> begun, done;
  std::atomic<uint64_t> lost;    // by its own count, once it has ended well
  std::atomic<uint32_t> writer;  // its identity in the trace; 0: none yet
};

// An array in memory that is shared with children.
class SharedProgress {
 public:
  explicit SharedProgress(size_t count);
  // The array that is in the open file `fd`, for a child that is another program.
  SharedProgress(int fd, size_t count);
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  ~SharedProgress();

  Progress& operator[](size_t i) { return progress_[i]; }
  int fd() const { return fd_; }  // of an unnamed file, open across exec

 private:
  int fd_;
  size_t count_;
  Progress* progress_;
};

struct WriterTask {
  uint32_t number;  // in each of its payloads
  uint64_t seed;
  uint64_t attempts;
  uint32_t payload_max;  // bytes; some of the records may be too big for a block
};

// Joins the session and does the task, in a child.
void run_writer(const std::string& session, const WriterTask& task, Progress& progress);

// The contents of a payload.
struct PayloadFacts {
  bool whole = false;  // it is what the writer wrote
  uint32_t number = 0;
  uint64_t sequence = 0;  // number of the writer's attempt
};
PayloadFacts payload_facts(const DecodedRecord& event);

}  // namespace arctrace::testing
