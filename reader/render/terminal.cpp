#include "reader/render/terminal.hpp"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace arctrace::reader {
namespace {

volatile std::sig_atomic_t got_interrupt = 0;

bool is_terminal_for_color() {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return !dumb && ::isatty(STDOUT_FILENO) == 1;
}

}  // namespace

TextStyle terminal_style(ColorMode color, bool full_names) {
  TextStyle style;
  style.color = color == ColorMode::kAlways ||
                (color == ColorMode::kAuto && is_terminal_for_color());
  winsize size{};
  if (!full_names && ::isatty(STDOUT_FILENO) == 1 &&
      ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    style.width = size.ws_col;
  }
  return style;
}

Progress::Progress(bool wanted)
    : wanted_(wanted && ::isatty(STDERR_FILENO) == 1),
      next_(Clock::now() + std::chrono::seconds(1)) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(uint64_t records) {
  if (!wanted_ || Clock::now() < next_) return;
  next_ = Clock::now() + std::chrono::milliseconds(200);
  shown_ = true;
  std::fprintf(stderr, "\rarctrace: %.1f million records read\x1b[K",
               static_cast<double>(records) / 1e6);
}

InterruptWatch::InterruptWatch() {
  got_interrupt = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { got_interrupt = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
}

InterruptWatch::~InterruptWatch() { ::signal(SIGINT, SIG_DFL); }

bool InterruptWatch::interrupted() { return got_interrupt != 0; }

}  // namespace arctrace::reader
