// A benchmark's view of the session that it writes into: enough to measure only while
// there is space, and to check afterwards that every record was written.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace arctrace::bench {

class LiveSession {
 public:
  // Whether this program runs under `arctrace record`.
  static bool exists();

  // Ends the program with a line on stderr if there is no session, or one with a clock
  // that the floors do not read.
  LiveSession();
  LiveSession(const LiveSession&) = delete;
  LiveSession& operator=(const LiveSession&) = delete;

  const arctrace_session_header& header() const { return *header_; }
  uint64_t buffer_size() const {
    return uint64_t{header_->block_size} * header_->block_count;
  }
  bool shared_scope() const { return header_->scope == ARCTRACE_SCOPE_SHARED; }

  // Bytes of a record with `body` bytes after its head.
  uint32_t record_size(uint32_t body) const {
    return (shared_scope() ? ARCTRACE_FULL_HEAD_SIZE : ARCTRACE_COMPACT_HEAD_SIZE) + body;
  }

  // How many records of `bytes` fit into the part of the buffer that a measurement may
  // use, which is below the high-water mark.
  int64_t rounds_that_fit(uint32_t bytes) const;

  uint64_t blocks_taken() const;

  // Waits until the collector has emptied all but a few blocks; false after 10 seconds.
  // REQUIRES: mode drop.
  bool wait_until_drained() const;

  // Makes this process' page tables point at the whole buffer, so that no first touch of
  // a page is measured.
  void populate() const;

 private:
  std::string path_;
  const arctrace_session_header* header_;
  const arctrace_control* control_;
};

// Binds the calling thread to one CPU.
void pin_to_cpu(size_t cpu);

}  // namespace arctrace::bench
