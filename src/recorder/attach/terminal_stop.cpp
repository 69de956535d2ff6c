#include "src/recorder/attach/terminal_stop.hpp"

namespace arctrace {
namespace {

volatile std::sig_atomic_t stop_has_come = 0;

void note_stop(int) { stop_has_come = 1; }

}  // namespace

TerminalStopDelayed::TerminalStopDelayed() {
  struct sigaction noted {};
  noted.sa_handler = note_stop;
  noted.sa_flags = SA_RESTART;
  sigaction(SIGTSTP, &noted, &before_);
  if (before_.sa_handler == SIG_IGN) sigaction(SIGTSTP, &before_, nullptr);
}

TerminalStopDelayed::~TerminalStopDelayed() {
  sigaction(SIGTSTP, &before_, nullptr);
  if (stop_has_come == 0) return;
  stop_has_come = 0;
  std::raise(SIGTSTP);
}

}  // namespace arctrace
