// How the recorder's thread sleeps between its rounds.
#pragma once

#include <arctrace/format.h>

namespace arctrace {

// Sleeps until the wake word is raised, or for an interval. A futex does that, except in
// a buffer that is a BPF map, on whose memory the kernel refuses to wait: there the word
// is looked at in steps, which are short while records come and grow while none do.
class RecorderSleep {
 public:
  // Returns once wake_collector() was called, or after `interval_ns`, less than a second.
  // `busy`: the last round found something to do.
  void wait(arctrace_control& control, long interval_ns, bool busy);

 private:
  bool has_futex_ = true;
  long step_ns_ = 0;
};

}  // namespace arctrace
