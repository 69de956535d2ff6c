// How the recorder's thread sleeps between its rounds.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

namespace arctrace {

// Sleeps until the wake word is raised, or for an interval. A futex does that, except in
// a buffer that is a BPF map, on whose memory the kernel refuses to wait: there the word
// is looked at in steps, which are short while records come and grow while none do. The
// high-water mark is looked at too, because the kernel's programs wake nobody.
class RecorderSleep {
 public:
  // `has_futex`: the kernel may be asked to wait.
  explicit RecorderSleep(bool has_futex = true) : has_futex_(has_futex) {}

  // Returns once wake_collector() was called, or after `interval_ns`, less than a second.
  // `busy`: the last round found something to do.
  void wait(arctrace_control& control, long interval_ns, bool busy);

 private:
  bool is_past_mark(arctrace_control& control);

  bool has_futex_;
  long step_ns_ = 0;
  uint64_t taken_seen_ = 0;  // control.taken when the mark last ended a wait
};

}  // namespace arctrace
