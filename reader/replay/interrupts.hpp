// The interrupts that CPUs served (SPEC.md READ-12): when they begin and end, for the
// threads that they came upon and for each CPU's `Interrupt` thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "reader/replay/frame_stack.hpp"
#include "reader/replay/thread_tree.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

class ThreadStack;

// A record tells when its interrupt will end, so what ends is told in the order of time
// if end_until() is called before each record.
class Interrupts {
 public:
  // `state` must outlive this object. `wants_thread`: as in ReplayOptions.
  Interrupts(ReplayState& state, const std::function<bool(ThreadIndex)>& wants_thread);

  // An INTERRUPT record. `interrupted`: the stack of the thread that it came upon, which
  // must outlive this object; nullptr: none that is replayed.
  void begin(const Record& record, ThreadStack* interrupted);

  // Ends those that last until then, or less.
  void end_until(int64_t time_ns) {
    if (next_end_ns_ <= time_ns) end_due(time_ns);
  }

  // To be called once, last: ends all, at `time_ns` if they last longer.
  void finish(int64_t time_ns);

  // After finish(): the `Interrupt` threads that have a part in the time range, by CPU.
  std::span<const ThreadTree> trees() const { return trees_; }

 private:
  struct Cpu {
    ThreadIndex thread = kNoIndex;       // the `Interrupt` thread
    std::unique_ptr<FrameStack> frames;  // its own; nullptr: it is filtered out
    std::vector<int64_t> ends_ns;        // of those that are served, outermost first
    ThreadStack* interrupted = nullptr;  // by the outermost one
  };

  Cpu& cpu_of(uint32_t cpu);
  void end_due(int64_t time_ns);
  void end_innermost(Cpu& cpu, int64_t latest_ns);
  void find_next_end();

  ReplayState& state_;
  std::map<uint32_t, ThreadIndex> threads_;  // that are wanted, by CPU
  std::map<uint32_t, Cpu> cpus_;
  std::vector<Cpu*> serving_;  // those that serve an interrupt
  int64_t next_end_ns_ = INT64_MAX;
  std::vector<ThreadTree> trees_;
};

}  // namespace arctrace::reader
