// Stores the clock word of a buffer whose records have no time of their own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/buffer/clock_source.hpp"

namespace arctrace::recorder {

// A thread that stores the time at an interval. It stands still if the recorder does, and
// so does the time of records then. A sleep costs some microseconds, and tens of them in
// a virtual machine. So a thread that sleeps stores the time less often than it is asked
// to where it would use more than a tenth of a CPU.
class ClockKeeper {
 public:
  // Stores the first time at once. `cpu`: on which the thread runs, without ever
  // sleeping; nullopt: on any, and it sleeps in between. The buffer must outlive this
  // object. REQUIRES: the session has a clock word.
  ClockKeeper(const BufferView& view, uint64_t resolution_ns,
              std::optional<uint32_t> cpu);
  ~ClockKeeper() { finish(); }
  ClockKeeper(const ClockKeeper&) = delete;
  ClockKeeper& operator=(const ClockKeeper&) = delete;

  // Ends the thread. May be called again.
  ClockWordTimes finish();

 private:
  void run(std::optional<uint32_t> cpu);
  void spin();
  void sleep();
  void store();

  const BufferView view_;
  const uint64_t resolution_ns_;
  uint64_t last_ns_ = 0;
  // Written by the thread alone, and read when it has ended.
  uint64_t stores_ = 0;
  uint64_t longest_ns_ = 0;
  double squares_ = 0;  // of the times between stores, in ns
  double sum_ = 0;
  std::mutex mutex_;
  std::condition_variable wakes_;  // a thread that sleeps, when it is to end
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace arctrace::recorder
