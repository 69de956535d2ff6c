// A process that writes beside the one that is cut short.
#pragma once

#include <cstdint>

#include "tests/support/test_session.hpp"

namespace arctrace::testing {

// Another process of the session that writes a batch of numbers, counted up from 0, each
// time that it is asked to.
class Neighbour {
 public:
  static constexpr uint32_t kEvent = 4;
  static constexpr uint64_t kBatch = 100;  // records: a few KiB

  explicit Neighbour(const TestSession& test);
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;
  ~Neighbour() { end(); }

  // Returns when the numbers are written.
  void write_batch();
  // Ends the process, and checks that it succeeded.
  void end();

  uint64_t written() const { return written_; }

 private:
  int pid_ = 0;
  int socket_ = -1;
  uint64_t written_ = 0;
};

}  // namespace arctrace::testing
