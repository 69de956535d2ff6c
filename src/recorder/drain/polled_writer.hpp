// A writer that has no thread of its own: the recorder calls it, in each of its rounds
// and whenever the buffer is to be complete.
#pragma once

namespace arctrace {

class PolledWriter {
 public:
  PolledWriter() = default;
  PolledWriter(const PolledWriter&) = delete;
  PolledWriter& operator=(const PolledWriter&) = delete;
  virtual ~PolledWriter() = default;

  // Writes what has happened since the last call into the buffer. REQUIRES: the caller is
  // the collector; so it is never called twice at once.
  virtual void poll() = 0;

  // The last poll(): nothing that happens later is written. While the gate is still open.
  virtual void finish() = 0;
};

}  // namespace arctrace
