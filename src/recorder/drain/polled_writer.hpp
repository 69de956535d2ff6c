// The interface of a writer that has no thread of its own, such as PerfWriter: the
// recorder polls it in each round and whenever the buffer has to be complete.
#pragma once

namespace arctrace {

class PolledWriter {
 public:
  PolledWriter() = default;
  PolledWriter(const PolledWriter&) = delete;
  PolledWriter& operator=(const PolledWriter&) = delete;
  virtual ~PolledWriter() = default;

  // Writes what has happened since the last call into the buffer. REQUIRES: the caller
  // holds the collector lock, and there is only one call at a time.
  virtual void poll() = 0;

  // Polls for the last time; what happens later is not written. REQUIRES: the gate is
  // still open.
  virtual void finish() = 0;
};

}  // namespace arctrace
