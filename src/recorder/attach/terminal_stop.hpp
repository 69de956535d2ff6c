// Ctrl-Z in the recorder's terminal while threads of another process stand still for it.
#pragma once

#include <csignal>

namespace arctrace {

// As long as the object exists SIGTSTP does not stop this process; if it came meanwhile,
// it does afterwards. There is at most one such object at a time.
class TerminalStopDelayed {
 public:
  TerminalStopDelayed();
  ~TerminalStopDelayed();
  TerminalStopDelayed(const TerminalStopDelayed&) = delete;
  TerminalStopDelayed& operator=(const TerminalStopDelayed&) = delete;

 private:
  struct sigaction before_ {};
};

}  // namespace arctrace
