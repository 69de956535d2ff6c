// State that the processes of one run share besides the buffer: its end, and how far each
// has come.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace arctrace::testing {

struct Stage {
  static constexpr uint32_t kHonest = 4;

  std::atomic<uint32_t> ready;  // processes that have joined or mapped the buffer
  std::atomic<bool> begun;      // the scribbling
  std::atomic<bool> ended;
  std::array<std::atomic<uint64_t>, kHonest> calls;  // of each honest process
  std::atomic<uint64_t> scribbled;                   // words
  std::atomic<uint64_t> reads;                       // traces read to their end
  std::atomic<uint64_t> findings;                    // in them

  // Called by each process but the scribbler: tells that it is ready, and waits for the
  // beginning.
  void await_begin();
};

// A zeroed Stage in memory that children share.
std::shared_ptr<Stage> make_stage();

// How a child of start_child() ended, as wait_for_child() tells it. A child that still
// runs after `seconds` is killed: "hangs".
std::string wait_at_most(int pid, uint32_t seconds);

}  // namespace arctrace::testing
